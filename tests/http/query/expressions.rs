//! `expressions`: arithmetic over the fields of a row.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column, with_members};
use crate::support::given::{Bucket, point};
use crate::support::process::Server;
use crate::support::time::{DAY, MINUTE, now_ns};

fn scene() -> (Server, Bucket) {
    let (server, _, bucket) = scene::bucket();
    let schema = json!({
        "a": {"type": "number"}, "b": {"type": "number"}, "energy (kWh)": {"type": "number"}, "state": {"type": "string"}
    });
    let source = bucket.source_with(&json!({"name": "one", "schema": schema}));
    let start = now_ns() / DAY * DAY - 2 * DAY;
    let rows = [
        json!({"a": 6, "b": 3}),
        json!({"a": 1, "b": 0, "state": "on"}),
        json!({"b": 5}),
        json!({"state": "off", "energy (kWh)": 8}),
    ];
    let entries: Vec<Value> = (0..)
        .zip(&rows)
        .map(|(minute, values)| point(&source, start + minute * MINUTE, values))
        .collect();
    bucket.send(&entries);
    (server, bucket)
}

fn ratio() -> Value {
    json!([{"name": "ratio", "expression": "a / b"}])
}

#[test]
fn results_stand_in_raw_rows() {
    let (_server, bucket) = scene();
    let rows = array(&bucket.query(&json!({"expressions": ratio()})), "/data");
    assert_eq!(
        column(&rows, "/values"),
        [
            json!({"a": 6, "b": 3, "ratio": 2}),
            json!({"a": 1, "b": 0, "state": "on", "ratio": null}),
            json!({"b": 5, "ratio": null}),
            json!({"energy (kWh)": 8, "state": "off", "ratio": null}),
        ],
        "small print F1, F5"
    );
    let of_text = json!([
        {"name": "x", "expression": "state * 2"}, {"name": "y", "expression": "`energy (kWh)` * 2"}
    ]);
    let rows = array(
        &bucket.query(&json!({"expressions": of_text, "sort": "desc", "limit": 1})),
        "/data",
    );
    assert_eq!(
        rows[0]["values"],
        json!({"energy (kWh)": 8, "state": "off", "x": null, "y": 16}),
        "small print F5"
    );
    let columns = bucket.query(&json!({"expressions": ratio(), "layout": "columns"}));
    assert_eq!(
        columns["columns"]["values"]["ratio"],
        json!([2, null, null, null])
    );
}

#[test]
fn a_row_of_nothing_but_a_result_is_a_row() {
    let (_server, bucket) = scene();
    let ask = |more: &Value| {
        let body = json!({"expressions": ratio(), "filters": {"fields": ["energy (kWh)"]}});
        bucket.query(&with_members(body, more))
    };
    let expected = [json!({"ratio": 2}), json!({"energy (kWh)": 8, "ratio": null})];
    let rows = array(&ask(&json!({})), "/data");
    assert_eq!(column(&rows, "/values"), expected, "small print F6");
    // Page by page.
    let first = ask(&json!({"limit": 1}));
    assert_eq!(column(&array(&first, "/data"), "/values"), expected[..1]);
    let next = ask(&json!({"limit": 1, "cursor": first["metadata"]["nextCursor"]}));
    assert_eq!(column(&array(&next, "/data"), "/values"), expected[1..]);
    assert_eq!(next["metadata"]["hasMore"], false);
    let other = json!({
        "cursor": first["metadata"]["nextCursor"], "expressions": [{"name": "ratio", "expression": "a * b"}],
        "filters": {"fields": ["energy (kWh)"]},
    });
    assert_faults(
        &bucket.post_query(&other),
        &["cursor"],
        "a cursor belongs to its question",
    );
    let grouped = ask(&json!({"aggregation": "sum", "groupBy": "minute"}));
    let found = array(&grouped, "/data");
    assert_eq!(column(&found, "/values"), expected, "small print F6");
    assert_eq!(
        (&found[0]["ratio"], &found[0]["a"]),
        (&json!(2), &Value::Null),
        "small print F1"
    );
}

