//! The `query` bodies of due rules: posted unchanged, they return the data of the input.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_timestamp, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{HOUR, MINUTE, SECOND, now_ns, timestamp};
use crate::support::watch::Evaluator;

/// The `query` of an input of the only due rule.
#[track_caller]
fn listed_query(evaluator: &Evaluator, key: &str) -> Value {
    let due = evaluator.due("");
    let inputs = array(&due[0], "/inputs");
    let input = inputs.iter().find(|input| input["key"] == key);
    input.unwrap_or_else(|| panic!("spec: the input `{key}` is listed: {inputs:?}"))["query"].clone()
}

/// Posts the query unchanged; returns the answer.
#[track_caller]
fn post_query(evaluator: &Evaluator, query: &Value) -> Value {
    let request = evaluator.client.post("/api/data/query").key(&evaluator.key);
    let answer = request.json(query).send();
    answer.expect(200, "spec: `query` is a ready-made body for POST /api/data/query")
}

fn rule(bucket: &Bucket, source: &str, inputs: &Value) -> String {
    bucket.rule(&json!({
        "dataSourceId": source, "name": "judged", "naturalLanguageQuery": "level > 5",
        "evaluation": {"intervalSeconds": 60, "windowSeconds": 600, "inputs": inputs, "parameters": {}},
    }))
}

#[test]
fn a_raw_input_gets_every_point_of_its_window() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level", "depth"]);
    let other = bucket.source("other", &["level"]);
    let evaluator = account.evaluator();
    // More than enough for automatic downsampling, with points before the window, after it and of another source.
    let from = (now_ns() - 9 * MINUTE) / SECOND * SECOND;
    let within: Vec<Value> = (0..540)
        .map(|nth| {
            point(
                &source,
                from + nth * SECOND,
                &json!({"level": nth, "depth": -nth}),
            )
        })
        .collect();
    bucket.send(&within);
    bucket.send(&[
        point(&source, now_ns() - 11 * MINUTE, &json!({"level": 1000})),
        point(&source, now_ns() + HOUR, &json!({"level": 2000})),
        point(&other, now_ns() - MINUTE, &json!({"level": 3000})),
        point(&source, from, &json!({"depth": 4000})),
    ]);
    rule(&bucket, &source, &json!([{"key": "x", "field": "level"}]));
    let before = now_ns();
    let query = listed_query(&evaluator, "x");
    let after = now_ns();
    assert_eq!(
        query["bucketId"], bucket.id,
        "contract 6: a ready-made body: {query}"
    );
    assert_eq!(query["limit"], 10_000, "contract 6: `limit: 10000`: {query}");
    assert_eq!(query["sort"], "asc", "contract 6: `sort: \"asc\"`: {query}");
    assert_eq!(
        query["filters"]["fields"],
        json!(["level"]),
        "contract 6: `fields: [field]`: {query}"
    );
    assert_eq!(
        query["filters"]["dataSourceIds"],
        json!([source]),
        "spec: the rule's own source: {query}"
    );
    assert_eq!(
        query["downsampling"], false,
        "contract 6: `downsampling: false` for an input without aggregation: {query}"
    );
    assert_eq!(
        (query.get("aggregation"), query.get("groupBy")),
        (None, None),
        "contract 6: an evaluator is never handed averages it did not ask for: {query}"
    );
    assert_window(&query, (before, after), 600);
    let answer = post_query(&evaluator, &query);
    let rows = array(&answer, "/data");
    let expected: Vec<Value> = (0..540).map(|level| json!({"level": level})).collect();
    assert_eq!(
        column(&rows, "/values"),
        expected,
        "spec: the evaluator reads the number from `values[field]` of each row"
    );
    assert_eq!(
        answer["metadata"]["hasMore"], false,
        "all of it: {}",
        answer["metadata"]
    );
}

/// Asserts that the window ends at the poll and has the configured length.
#[track_caller]
fn assert_window(query: &Value, (before, after): (i64, i64), seconds: i64) {
    let (start, end) = (&query["filters"]["startTime"], &query["filters"]["endTime"]);
    assert_timestamp(start, "startTime");
    assert_timestamp(end, "endTime");
    let sentence = "contract 6: the window ends at the poll";
    let between = |bound: &Value, offset: i64| {
        // Timestamps with the same number of digits compare as texts.
        let second = |ns: i64| timestamp(ns / SECOND * SECOND)[..19].to_owned();
        let found = bound.as_str().unwrap()[..19].to_owned();
        second(before - offset) <= found && found <= second(after - offset)
    };
    assert!(between(end, 0), "{sentence}: {query}");
    assert!(
        between(start, seconds * SECOND),
        "spec: an observation window of {seconds} seconds: {query}"
    );
    assert_eq!(
        start.as_str().unwrap().get(19..),
        end.as_str().unwrap().get(19..),
        "spec: a window of whole seconds: {query}"
    );
}

