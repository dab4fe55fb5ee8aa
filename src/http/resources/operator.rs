//! `/api/operator`: administration by the operator of the server.

use serde::Serialize;
use utoipa::ToSchema;

use super::organization::{OrganizationAnswer, OrganizationView};
use crate::catalog::Plan;
use crate::http::endpoint::{Answer, Call, Endpoint, OperatorToken, Pagination, Reply, get, patch};
use crate::http::shape::body;
use crate::ids::ObjectId;
use crate::service::page::PageRequest;

/// A page of organizations.
#[derive(Serialize, ToSchema)]
pub struct OrganizationsAnswer<'a> {
    /// Organizations, oldest first.
    pub organizations: Vec<OrganizationView<'a>>,
    /// Position of this page in the list.
    pub pagination: Pagination,
}

body! {
    /// Body of a plan change.
    pub struct PlanBody {
        /// The new plan.
        plan: Plan,
    }
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/operator/organizations", "listOrganizations", list),
        patch("/api/operator/organizations/{id}", "changePlan", change_plan),
    ]
}

async fn list(call: Call<OperatorToken, PageRequest>) -> Reply<OrganizationsAnswer<'static>> {
    let page = call.service.all_organizations(call.params);
    Answer::of(&OrganizationsAnswer {
        organizations: page.entries.iter().map(|it| OrganizationView::of(it)).collect(),
        pagination: Pagination::of(call.params, &page),
    })
}

async fn change_plan(call: Call<OperatorToken, ObjectId, PlanBody>) -> Reply<OrganizationAnswer<'static>> {
    let organization = call.service.change_plan(call.params, call.body.plan).await?;
    Answer::of(&OrganizationAnswer {
        message: Some("plan changed"),
        organization: OrganizationView::of(&organization),
    })
}
