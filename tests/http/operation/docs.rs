//! `/api/docs`: its two forms. The access matrix tests that it describes all served routes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::routes::{ROUTES, shape};
use crate::scene;
use crate::support::process::Server;

fn document() -> (Server, Value) {
    let server = scene::server();
    let described = server.client.get("/api/docs").send().json();
    (server, described)
}

/// Follows a reference; returns any other value unchanged.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or_else(|| panic!("{reference} points nowhere")),
        None => value,
    }
}

/// Method, path and description of every operation.
fn operations(document: &Value) -> impl Iterator<Item = (String, &String, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (method.to_uppercase(), path, operation))
    })
}

#[test]
fn every_operation_is_described_completely() {
    let (_server, document) = document();
    let mut ids = BTreeSet::new();
    let mut faults = Vec::new();
    for (method, path, operation) in operations(&document) {
        let mut check = |fine: bool, what: &str| {
            if !fine {
                faults.push(format!("{method} {path}: {what}"));
            }
        };
        let has_text = |member: &str| operation[member].as_str().is_some_and(|text| !text.is_empty());
        check(
            has_text("summary") && has_text("description"),
            "has no summary or no description",
        );
        check(
            ids.insert(operation["operationId"].to_string()),
            "its operationId is another's too",
        );
        check(operation["security"].is_array(), "does not say who may call it");
        let has_credential = operation["security"]
            .as_array()
            .is_some_and(|schemes| !schemes.is_empty());
        let responses = &operation["responses"];
        check(
            !has_credential || responses["401"].is_object(),
            "needs a credential and has no 401",
        );
        check(
            responses["500"].is_object() && responses["503"].is_object(),
            "has no 500 or no 503",
        );
        if let Some(body) = operation.get("requestBody") {
            let content = body["content"].as_object();
            let content = content.and_then(|kinds| kinds.values().next());
            check(content.is_some_and(has_example), "its body has no example");
            check(
                responses["413"].is_object() && responses["415"].is_object(),
                "takes a body and has no 413 or no 415",
            );
        }
        for (status, response) in responses.as_object().into_iter().flatten() {
            let response = resolved(&document, response);
            check(
                response["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                &format!("{status} is not described"),
            );
            check(
                response["headers"]["X-Request-Id"].is_object(),
                &format!("{status} has no X-Request-Id"),
            );
            let content = response["content"]
                .as_object()
                .and_then(|kinds| kinds.values().next());
            check(
                // These have no body.
                content.map_or(["204", "304"].contains(&status.as_str()), has_example),
                &format!("{status} has no example"),
            );
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            check(
                parameter["description"].is_string(),
                &format!("{} is not described", parameter["name"]),
            );
        }
    }
    assert!(
        faults.is_empty(),
        "contract 9: /api/docs is complete:\n{}",
        faults.join("\n")
    );
}

fn has_example(content: &Value) -> bool {
    !content["example"].is_null()
        || content["examples"]
            .as_object()
            .is_some_and(|named| !named.is_empty())
}

#[test]
fn documented_callers_agree_with_the_access_matrix() {
    let (_server, document) = document();
    let shapes = operations(&document).map(|(method, path, operation)| ((method, shape(path)), operation));
    let described: BTreeMap<_, _> = shapes.collect();
    for route in ROUTES {
        let operation = described[&(route.method.to_owned(), shape(route.path))];
        let schemes = operation["security"].as_array().into_iter().flatten();
        let mut callers: Vec<String> = Vec::new();
        for (scheme, types) in schemes.filter_map(Value::as_object).flatten() {
            match scheme.as_str() {
                "apiKey" => callers.extend(
                    types
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(|kind| kind.to_string()),
                ),
                other => callers.push(format!("{other:?}")),
            }
        }
        let mut expected: Vec<_> = route
            .roles
            .iter()
            .map(|role| format!("{role:?}").to_lowercase())
            .collect();
        let mut callers: Vec<_> = callers
            .iter()
            .map(|caller| caller.trim_matches('"').to_owned())
            .collect();
        expected.sort();
        callers.sort();
        assert_eq!(callers, expected, "{} {}", route.method, route.path);
    }
}

#[test]
fn a_browser_gets_a_page_without_external_requests() {
    let (server, document) = document();
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let answer = server.client.get("/api/docs").header("accept", browser).send();
    assert_eq!(answer.status, 200, "contract 9: a browser gets a readable page");
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = answer.header("content-security-policy").unwrap_or_default();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("inline"),
        "nothing may be loaded and no script may run: {policy}"
    );
    let page = answer.text();
    for loads in [
        "<script",
        "<link",
        "<img",
        "<iframe",
        "src=",
        "@import",
        "url(",
        " style=",
        " onclick=",
    ] {
        assert!(
            !page.contains(loads),
            "the page works offline and without scripts, but has `{loads}`"
        );
    }
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        assert!(
            page.contains(&format!("<h3 id=\"{id}\">")),
            "{method} {path} is not on the page"
        );
        assert!(
            page.contains(&format!("href=\"#{id}\"")),
            "{method} {path} is not in the contents"
        );
    }
    let anchors = page
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    for anchor in anchors {
        assert!(
            page.contains(&format!("id=\"{anchor}\"")),
            "#{anchor} leads nowhere"
        );
    }
}

#[test]
fn the_format_follows_the_accept_header() {
    let server = scene::server();
    for (accept, kind) in [
        (None, "application/json"),
        (Some("*/*"), "application/json"),
        (Some("application/json"), "application/json"),
        (Some("text/html;q=0.5, application/json"), "application/json"),
        (Some("text/html;q=0, */*;q=0.1"), "application/json"),
        (Some("text/html"), "text/html; charset=utf-8"),
        (
            Some("application/json;q=0.5, text/html"),
            "text/html; charset=utf-8",
        ),
    ] {
        let request = server.client.get("/api/docs");
        let answer = match accept {
            Some(accept) => request.header("accept", accept),
            None => request,
        };
        let answer = answer.send();
        assert_eq!(answer.header("content-type"), Some(kind), "accept: {accept:?}");
        assert_eq!(
            answer.header("vary"),
            Some("accept, accept-encoding"),
            "`Vary` names `Accept`"
        );
    }
}
