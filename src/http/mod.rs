//! The HTTP side: handlers translate, `service` decides.
//!
//! Every authenticated handler keeps one order: [`auth::authenticate`], the body (`body`), its shape
//! (`faults`, all at once), one call of the service, the answer (`respond`). Around all of them
//! stands `edge`. This file is the route table.

pub mod accounts;
pub mod alert_history;
pub mod alert_views;
pub mod alerts;
pub mod analytics;
mod answer_budget;
pub mod auth;
pub mod body;
mod body_budget;
pub mod bucket_keys;
pub mod buckets;
pub mod changes;
pub mod dashboard;
pub mod data;
pub mod docs;
mod edge;
pub mod error;
mod evaluation_input;
pub mod evaluations;
pub mod faults;
pub mod health;
pub mod keys;
mod listener;
pub mod metrics;
mod noted;
pub mod operator;
pub mod organization;
pub mod organization_keys;
pub mod params;
mod pieces;
mod process;
pub mod query;
pub mod query_docs;
mod rate_limit;
mod recovering;
mod request_id;
pub mod respond;
mod schema_input;
mod server;
mod session_cookie;
pub mod sources;
mod tls;
mod traffic;
pub mod values;
pub mod webhook_deliveries;
pub mod webhooks;

use actix_web::guard::{Any, Get, Guard, Head, fn_guard};
use actix_web::http::{Method, header};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpResponse, Resource, Route};

use crate::error::{ErrorKind, ServiceError};
use crate::service::Service;
use noted::{RouteNumber, note_route};

pub use listener::{Listener, RunningServer, listen};
pub use recovering::start_recovering;
pub use server::start;
pub use tls::{Tls, TlsError};

/// Registers all routes. One that is not in the table is 404; a method that is not is 405 with `Allow`.
pub fn routes(config: &mut ServiceConfig, service: &Service) {
    for (number, (path, methods)) in (0..).zip(table(service.has_operator())) {
        config.service(resource(path, methods).guard(noting(number)));
    }
    config.default_service(web::to(unknown_route));
}

/// The patterns of all routes, by their numbers.
fn patterns(service: &Service) -> Vec<&'static str> {
    let table = table(service.has_operator());
    table.into_iter().map(|(path, _)| path).collect()
}

/// Lets every request of its route pass, and notes which route that is. Nothing else sees the route of a request that
/// does not come to its end.
fn noting(number: RouteNumber) -> impl Guard {
    fn_guard(move |context| {
        note_route(&context.req_data(), number);
        true
    })
}