#[test]
fn a_grouped_input_gets_its_groups() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let minute = now_ns() / MINUTE * MINUTE - 5 * MINUTE;
    let level = |at: i64, level: i64| point(&source, at, &json!({"level": level}));
    bucket.send(&[
        level(minute, 1),
        level(minute + SECOND, 3),
        level(minute + MINUTE, 10),
        level(minute + MINUTE + SECOND, 20),
        level(minute + MINUTE + 2 * SECOND, 60),
    ]);
    let input = |aggregation: &str| json!({"key": aggregation, "field": "level", "aggregation": aggregation, "groupBy": "minute"});
    let aggregations = ["avg", "sum", "min", "max", "count"];
    rule(
        &bucket,
        &source,
        &aggregations.iter().map(|name| input(name)).collect(),
    );
    let expected = [[2, 30], [4, 90], [1, 10], [3, 60], [2, 3]];
    for (aggregation, expected) in aggregations.into_iter().zip(expected) {
        let query = listed_query(&evaluator, aggregation);
        assert_eq!(
            (&query["aggregation"], &query["groupBy"]),
            (&json!(aggregation), &json!("minute")),
            "spec: the input's aggregation: {query}"
        );
        assert_eq!(query["limit"], 10_000, "contract 6: `limit: 10000`: {query}");
        assert_eq!(query["sort"], "asc", "contract 6: `sort: \"asc\"`: {query}");
        let rows = array(&post_query(&evaluator, &query), "/data");
        assert_eq!(
            column(&rows, "/values/level"),
            expected.map(|value| json!(value)),
            "spec: `{aggregation}` by minute, read from `values[field]`"
        );
    }
}

#[test]
fn an_input_may_name_another_source_and_a_window_of_its_own() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let weather = bucket.source("weather", &["wind"]);
    let evaluator = account.evaluator();
    let now = now_ns();
    bucket.send(&[
        point(&source, now - 30 * MINUTE, &json!({"level": 1})),
        point(&source, now - 5 * MINUTE, &json!({"level": 2})),
        point(&weather, now - 30 * MINUTE, &json!({"wind": 3})),
        point(&weather, now - 5 * MINUTE, &json!({"wind": 4})),
    ]);
    let inputs = json!([
        {"key": "level", "field": "level"},
        {"key": "wind", "field": "wind", "dataSourceId": weather},
        {"key": "long", "field": "wind", "dataSourceId": weather, "windowSeconds": 3600},
    ]);
    rule(&bucket, &source, &inputs);
    let due = evaluator.due("").remove(0);
    assert_eq!(
        column(&array(&due, "/inputs"), "/key"),
        [json!("level"), json!("wind"), json!("long")],
        "spec: one entry for each input, in its order"
    );
    for (key, field, expected) in [
        ("level", "level", vec![2]),
        ("wind", "wind", vec![4]),
        ("long", "wind", vec![3, 4]),
    ] {
        let rows = array(&post_query(&evaluator, &listed_query(&evaluator, key)), "/data");
        let expected: Vec<Value> = expected.into_iter().map(|value| json!(value)).collect();
        assert_eq!(
            column(&rows, &format!("/values/{field}")),
            expected,
            "spec: `dataSourceId` and `windowSeconds` of the input `{key}`"
        );
    }
    let window = listed_query(&evaluator, "long");
    assert_window(&window, (now, now_ns()), 3600);
}

#[test]
fn an_input_is_filled_and_follows_a_zone() {
    let (_server, account, bucket) = scene::bucket();
    let schema = json!({"level": {"type": "number"}, "open": {"type": "boolean"}});
    let source = bucket.source_with(&json!({"name": "gauge", "schema": schema}));
    let evaluator = account.evaluator();
    let sent = json!({
        "key": "x", "field": "level", "aggregation": "p95", "groupBy": "15m", "fill": 0, "timezone": "Asia/Kolkata",
        "windowSeconds": 7_200,
    });
    let open = json!({"key": "o", "field": "open", "aggregation": "trueShare", "groupBy": "all", "fill": "previous"});
    let id = rule(&bucket, &source, &json!([sent, open]));
    let shown = evaluator
        .client
        .get(&format!("/api/alerts/{id}"))
        .key(&account.admin)
        .send();
    let shown = shown.expect(200, "the rule")["alertRule"]["evaluation"]["inputs"].clone();
    assert_eq!(shown, json!([sent, open]), "as it was sent");
    let query = listed_query(&evaluator, "x");
    let members = ["aggregation", "groupBy", "fill", "timezone"].map(|member| query[member].clone());
    let expected = ["aggregation", "groupBy", "fill", "timezone"].map(|member| sent[member].clone());
    assert_eq!(
        members, expected,
        "contract 11: and then goes into its `query`: {query}"
    );
    let rows = array(&post_query(&evaluator, &query), "/data");
    assert_eq!(rows.len(), 9, "every step of two hours");
    assert!(rows.iter().all(|row| row["level"] == 0), "silence is zeros");
    for (change, path) in [
        (json!({"fill": "zero"}), "fill"),
        // Its query would be refused.
        (json!({"groupBy": "1s", "windowSeconds": 31_536_000}), "fill"),
        (json!({"fill": 0, "aggregation": null, "groupBy": null}), "fill"),
        (json!({"timezone": "Asia/Nowhere"}), "timezone"),
        (json!({"compare": {"offset": "1d"}}), "compare"),
        (json!({"top": {"n": 1, "by": "max"}}), "top"),
        (json!({"aggregation": "trueShare"}), "aggregation"),
    ] {
        let mut input = sent.clone();
        for (name, value) in change.as_object().unwrap() {
            input[name] = value.clone();
        }
        let body = json!({
            "bucketId": bucket.id, "dataSourceId": source, "name": "judged", "naturalLanguageQuery": "level > 5",
            "evaluation": {"intervalSeconds": 60, "windowSeconds": 600, "inputs": [input], "parameters": {}},
        });
        let refused = evaluator
            .client
            .post("/api/alerts")
            .key(&account.admin)
            .json(&body)
            .send();
        scene::assert_faults(
            &refused,
            &[&format!("evaluation/inputs/0/{path}")],
            "small print A2, A3",
        );
    }
}
