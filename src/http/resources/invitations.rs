//! `/api/organization/invitations`: links with which people join the organization, and the route that takes them.

use actix_web::http::StatusCode;

use super::accounts::{self, SignedInAnswer};
use super::views::{Many, One, Resource, view};
use crate::catalog::{Invitation, Role};
use crate::http::endpoint::{Answer, Bearer, Call, Endpoint, LinkHolder, Reply, delete, get, post};
use crate::http::inside::client_of;
use crate::http::page_url::page_url;
use crate::http::shape::{Email, NewPassword, OpenName, Text, body};
use crate::ids::ObjectId;
use crate::limits::LINK_TOKEN_CHARS_MAX;
use crate::service::invitations::{CreatedInvitation, Joining};
use crate::service::page::PageRequest;
use crate::timestamp::Timestamp;

/// The token of a link, as sent.
pub(super) type LinkToken = Text<LINK_TOKEN_CHARS_MAX>;

view! {
    /// An open invitation.
    pub struct InvitationView<'a> of(invitation: &'a Invitation) {
        /// ID of the invitation.
        #[serde(rename = "_id")]
        id: ObjectId = invitation.id,
        /// Email address of the account that it makes, in lower case.
        email: &'a str = &invitation.email,
        /// Role of the account that it makes.
        role: Role = invitation.role,
        /// When the invitation was created.
        created_at: Timestamp = Timestamp(invitation.created_at_ns),
        /// ID of the user who invited.
        created_by: ObjectId = invitation.created_by,
        /// When the link stops working.
        expires_at: Timestamp = Timestamp(invitation.expires_at_ns),
    }
}

view! {
    /// A new invitation.
    pub struct CreatedInvitationView<'a>
    of(created: &'a CreatedInvitation, url: String; invitation = &created.invitation) {
        /// ID of the invitation.
        #[serde(rename = "_id")]
        id: ObjectId = invitation.id,
        /// Email address of the account that it makes, in lower case.
        email: &'a str = &invitation.email,
        /// Role of the account that it makes.
        role: Role = invitation.role,
        /// When the invitation was created.
        created_at: Timestamp = Timestamp(invitation.created_at_ns),
        /// ID of the user who invited.
        created_by: ObjectId = invitation.created_by,
        /// When the link stops working.
        expires_at: Timestamp = Timestamp(invitation.expires_at_ns),
        /// Token of the link, which is returned only once.
        token: &'a str = &created.token,
        /// The link to send to the person, which is returned only once.
        url: String = url,
    }
}

view! {
    /// The response to an invitation.
    pub struct CreatedInvitationAnswer<'a> of(created: &'a CreatedInvitation, url: String) {
        /// Result in words.
        message: &'static str = "invitation created",
        /// The new invitation.
        invitation: CreatedInvitationView<'a> = CreatedInvitationView::of(created, url),
    }
}

view! {
    /// A withdrawn invitation.
    pub struct DeletedInvitationView of(invitation: &Invitation) {
        /// ID of the invitation.
        #[serde(rename = "_id")]
        id: ObjectId = invitation.id,
    }
}

view! {
    /// The response to a withdrawal.
    pub struct DeletedInvitationAnswer of(invitation: &Invitation) {
        /// Result in words.
        message: &'static str = "invitation withdrawn",
        /// The withdrawn invitation.
        deleted_invitation: DeletedInvitationView = DeletedInvitationView::of(invitation),
    }
}

body! {
    /// Body of a request that invites a person.
    pub struct InvitationBody {
        /// Email address of the person; compared case-insensitively.
        email: Email,
        /// What the person will be allowed to do.
        role: Role,
    }
}

body! {
    /// Body of a request that accepts an invitation.
    pub struct AcceptanceBody {
        /// Token of the link.
        token: LinkToken,
        /// Name of the person.
        name: OpenName,
        /// Password of the new account; any characters are allowed.
        password: NewPassword,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    const ALL: &str = "/api/organization/invitations";
    const ONE: &str = "/api/organization/invitations/{id}";
    let of_owners = vec![
        get(ALL, "listInvitations", list),
        post(ALL, "createInvitation", create).status(StatusCode::CREATED),
        get(ONE, "showInvitation", show),
        delete(ONE, "withdrawInvitation", withdraw),
    ];
    let of_owners = of_owners
        .into_iter()
        .map(|endpoint| endpoint.least_role(Role::Owner));
    let accept = post("/api/auth/invitations/accept", "acceptInvitation", accept).status(StatusCode::CREATED);
    of_owners.chain([accept]).collect()
}

async fn list(call: Call<Bearer, PageRequest>) -> Reply<Many<InvitationView<'static>>> {
    let page = call.service.list_invitations(&call.caller, call.params)?;
    Answer::page(call.params, &page, InvitationView::of)
}

async fn create(call: Call<Bearer, (), InvitationBody>) -> Reply<CreatedInvitationAnswer<'static>> {
    let InvitationBody { email, role } = call.body;
    let created = call.service.invite(&call.caller, email.0, role).await?;
    let tls = call.service.config.server.tls().is_some();
    let url = page_url(&call.request, &format!("/#/invitation/{}", created.token), tls);
    Answer::of(&CreatedInvitationAnswer::of(&created, url))
}

async fn show(call: Call<Bearer, ObjectId>) -> Reply<One<InvitationView<'static>>> {
    let invitation = call.service.invitation(&call.caller, call.params)?;
    Answer::one(InvitationView::of(&invitation))
}

async fn withdraw(call: Call<Bearer, ObjectId>) -> Reply<DeletedInvitationAnswer> {
    let withdrawn = call.service.withdraw_invitation(&call.caller, call.params);
    Answer::of(&DeletedInvitationAnswer::of(&withdrawn.await?))
}

async fn accept(call: Call<LinkHolder, (), AcceptanceBody>) -> Reply<SignedInAnswer<'static>> {
    let AcceptanceBody {
        token,
        name,
        password,
    } = call.body;
    let joining = Joining {
        token: token.0,
        name: name.0,
        password: password.0,
    };
    let client = client_of(&call.request);
    let signed_in = call.service.accept_invitation(joining, &client).await?;
    accounts::answer(&call.request, &call.service, "account created", &signed_in)
}

impl Resource for InvitationView<'_> {
    const ONE: &'static str = "invitation";
    const MANY: &'static str = "invitations";
}