/// The route table. The operator's routes are not there at all without an operator.
fn table(operator: bool) -> Vec<(&'static str, Vec<On>)> {
    let mut table = vec![
        // The router tries the paths in this order: those of every sensor come first.
        ("/api/data", vec![post().to(data::ingest)]),
        ("/api/data/batch", vec![post().to(data::ingest_batch)]),
        ("/api/data/query", vec![post().to(query::query)]),
        ("/api/evaluations/due", vec![get().to(evaluations::due)]),
        (
            "/api/evaluations/{ruleId}/verdict",
            vec![post().to(evaluations::verdict)],
        ),
        ("/health", vec![get().to(health::alive)]),
        ("/ready", vec![get().to(health::ready)]),
        ("/metrics", vec![get().to(metrics::expose)]),
        ("/api/docs", vec![get().to(docs::describe)]),
        ("/", vec![get().to(dashboard::page)]),
        ("/assets/{file}", vec![get().to(dashboard::asset)]),
        ("/api/auth/status", vec![get().to(accounts::sign_up_state)]),
        ("/api/auth/signup", vec![post().to(accounts::sign_up)]),
        ("/api/auth/login", vec![post().to(accounts::log_in)]),
        ("/api/auth/me", vec![get().to(accounts::me)]),
        ("/api/auth/password", vec![post().to(accounts::change_password)]),
        ("/api/auth/renew", vec![post().to(accounts::renew)]),
        ("/api/auth/logout", vec![post().to(accounts::log_out)]),
        ("/api/changes", vec![get().to(changes::show)]),
        (
            "/api/organization",
            vec![get().to(organization::show), patch().to(organization::update)],
        ),
        (
            "/api/organization/keys",
            vec![
                get().to(organization_keys::list),
                post().to(organization_keys::create),
            ],
        ),
        (
            "/api/organization/keys/{keyId}",
            vec![delete().to(organization_keys::remove)],
        ),
        (
            "/api/buckets",
            vec![get().to(buckets::list), post().to(buckets::create)],
        ),
        (
            "/api/buckets/{id}",
            vec![
                get().to(buckets::show),
                patch().to(buckets::update),
                delete().to(buckets::remove),
            ],
        ),
        (
            "/api/buckets/{bucketId}/keys",
            vec![get().to(bucket_keys::list), post().to(bucket_keys::create)],
        ),
        (
            "/api/buckets/{bucketId}/keys/{keyId}",
            vec![delete().to(bucket_keys::remove)],
        ),
        (
            "/api/buckets/{bucketId}/sources",
            vec![get().to(sources::list), post().to(sources::create)],
        ),
        (
            "/api/buckets/{bucketId}/sources/{sourceId}",
            vec![
                get().to(sources::show),
                patch().to(sources::update),
                delete().to(sources::remove),
            ],
        ),
        ("/api/buckets/{bucketId}/alerts", vec![get().to(alerts::list)]),
        ("/api/alerts", vec![post().to(alerts::create)]),
        (
            "/api/alerts/{id}",
            vec![
                get().to(alerts::show),
                patch().to(alerts::update),
                delete().to(alerts::remove),
            ],
        ),
        ("/api/alerts/{id}/history", vec![get().to(alert_history::list)]),
        (
            "/api/alerts/{id}/deliveries",
            vec![get().to(webhook_deliveries::list_of_rule)],
        ),
        (
            "/api/analytics/buckets/{bucketId}",
            vec![get().to(analytics::bucket)],
        ),
        ("/api/analytics/overview", vec![get().to(analytics::overview)]),
        (
            "/api/webhooks",
            vec![get().to(webhooks::list), post().to(webhooks::create)],
        ),
        (
            "/api/webhooks/{id}",
            vec![
                get().to(webhooks::show),
                patch().to(webhooks::update),
                delete().to(webhooks::remove),
            ],
        ),
        (
            "/api/webhooks/{id}/test",
            vec![post().to(webhook_deliveries::test)],
        ),
        (
            "/api/webhooks/{id}/deliveries",
            vec![get().to(webhook_deliveries::list)],
        ),
        (
            "/api/webhooks/{id}/deliveries/{deliveryId}/redeliver",
            vec![post().to(webhook_deliveries::redeliver)],
        ),
    ];
    if operator {
        table.push(("/api/operator/organizations", vec![get().to(operator::list)]));
        table.push((
            "/api/operator/organizations/{id}",
            vec![patch().to(operator::change_plan)],
        ));
    }
    table
}

/// One path with its methods.
fn resource(path: &str, methods: Vec<On>) -> Resource {
    let allow = methods
        .iter()
        .map(|on| match on.0 {
            Method::GET => "GET, HEAD",
            ref method => method.as_str(),
        })
        .collect::<Vec<_>>()
        .join(", ");
    let refuse = move || {
        let refusal = HttpResponse::MethodNotAllowed()
            .insert_header((header::ALLOW, allow.as_str()))
            .finish();
        async { refusal }
    };
    methods
        .into_iter()
        .fold(web::resource(path), |resource, On(_, route)| {
            resource.route(route)
        })
        .default_service(web::to(refuse))
}

/// A method and what it does.
struct On(Method, Route);

impl On {
    fn to<F, Args>(self, handler: F) -> Self
    where
        F: actix_web::Handler<Args>,
        Args: actix_web::FromRequest + 'static,
        F::Output: actix_web::Responder + 'static,
    {
        Self(self.0, self.1.to(handler))
    }
}

fn on(method: Method) -> On {
    On(method.clone(), web::method(method))
}

/// Takes HEAD too: the listener leaves its body away (RFC 9110, 9.3.2).
fn get() -> On {
    On(Method::GET, web::route().guard(Any(Get()).or(Head())))
}

fn post() -> On {
    on(Method::POST)
}

fn patch() -> On {
    on(Method::PATCH)
}

fn delete() -> On {
    on(Method::DELETE)
}

async fn unknown_route() -> Result<HttpResponse, ServiceError> {
    Err(ServiceError::new(
        ErrorKind::NotFound,
        "there is no such route; /api/docs lists all",
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_and_every_description_is_a_route() {
        let api = docs::document().unwrap();
        let mut described = BTreeSet::new();
        for (path, item) in api["paths"].as_object().unwrap() {
            for method in ["get", "post", "patch", "delete", "put", "head"] {
                if item.get(method).is_some() {
                    described.insert((path.clone(), method.to_uppercase()));
                }
            }
        }
        let routed: BTreeSet<_> = table(true)
            .into_iter()
            .flat_map(|(path, methods)| {
                methods
                    .into_iter()
                    .map(move |on| (path.to_owned(), on.0.to_string()))
            })
            .collect();
        assert_eq!(routed, described);
    }
}
