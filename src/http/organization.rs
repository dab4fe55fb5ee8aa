//! `/api/organization`.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::faults::{Faults, Members};
use super::{auth, body, respond, values};
use crate::catalog::{Organization, Plan};
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::limits::OPEN_NAME_CHARS_MAX;
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

/// An organization.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationView<'a> {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: ObjectId,
    /// Shown name.
    pub name: &'a str,
    /// What it may use.
    pub plan: PlanView,
    /// When it signed up.
    pub created_at: Timestamp,
    /// When its name or plan last changed.
    pub updated_at: Timestamp,
}

/// A plan; null is unlimited.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// Free, Pro or Enterprise.
    #[schema(value_type = Plan)]
    pub name: &'static str,
    /// Buckets.
    pub max_buckets: Option<u32>,
    /// `retentionDays` of a bucket.
    pub max_retention_days: Option<u32>,
    /// Calls a month.
    pub max_api_calls: Option<u64>,
}

/// An answer about one organization.
#[derive(Serialize, ToSchema)]
pub struct OrganizationAnswer<'a> {
    /// What was done, for changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub message: Option<&'static str>,
    /// As it is now.
    pub organization: OrganizationView<'a>,
}

/// Body of a change.
#[derive(ToSchema)]
pub struct OrganizationPatchBody {
    /// Shown name.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
}

/// Shows the organization with its plan.
///
/// What a plan does not limit is null.
#[utoipa::path(get, path = "/api/organization", operation_id = "showOrganization", tag = "organization",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    responses(
        (status = 200, body = OrganizationAnswer, description = "The organization.")))]
pub async fn show(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let organization = service.organization(&caller)?;
    let answer = OrganizationAnswer {
        message: None,
        organization: OrganizationView::of(&organization),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Renames the organization.
///
/// The plan is the operator's to change.
#[utoipa::path(patch, path = "/api/organization", operation_id = "updateOrganization", tag = "organization",
    security(("apiKey" = ["admin"]), ("bearer" = [])),
    request_body = OrganizationPatchBody,
    responses(
        (status = 200, body = OrganizationAnswer, description = "As it is now.")))]
pub async fn update(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::ADMIN)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let members = Members::of_body(&body, &mut faults);
    let name = members.optional("name", &mut faults, |v| values::name(v, OPEN_NAME_CHARS_MAX));
    faults.check()?;
    let organization = service.rename_organization(&caller, name).await?;
    let answer = OrganizationAnswer {
        message: Some("organization updated"),
        organization: OrganizationView::of(&organization),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

impl<'a> OrganizationView<'a> {
    /// How the API shows it.
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
    /// How the API shows it.
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
