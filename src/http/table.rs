//! The table of endpoints, in the sections of `/api/docs`, and the router that is made from it.

use std::collections::BTreeMap;

use actix_web::guard::{Guard, fn_guard};
use actix_web::http::{Method, header};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpResponse, Resource, Scope};

use super::docs;
use super::endpoint::{Endpoint, ErrorMembers};
use super::resources::{
    accounts, alert_history, alerts, analytics, annotations, audit, backtest, boards, buckets, changes,
    cluster, dashboard, data, data_deletion, dimensions, evaluations, export, health, imports, invitations,
    keys, members, metrics, operator, organization, prometheus, query, resets, sessions, shared, silences,
    sources, webhook_deliveries, webhooks, writers,
};
use super::server::request_context::{RouteNumber, set_route};
use crate::error::{ErrorKind, ServiceError};
use crate::service::Node;

/// Endpoints that `/api/docs` groups together.
pub struct Section {
    pub tag: &'static str,
    pub about: &'static str,
    pub endpoints: Vec<Endpoint>,
}

/// Returns all endpoints. Without an operator, the operator's endpoints do not exist.
pub fn sections(operator: bool) -> Vec<Section> {
    let section = |tag, about, endpoints: Vec<Vec<Endpoint>>| Section {
        tag,
        about,
        endpoints: endpoints.into_iter().flatten().collect(),
    };
    let mut sections = vec![
        section(
            "accounts",
            "Signing up and in. The bearer token of a sign-in opens what its account owns.",
            vec![accounts::endpoints(), sessions::endpoints()],
        ),
        section(
            "organization",
            "The organization that the account belongs to, and its plan.",
            vec![changes::endpoints(), organization::endpoints()],
        ),
        section(
            "members",
            "People of the organization. An owner may do everything; an editor everything but to manage people, keys of the organization and its name; a viewer reads.",
            vec![
                members::endpoints(),
                invitations::endpoints(),
                resets::endpoints(),
                audit::endpoints(),
            ],
        ),
        section(
            "keys",
            "API keys: of the organization (admin, integration) and of a bucket (write, read).",
            vec![keys::endpoints()],
        ),
        section(
            "buckets",
            "Containers of data sources, with a retention of their own.",
            vec![buckets::endpoints()],
        ),
        section(
            "data sources",
            "Sensors and applications, each with a schema of named fields.",
            vec![sources::endpoints(), dimensions::endpoints()],
        ),
        section(
            "data",
            "Points, in and out.",
            vec![
                data::endpoints(),
                data_deletion::endpoints(),
                query::endpoints(),
                export::endpoints(),
                imports::endpoints(),
            ],
        ),
        section(
            "agents",
            "Protocols that agents already speak.",
            vec![writers::endpoints()],
        ),
        section(
            "Prometheus queries",
            "What Grafana's data source for Prometheus asks. With an admin key, the path or a parameter names the bucket.",
            vec![prometheus::endpoints()],
        ),
        section(
            "annotations",
            "Notes at a time or for a while, shown on charts.",
            vec![annotations::endpoints()],
        ),
        section(
            "boards",
            "Panels that show what queries answer, and links that show a board to others.",
            vec![boards::endpoints(), shared::endpoints()],
        ),
        section(
            "alert rules",
            "What is wrong, in words; where each rule stands, and what it has done.",
            vec![
                alerts::endpoints(),
                alert_history::endpoints(),
                backtest::endpoints(),
                webhook_deliveries::endpoints_of_rules(),
            ],
        ),
        section(
            "silences",
            "Times in which rules that fire are not delivered.",
            vec![silences::endpoints()],
        ),
        section(
            "evaluations",
            "For external evaluators: which rules are due, and what was found.",
            vec![evaluations::endpoints()],
        ),
        section(
            "webhooks",
            "Receivers of events, and every delivery to them.",
            vec![webhooks::endpoints(), webhook_deliveries::endpoints()],
        ),
        section(
            "analytics",
            "Counts and usage, of a bucket and of the organization.",
            vec![analytics::endpoints()],
        ),
    ];
    if operator {
        sections.push(section(
            "operator",
            "For whoever runs the server. These routes are there when the server has an `operator.token`.",
            vec![operator::endpoints(), cluster::endpoints()],
        ));
    }
    sections.push(section(
        "operation",
        "Whether the server lives and is ready, what it counts, this description, and the dashboard.",
        vec![
            health::endpoints(),
            metrics::endpoints(),
            docs::endpoints(),
            dashboard::endpoints(),
        ],
    ));
    sections
}

/// A path and its endpoints, in the order in which the router tries them.
struct Route {
    path: &'static str,
    endpoints: Vec<Endpoint>,
}

