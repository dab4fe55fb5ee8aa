//! Deeply nested bodies, which overflow the stack of a recursive parser: the tests show that the process survives, and
//! that each body fails only its own request.

use serde_json::{Value, json};

use crate::routes::{Ids, OPERATOR_ROUTES, PUBLIC_ROUTES, ROUTES, Role, Route};
use crate::scene::{self, UNKNOWN_ID};
use crate::support::process::OPERATOR_TOKEN;

const LEVELS: usize = 100_000;
/// The size limit of a single point's body, with a margin.
const BYTES_MAX: usize = 102_400 - 1_000;
/// The placeholder of the bomb in a body.
const HERE: &str = "@@";

/// Deeply nested texts, unclosed and closed.
fn bombs() -> Vec<String> {
    let levels = |bytes: usize| LEVELS.min(BYTES_MAX / bytes);
    let down = |open: &str| open.repeat(levels(open.len()));
    let there_and_back = |open: &str, bottom: &str, close: &str| {
        let levels = levels(open.len() + close.len());
        format!("{}{bottom}{}", open.repeat(levels), close.repeat(levels))
    };
    vec![
        down("["),
        down(r#"{"a":"#),
        down(r#"[{"a":"#),
        there_and_back("[", "", "]"),
        there_and_back(r#"{"a":"#, "1", "}"),
        there_and_back(r#"[{"a":"#, "null", "}]"),
    ]
}

/// Members that routes read below their first level.
fn deep_members() -> Vec<(&'static str, Value)> {
    let input =
        |bomb: Value| json!({"intervalSeconds": 60, "windowSeconds": 60, "parameters": {}, "inputs": bomb});
    vec![
        ("ignored", json!(HERE)),
        ("ignored", json!({"deeper": [HERE]})),
        ("metadata", json!(HERE)),
        ("metadata", json!({"a": HERE})),
        ("values", json!({"level": HERE})),
        ("schema", json!(HERE)),
        ("schema", json!({"level": HERE})),
        ("schema", json!({"level": {"type": "number", "ignored": HERE}})),
        ("evidence", json!(HERE)),
        ("evidence", json!({"a": HERE})),
        ("filters", json!(HERE)),
        ("filters", json!({"metadata": {"a": HERE}})),
        ("filters", json!({"ignored": HERE})),
        ("evaluation", json!(HERE)),
        ("evaluation", json!({"parameters": {"a": HERE}})),
        ("evaluation", input(json!([HERE]))),
        (
            "evaluation",
            input(json!([{"key": "x", "field": "level", "ignored": HERE}])),
        ),
        ("retryConfig", json!({"maxRetries": HERE})),
        ("events", json!([HERE])),
        ("dataPoints", json!([HERE])),
        (
            "dataPoints",
            json!([{"dataSourceId": UNKNOWN_ID, "values": {"level": 1}, "ignored": HERE}]),
        ),
        (
            "dataPoints",
            json!([{"dataSourceId": UNKNOWN_ID, "values": {"level": 1}, "metadata": {"a": HERE}}]),
        ),
        (
            "dataPoints",
            json!([{"dataSourceId": UNKNOWN_ID, "values": {"level": HERE}}]),
        ),
    ]
}

/// Bodies of a route with the bomb's placeholder: the whole body, each of its members, and the deep ones.
fn bodies(route: &Route, ids: &Ids) -> Vec<String> {
    let body: Value = serde_json::from_str(&route.body(ids).unwrap()).unwrap();
    let with = |name: &str, value: &Value| {
        let mut body = body.clone();
        body[name] = value.clone();
        body.to_string()
    };
    let own = body.as_object().into_iter().flatten();
    let own = own.map(|(name, _)| with(name, &json!(HERE)));
    let deep = deep_members();
    let deep = deep.iter().map(|(name, value)| with(name, value));
    [json!(HERE).to_string()]
        .into_iter()
        .chain(own)
        .chain(deep)
        .collect()
}

#[test]
fn a_hundred_thousand_levels_are_400_and_do_not_crash_the_server() {
    let (server, account, bucket) = scene::bucket();
    let (pid, source) = (server.pid(), bucket.source("gauge", &["level"]));
    let ids = Ids {
        bucket: bucket.id.clone(),
        rule: bucket.evaluated_rule("judged", &source),
        source,
        organization: account.organization_id.clone(),
        ..Ids::all(UNKNOWN_ID)
    };
    let bombs = bombs();
    let routes = ROUTES.iter().chain(OPERATOR_ROUTES).chain(PUBLIC_ROUTES);
    for route in routes.filter(|route| route.body.is_some()) {
        for body in bodies(route, &ids) {
            for bomb in &bombs {
                let armed = body.replace(&json!(HERE).to_string(), bomb);
                let request = server.client.request(route.method, &route.path(&ids)).body(armed);
                let request = if route.roles.contains(&Role::Operator) {
                    request.bearer(OPERATOR_TOKEN)
                } else if route.roles.is_empty() {
                    request
                } else {
                    request.bearer(&account.token)
                };
                request.send().refused(
                    400,
                    &format!("{} {} with {} in {body}", route.method, route.path, &bomb[..6]),
                );
            }
        }
    }
    assert_eq!(
        server.client.get("/health").send().status,
        200,
        "the server lives"
    );
    assert_eq!(server.pid(), pid, "and it is the same");
}

/// The depth limit must not refuse realistic bodies.
#[test]
fn a_hundred_levels_are_accepted() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let deep: Value = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let point =
        json!({"dataSourceId": source, "values": {"level": 1}, "metadata": {"a": deep}, "ignored": deep});
    bucket
        .single(&point)
        .expect(201, "contract 4: metadata is an object of any members");
    bucket
        .batch(&[point])
        .expect(201, "contract 4: metadata is an object of any members");
    assert_eq!(
        bucket.rows(&json!({}))[0]["metadata"]["a"],
        deep,
        "contract 4: returned exactly as sent"
    );
}
