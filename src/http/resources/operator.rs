//! `/api/operator`: administration by the operator of the server.

use std::time::{Duration, Instant};

use actix_web::HttpRequest;
use actix_web::http::{Method, StatusCode};
use serde_json::{Value, from_value, json, to_value};

use super::organization::OrganizationView;
use super::views::{Many, One, Resource};
use crate::catalog::Plan;
use crate::error::{ErrorKind, ServiceError};
use crate::http::endpoint::{Answer, Call, Endpoint, OperatorToken, Pagination, Reply, get, patch};
use crate::http::forward::ask;
use crate::http::inside::client_of;
use crate::http::shape::body;
use crate::ids::ObjectId;
use crate::service::page::{Page, PageRequest};
use crate::service::{Location, Node};

body! {
    /// Body of a plan change.
    pub struct PlanBody {
        /// The new plan.
        plan: Plan,
    }
}

/// The path of the list, without a page.
const ORGANIZATIONS: &str = "/api/operator/organizations";
/// How long the operator waits for the owner of each shard.
const LOCATE_WITHIN: Duration = Duration::from_secs(2);
const RETRY_AFTER_SECONDS: u32 = 2;

pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/operator/organizations", "listOrganizations", list),
        patch("/api/operator/organizations/{id}", "changePlan", change_plan),
    ]
}

async fn list(call: Call<OperatorToken, PageRequest>) -> Reply<Many<OrganizationView<'static>>> {
    let page = call.params;
    let Some(shard) = &call.service.shard else {
        return gather(&call.service.node, &call.request, page).await;
    };
    let found = shard.all_organizations(page);
    Answer::page(page, &found, |organization| OrganizationView::of(organization))
}

/// The organizations of all shards of a cluster: by shard, and those of a shard by creation.
async fn gather(
    node: &Node,
    request: &HttpRequest,
    page: PageRequest,
) -> Reply<Many<OrganizationView<'static>>> {
    let (mut total, mut found, mut skip) = (0, Vec::new(), page.offset);
    for shard in node.all_shards() {
        let left = page.limit - found.len() as u64;
        // At least one: the list's length is part of the answer.
        let (limit, offset) = (left.max(1), skip);
        let (length, entries) = match node.locate(shard, Instant::now() + LOCATE_WITHIN).await? {
            Location::Here(shard) => {
                let part = shard.all_organizations(PageRequest { limit, offset });
                let shown = |organization| to_value(OrganizationView::of(organization));
                let shown: Result<Vec<Value>, _> = part.entries.iter().map(|it| shown(it)).collect();
                (part.total, shown.map_err(ServiceError::internal)?)
            }
            Location::At(owner) => {
                let path = format!("{ORGANIZATIONS}?limit={limit}&offset={offset}");
                let (_, mut part) = ask(node, &owner, request, (Method::GET, path), None).await?;
                let length = part["pagination"]["total"].as_u64();
                let length =
                    length.ok_or_else(|| ServiceError::internal(format!("{}: {part}", owner.address)))?;
                let entries = part[OrganizationView::MANY].take();
                (length, from_value(entries).map_err(ServiceError::internal)?)
            }
        };
        total += length;
        skip = skip.saturating_sub(length);
        found.extend(entries.into_iter().take(left as usize));
    }
    let found = Page {
        entries: found,
        total,
    };
    Answer::gathered(&json!({
        OrganizationView::MANY: found.entries,
        "pagination": Pagination::of(page, &found),
    }))
}

async fn change_plan(call: Call<OperatorToken, ObjectId, PlanBody>) -> Reply<One<OrganizationView<'static>>> {
    let (id, plan) = (call.params, call.body.plan);
    let address = client_of(&call.request).address;
    if let Some(shard) = &call.service.shard {
        let organization = shard.change_plan(id, plan, address).await?;
        return Answer::changed("plan changed", OrganizationView::of(&organization));
    }
    let node = &call.service.node;
    for shard in node.all_shards() {
        match node.locate(shard, Instant::now() + LOCATE_WITHIN).await? {
            Location::Here(shard) => match shard.change_plan(id, plan, address).await {
                Err(error) if error.kind == ErrorKind::NotFound => {}
                changed => return Answer::changed("plan changed", OrganizationView::of(&*changed?)),
            },
            Location::At(owner) => {
                let (path, body) = (format!("{ORGANIZATIONS}/{id}"), json!({"plan": plan.name()}));
                match ask(node, &owner, &call.request, (Method::PATCH, path), Some(&body)).await? {
                    (StatusCode::NOT_FOUND, _) => {}
                    (StatusCode::OK, answer) => return Answer::gathered(&answer),
                    (_, answer) => {
                        let cause = format!("{}: {answer}", owner.address);
                        return Err(ServiceError::unavailable(
                            "the plan could not be changed",
                            RETRY_AFTER_SECONDS,
                        )
                        .caused_by(cause));
                    }
                }
            }
        }
    }
    Err(ServiceError::not_found("organization"))
}
