//! `/api/operator`: for whoever runs the server.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::docs::ErrorDoc;
use super::faults::{Faults, Members};
use super::organization::{OrganizationAnswer, OrganizationView};
use super::params::{self, Pagination};
use super::{auth, body, respond, values};
use crate::catalog::Plan;
use crate::error::ServiceError;
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
    /// Free, Pro or Enterprise.
    pub plan: String,
}

/// All organizations.
#[utoipa::path(get, path = "/api/operator/organizations", tag = "operator", security(("bearer" = [])),
    params(("limit" = Option<u64>, Query), ("offset" = Option<u64>, Query)),
    responses((status = 200, body = OrganizationsAnswer), (status = "default", body = ErrorDoc)))]
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
#[utoipa::path(patch, path = "/api/operator/organizations/{id}", tag = "operator", security(("bearer" = [])),
    params(("id" = String, Path)), request_body = PlanBody,
    responses((status = 200, body = OrganizationAnswer), (status = "default", body = ErrorDoc)))]
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
