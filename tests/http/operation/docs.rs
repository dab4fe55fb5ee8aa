//! `/api/docs`: what it describes is what is served, and what the access matrix covers.

use std::collections::BTreeSet;

use crate::routes::ROUTES;
use crate::scene;

/// Routes without a credential, which are in no matrix.
const PUBLIC: &[(&str, &str)] = &[("POST", "/api/auth/signup"), ("POST", "/api/auth/login")];

/// Routes of the operator, tested with the plans.
const OPERATOR: &str = "/api/operator/";

/// `/api/buckets/{bucketId}` → `/api/buckets/{}`: names of parameters are the description's own.
fn shape(path: &str) -> String {
    let segment = |segment: &str| {
        if segment.starts_with('{') {
            "{}".to_owned()
        } else {
            segment.to_owned()
        }
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[test]
fn every_route_is_described_and_every_described_route_is_in_the_matrix() {
    let server = scene::server();
    let answer = server.client.get("/api/docs").send();
    let described = answer.expect(200, "contract 9: GET /api/docs (no key): OpenAPI 3.1 as JSON");
    let version = described["openapi"].as_str().unwrap_or_default();
    assert!(
        version.starts_with("3.1"),
        "contract 9: OpenAPI 3.1, not `{version}`"
    );
    let found: BTreeSet<(String, String)> = described["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, _)| (method.to_uppercase(), shape(path)))
        })
        .filter(|(_, path)| path.starts_with("/api/") && path != "/api/docs" && !path.starts_with(OPERATOR))
        .collect();
    let listed = ROUTES
        .iter()
        .map(|route| (route.method, route.path))
        .chain(PUBLIC.iter().copied());
    let listed: BTreeSet<(String, String)> = listed
        .map(|(method, path)| (method.to_owned(), shape(path)))
        .collect();
    let undescribed: Vec<_> = listed.difference(&found).collect();
    assert!(
        undescribed.is_empty(),
        "contract 9: /api/docs describes every route; these are missing: {undescribed:?}"
    );
    let untested: Vec<_> = found.difference(&listed).collect();
    assert!(
        untested.is_empty(),
        "these routes are served but not in the tests' ROUTES, so no access is tested: {untested:?}"
    );
}