fn routes(operator: bool) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for endpoint in sections(operator)
        .into_iter()
        .flat_map(|section| section.endpoints)
    {
        let path = endpoint.path;
        match routes.iter_mut().find(|route| route.path == path) {
            Some(route) => route.endpoints.push(endpoint),
            None => routes.push(Route {
                path,
                endpoints: vec![endpoint],
            }),
        }
    }
    // The router compares paths in order: the paths that every sensor uses come first, and a word before an id.
    routes.sort_by_key(|route| {
        let ids = route.path.matches('{').count();
        (!route.path.starts_with("/api/data"), ids)
    });
    routes
}

/// Registers all routes. An unknown path is 404; an unsupported method is 405 with `Allow`.
///
/// A path with ids is a regular expression, which is slow to compare. Such paths are in scopes by their first words and by
/// their length in words, so that a request is compared only with those that begin like its own and are as long.
pub fn register(config: &mut ServiceConfig, node: &Node) {
    let mut scopes: BTreeMap<(&str, usize), Vec<Resource>> = BTreeMap::new();
    for (number, Route { path, endpoints }) in (0..).zip(routes(node.has_operator())) {
        let scope = scope_of(path);
        let resource = resource(&path[scope.len()..], endpoints).guard(setting_route(number));
        match scope {
            "" => _ = config.service(resource),
            _ => scopes.entry((scope, words_of(path))).or_default().push(resource),
        }
    }
    for ((scope, words), resources) in scopes {
        let of_length = fn_guard(move |context| words_of(context.head().uri.path()) == words);
        let scope = web::scope(scope).guard(of_length);
        config.service(resources.into_iter().fold(scope, Scope::service));
    }
    config.default_service(web::to(unknown_route));
}

/// The first words of a path with ids, `/api/buckets` of `/api/buckets/{bucketId}`; empty for a path without.
fn scope_of(path: &str) -> &str {
    let words = if path.starts_with("/api/") { 2 } else { 1 };
    match path.match_indices('/').nth(words) {
        Some((end, _)) if path.contains('{') => &path[..end],
        _ => "",
    }
}

/// The length of a path. An id is one word: the router leaves an encoded slash in it as it is.
fn words_of(path: &str) -> usize {
    path.matches('/').count()
}

/// Returns the paths of all routes, indexed by route number.
pub fn patterns(node: &Node) -> Vec<&'static str> {
    let routes = routes(node.has_operator());
    routes.into_iter().map(|route| route.path).collect()
}

/// A guard that always passes and records the route of the request. Without it, the route of a request that does not
/// complete would be unknown.
fn setting_route(number: RouteNumber) -> impl Guard {
    fn_guard(move |context| {
        set_route(&context.req_data(), number);
        true
    })
}

fn resource(path: &str, endpoints: Vec<Endpoint>) -> Resource {
    let methods: Vec<_> = endpoints
        .iter()
        .map(|endpoint| match endpoint.method {
            Method::GET => "GET, HEAD",
            ref method => method.as_str(),
        })
        .collect();
    let allow = methods.join(", ");
    // All endpoints of a path have the same.
    let errors = endpoints.first().map(|endpoint| endpoint.errors);
    let refuse = move || {
        let mut refusal = HttpResponse::MethodNotAllowed()
            .insert_header((header::ALLOW, allow.as_str()))
            .finish();
        if let Some(errors) = errors {
            refusal.extensions_mut().insert::<ErrorMembers>(errors);
        }
        async { refusal }
    };
    let routes = endpoints.into_iter().map(Endpoint::route);
    routes
        .fold(web::resource(path), Resource::route)
        .default_service(web::to(refuse))
}

async fn unknown_route() -> Result<HttpResponse, ServiceError> {
    Err(ServiceError::new(
        ErrorKind::NotFound,
        "there is no such route; /api/docs lists all",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::docs;

    #[test]
    fn every_endpoint_is_described_once() {
        let document = docs::document().unwrap();
        let mut endpoints = 0;
        for endpoint in sections(true).iter().flat_map(|section| &section.endpoints) {
            let method = endpoint.method.as_str().to_ascii_lowercase();
            let operation = &document["paths"][endpoint.path][&method];
            assert_eq!(operation["operationId"], endpoint.id, "{}", endpoint.path);
            // The assets of the dashboard are found by name, not by an id.
            let placeholders =
                endpoint.path.matches('{').count() - usize::from(endpoint.path.contains("{file}"));
            assert_eq!(endpoint.ids, placeholders, "{}", endpoint.path);
            endpoints += 1;
        }
        assert_eq!(
            docs::operations().unwrap().len(),
            endpoints,
            "texts without an endpoint"
        );
    }
}