#[test]
fn results_of_groups_are_computed_for_each_aggregation() {
    let (_server, bucket) = scene();
    let body =
        |aggregation: Value| json!({"aggregation": aggregation, "groupBy": "day", "expressions": ratio()});
    let one = &bucket.query(&body(json!("sum")))["data"][0];
    assert_eq!(
        (&one["values"]["ratio"], &one["ratio"]),
        (&json!(7.0 / 8.0), &json!(7.0 / 8.0)),
        "small print F1"
    );
    let several = &bucket.query(&body(json!(["sum", "count", "last"])))["data"][0];
    assert_eq!(
        several["values"]["ratio"],
        json!({"sum": 7.0 / 8.0, "count": 2.0 / 3.0, "last": 0.2}),
        "small print F1"
    );
    assert!(several.get("ratio").is_none(), "small print D4");
}

#[test]
fn results_stand_beside_downsampled_averages() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("one", &["a", "b"]);
    let start = now_ns() / DAY * DAY - 2 * DAY;
    let entries: Vec<Value> = (0..600)
        .map(|nth| point(&source, start + nth * MINUTE, &json!({"a": nth, "b": 2})))
        .collect();
    bucket.send(&entries);
    for (body, first) in [
        (json!({"expressions": ratio()}), json!(14.75)),
        (json!({"expressions": ratio(), "maxPoints": 150}), json!(1)),
    ] {
        let answer = bucket.query(&body);
        assert_eq!(answer["metadata"]["downsamplingApplied"], true);
        let row = &answer["data"][0];
        assert_eq!(
            (&row["values"]["ratio"], &row["ratio"]),
            (&first, &first),
            "small print F7"
        );
        assert_eq!(
            scene::members(&row["stats"]),
            ["a", "b"],
            "small print F7: no stats of its own"
        );
        assert_eq!(row["stats"]["b"]["min"], 2);
        let mut columns = body.clone();
        columns["layout"] = json!("columns");
        let columns = bucket.query(&columns);
        assert_eq!(columns["columns"]["values"]["ratio"][0], first);
        assert_eq!(scene::members(&columns["columns"]["stats"]), ["a", "b"]);
    }
}

#[test]
fn expressions_have_their_limits() {
    let (_server, bucket) = scene();
    let ask = |expressions: &Value| bucket.post_query(&json!({"expressions": expressions}));
    let named = |name: &str, expression: &str| json!([{"name": name, "expression": expression}]);
    for (expressions, path) in [
        (named("a", "b * 2"), "expressions/0/name"),
        (named("x", "missing * 2"), "expressions/0/expression"),
        (named("x", "a +"), "expressions/0/expression"),
        (named("x", "a % 2"), "expressions/0/expression"),
        (named("x", "sqrt(a)"), "expressions/0/expression"),
        (named("x", &"1".repeat(1_001)), "expressions/0/expression"),
        (named(" ", "a"), "expressions/0/name"),
        (named(&"x".repeat(129), "a"), "expressions/0/name"),
        (json!([{"name": "x"}]), "expressions/0/expression"),
        (json!([{"expression": "a"}]), "expressions/0/name"),
        (
            json!([{"name": "x", "expression": "a"}, {"name": " x ", "expression": "b"}]),
            "expressions/1/name",
        ),
        (
            json!([{"name": "x", "expression": "a"}, {"name": "y", "expression": "x"}]),
            "expressions/1/expression",
        ),
        (json!("a"), "expressions"),
        (named_x(9), "expressions"),
    ] {
        let answer = ask(&expressions);
        let faults = answer.expect(400, "small print F2 to F4");
        let paths: Vec<Value> = column(&array(&faults, "/details"), "/path");
        let path: Vec<&str> = path.split('/').collect();
        let first = paths
            .first()
            .map(|path| path.as_array().unwrap().iter().map(text_of).collect::<Vec<_>>());
        assert_eq!(
            first,
            Some(path.iter().map(ToString::to_string).collect()),
            "{expressions}"
        );
    }
    ask(&json!([])).expect(200, "up to 8");
    ask(&named_x(8)).expect(200, "up to 8");
}

fn named_x(count: usize) -> Value {
    (0..count)
        .map(|nth| json!({"name": format!("x{nth}"), "expression": "a"}))
        .collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
