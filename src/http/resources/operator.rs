//! `/api/operator`: administration by the operator of the server.

use super::organization::OrganizationView;
use super::views::{Many, One};
use crate::catalog::Plan;
use crate::http::endpoint::{Answer, Call, Endpoint, OperatorToken, Reply, get, patch};
use crate::http::shape::body;
use crate::ids::ObjectId;
use crate::service::page::PageRequest;

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

async fn list(call: Call<OperatorToken, PageRequest>) -> Reply<Many<OrganizationView<'static>>> {
    let page = call.service.shard().all_organizations(call.params);
    Answer::page(call.params, &page, |organization| {
        OrganizationView::of(organization)
    })
}

async fn change_plan(call: Call<OperatorToken, ObjectId, PlanBody>) -> Reply<One<OrganizationView<'static>>> {
    let organization = call
        .service
        .shard()
        .change_plan(call.params, call.body.plan)
        .await?;
    Answer::changed("plan changed", OrganizationView::of(&organization))
}
