//! `/api/operator`: for whoever runs the server.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::faults::{Faults, Members};
use super::organization::{OrganizationAnswer, OrganizationView};
use super::params::{self, PageParams, Pagination};
use super::{auth, body, respond, values};
use crate::catalog::Plan;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::service::Service;

/// A page of organizations.
#[derive(Serialize, ToSchema)]
pub struct OrganizationsAnswer<'a> {
    /// Oldest first.
    pub organizations: Vec<OrganizationView<'a>>,
    /// Which part.
    pub pagination: Pagination,
}

/// Body of a change of plan.
#[derive(ToSchema)]
pub struct PlanBody {
    /// The new plan.
    pub plan: Plan,
}

/// Lists all organizations of the server.
///
/// Oldest first, with their plans.
#[utoipa::path(get, path = "/api/operator/organizations", operation_id = "listOrganizations", tag = "operator",
    security(("operator" = [])),
    params(PageParams),
    responses(
        (status = 200, body = OrganizationsAnswer, description = "A page of organizations.")))]
pub async fn list(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    auth::authenticate_operator(&request, &service)?;
    let mut faults = Faults::default();
    let Some(asked) = params::page(&request, &mut faults) else {
        return Err(faults.into_error());
    };
    let page = service.all_organizations(asked);
    let answer = OrganizationsAnswer {
        organizations: page.entries.iter().map(|it| OrganizationView::of(it)).collect(),
        pagination: Pagination::of(asked, &page),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}

/// Puts an organization on another plan.
///
/// What it has beyond a smaller plan stays; only new things are refused. A used-up quota opens at once when the new plan
/// has a larger one.
#[utoipa::path(patch, path = "/api/operator/organizations/{id}", operation_id = "changePlan", tag = "operator",
    security(("operator" = [])),
    params(("id" = ObjectId, Path, description = "The organization.")),
    request_body = PlanBody,
    responses(
        (status = 200, body = OrganizationAnswer, description = "As it is now.")))]
pub async fn change_plan(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    auth::authenticate_operator(&request, &service)?;
    let body = body::read_json(&request, payload).await?;
    let mut faults = Faults::default();
    let id = params::id(&request, "id", &mut faults);
    let members = Members::of_body(&body, &mut faults);
    let plans = Plan::ALL.map(|plan| (plan.name(), plan));
    let plan = members.required("plan", &mut faults, |v| values::one_of(v, &plans));
    let (Some(id), Some(plan), true) = (id, plan, faults.none()) else {
        return Err(faults.into_error());
    };
    let organization = service.change_plan(id, plan).await?;
    let answer = OrganizationAnswer {
        message: Some("plan changed"),
        organization: OrganizationView::of(&organization),
    };
    respond::json(&request, StatusCode::OK, &answer).await
}
