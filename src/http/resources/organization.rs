//! `/api/organization`: the caller's organization.

use serde::Serialize;
use utoipa::ToSchema;

use super::views::{One, Resource};
use crate::catalog::{Organization, Plan};
use crate::http::endpoint::{Admin, Answer, Call, Endpoint, Reply, get, patch};
use crate::http::shape::{OpenName, body};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// An organization.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationView<'a> {
    /// ID of the organization.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Display name.
    pub name: &'a str,
    /// Plan with its limits.
    pub plan: PlanView,
    /// When the organization was created.
    pub created_at: Timestamp,
    /// When the name or plan last changed.
    pub updated_at: Timestamp,
}

/// A plan and its limits; a limit of null is unlimited.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// Free, Pro or Enterprise.
    #[schema(value_type = Plan)]
    pub name: &'static str,
    /// Maximum number of buckets.
    pub max_buckets: Option<u32>,
    /// Maximum `retentionDays` of a bucket.
    pub max_retention_days: Option<u32>,
    /// API calls allowed per month.
    pub max_api_calls: Option<u64>,
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
        patch("/api/organization", "updateOrganization", update),
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

impl<'a> OrganizationView<'a> {
    pub fn of(organization: &'a Organization) -> Self {
        Self {
            id: organization.id,
            name: &organization.name,
            plan: PlanView::of(organization.plan),
            created_at: Timestamp(organization.created_at_ns),
            updated_at: Timestamp(organization.updated_at_ns),
        }
    }
}

impl PlanView {
    pub fn of(plan: Plan) -> Self {
        let limits = plan.limits();
        Self {
            name: plan.name(),
            max_buckets: limits.buckets_max,
            max_retention_days: limits.retention_days_max,
            max_api_calls: limits.calls_max,
        }
    }
}
