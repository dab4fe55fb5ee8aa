//! Small print H: dimensions in inputs of rules.

use serde_json::{Value, json};

use super::{labelled, scene_of, split_source};
use crate::scene::{assert_faults, call};
use crate::support::given::Bucket;
use crate::support::time::{HOUR, now_ns};

fn rule(bucket: &Bucket, source: &str, input: &Value) -> Value {
    json!({
        "name": "r", "bucketId": bucket.id, "dataSourceId": source, "naturalLanguageQuery": "v is odd",
        "evaluation": {"intervalSeconds": 60, "windowSeconds": 300, "inputs": [input], "parameters": {}}
    })
}

#[test]
fn they_go_into_the_query_of_a_due_rule() {
    let (_server, _, bucket, source) = scene_of(&[json!({"host": "a"}), json!({"host": "b"})]);
    let input = json!({
        "key": "k", "field": "v", "aggregation": "avg", "groupBy": "minute",
        "dimensions": {"host": {"matches": "a|b"}}, "groupByDimensions": ["host"]
    });
    let created = call(
        &bucket.client,
        &bucket.admin,
        "POST",
        "/api/alerts",
        &rule(&bucket, &source, &input),
    );
    let created = created.expect(201, "small print H1");
    let shown = &created["alertRule"]["evaluation"]["inputs"][0];
    assert_eq!(shown["dimensions"], input["dimensions"], "they are shown");
    assert_eq!(shown["groupByDimensions"], input["groupByDimensions"]);
    let due = call(
        &bucket.client,
        &bucket.admin,
        "GET",
        "/api/evaluations/due",
        &Value::Null,
    )
    .expect(200, "due");
    let query = due
        .pointer("/evaluations/0/inputs/0/query")
        .unwrap_or_else(|| panic!("a due rule with its query: {due}"));
    assert_eq!(
        query["filters"]["dimensions"], input["dimensions"],
        "small print H1: becomes query.filters.dimensions"
    );
    assert_eq!(
        query["groupByDimensions"],
        json!(["host"]),
        "small print H1: query.groupByDimensions"
    );
    let answer = call(&bucket.client, &bucket.admin, "POST", "/api/data/query", query);
    answer.expect(200, "the query is ready");
}

#[test]
fn faults_are_at_the_input() {
    let (_server, _, bucket, source) = scene_of(&[json!({"host": "a"})]);
    let empty = split_source(&bucket, "empty", &json!("all"));
    let create = |source: &str, mut input: Value| {
        input["key"] = json!("k");
        input["field"] = json!("v");
        call(
            &bucket.client,
            &bucket.admin,
            "POST",
            "/api/alerts",
            &rule(&bucket, source, &input),
        )
    };
    let at = |below: &str| format!("evaluation/inputs/0/{}", below.replace('.', "/"));
    for (input, path) in [
        (json!({"dimensions": {"host": 1}}), at("dimensions/host")),
        (json!({"dimensions": {"nobody": "a"}}), at("dimensions/nobody")),
        (json!({"groupByDimensions": ["host"]}), at("groupByDimensions")),
        (
            json!({"aggregation": "avg", "groupBy": "hour", "groupByDimensions": ["nobody"]}),
            at("groupByDimensions/0"),
        ),
        (
            json!({"dimensions": {"host": {"matches": "("}}}),
            at("dimensions/host/matches"),
        ),
    ] {
        assert_faults(
            &create(&source, input.clone()),
            &[&path],
            &format!("small print H1: {input}"),
        );
    }
    create(&empty, json!({"dimensions": {"any": "a"}}))
        .expect(201, "small print H1: with D6's rule for \"all\"");
    let created = create(&source, json!({"dimensions": {"host": "a"}})).expect(201, "a rule");
    let path = format!("/api/alerts/{}", created["alertRule"]["_id"].as_str().unwrap());
    let gone = json!({"bucketId": bucket.id, "filters": {"dataSourceIds": [source]}});
    call(&bucket.client, &bucket.admin, "POST", "/api/data/delete", &gone).expect(200, "delete");
    bucket.send(&[labelled(&source, now_ns() - HOUR, 1, &json!({"other": "x"}))]);
    let renamed = call(
        &bucket.client,
        &bucket.admin,
        "PATCH",
        &path,
        &json!({"name": "renamed"}),
    );
    renamed.expect(
        200,
        "a rule whose dimension has no points any more can be renamed",
    );
}
