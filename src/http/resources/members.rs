//! `/api/organization/members`: who belongs to the organization, and in which role.

use super::views::{Many, One, Resource, view};
use crate::catalog::{Role, User};
use crate::http::endpoint::{Answer, Bearer, Call, Endpoint, Reply, delete, get, patch};
use crate::http::shape::body;
use crate::ids::ObjectId;
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

view! {
    /// A member of the organization.
    pub struct MemberView<'a> of(user: &'a User) {
        /// User ID.
        #[serde(rename = "_id")]
        id: ObjectId = user.id,
        /// Email address, in lower case.
        email: &'a str = &user.email,
        /// Name of the person.
        name: &'a str = &user.name,
        /// What the person may do in the organization.
        role: Role = user.role,
        /// When the account was created.
        created_at: Timestamp = Timestamp(user.created_at_ns),
        /// ID of the user who invited the person; null for the one who signed up.
        created_by: Option<ObjectId> = user.created_by,
    }
}

view! {
    /// A removed member.
    pub struct DeletedMemberView of(user: &User) {
        /// User ID.
        #[serde(rename = "_id")]
        id: ObjectId = user.id,
    }
}

view! {
    /// The response to a removal.
    pub struct DeletedMemberAnswer of(user: &User) {
        /// Result in words.
        message: &'static str = "member removed",
        /// The removed member.
        deleted_member: DeletedMemberView = DeletedMemberView::of(user),
    }
}

body! {
    /// Body of a request that changes a member's role.
    pub struct MemberPatchBody {
        /// What the person may do from now on.
        role: Role,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    const ONE: &str = "/api/organization/members/{userId}";
    vec![
        get("/api/organization/members", "listMembers", list),
        patch(ONE, "updateMember", update).least_role(Role::Owner),
        delete(ONE, "removeMember", remove).least_role(Role::Owner),
    ]
}

async fn list(call: Call<Bearer, PageRequest>) -> Reply<Many<MemberView<'static>>> {
    let page = call.service.list_members(&call.caller, call.params);
    Answer::page(call.params, &page, |user| MemberView::of(user))
}

async fn update(call: Call<Bearer, ObjectId, MemberPatchBody>) -> Reply<One<MemberView<'static>>> {
    let changed = call
        .service
        .change_role(&call.caller, call.params, call.body.role);
    Answer::changed("member updated", MemberView::of(&*changed.await?))
}

async fn remove(call: Call<Bearer, ObjectId>) -> Reply<DeletedMemberAnswer> {
    let removed = call.service.remove_member(&call.caller, call.params).await?;
    Answer::of(&DeletedMemberAnswer::of(&removed))
}

impl Resource for MemberView<'_> {
    const ONE: &'static str = "member";
    const MANY: &'static str = "members";
}
