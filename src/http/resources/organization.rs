//! `/api/organization`: the caller's organization.

use super::views::{One, Resource, view};
use crate::catalog::{Organization, Plan, Role};
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, get, patch};
use crate::http::shape::{OpenName, body};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

view! {
    /// An organization.
    pub struct OrganizationView<'a> of(organization: &'a Organization) {
        /// ID of the organization.
        #[serde(rename = "_id")]
        id: ObjectId = organization.id,
        /// Display name.
        name: &'a str = &organization.name,
        /// Plan with its limits.
        plan: PlanView = PlanView::of(organization.plan),
        /// When the organization was created.
        created_at: Timestamp = Timestamp(organization.created_at_ns),
        /// When the name or plan last changed.
        updated_at: Timestamp = Timestamp(organization.updated_at_ns),
    }
}

view! {
    /// A plan and its limits; a limit of null is unlimited.
    pub struct PlanView of(plan: Plan; limits = plan.limits()) {
        /// Free, Pro or Enterprise.
        name: Plan = plan,
        /// Maximum number of buckets.
        max_buckets: Option<u32> = limits.buckets_max,
        /// Maximum `retentionDays` of a bucket.
        max_retention_days: Option<u32> = limits.retention_days_max,
        /// API calls allowed per month.
        max_api_calls: Option<u64> = limits.calls_max,
    }
}

body! {
    /// Body of a request that changes the organization.
    pub struct OrganizationPatchBody {
        /// Display name.
        name: Option<OpenName>,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/organization", "showOrganization", show),
        patch("/api/organization", "updateOrganization", update).least_role(Role::Owner),
    ]
}

async fn show(call: Call<Admin>) -> Reply<One<OrganizationView<'static>>> {
    let organization = call.service.organization(call.caller.organization_id)?;
    Answer::one(OrganizationView::of(&organization))
}

async fn update(call: Call<Admin, (), OrganizationPatchBody>) -> Reply<One<OrganizationView<'static>>> {
    let name = call.body.name.map(|name| name.0);
    let organization = call.service.rename_organization(&call.caller, name).await?;
    Answer::changed("organization updated", OrganizationView::of(&organization))
}

impl Resource for OrganizationView<'_> {
    const ONE: &'static str = "organization";
    const MANY: &'static str = "organizations";
}
