//! `compare` and `top`.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column, with_members};
use crate::support::given::{Bucket, point};
use crate::support::process::Server;
use crate::support::time::{DAY, HOUR, now_ns, timestamp};

/// Two sources with a value each hour of three days: the number of the hour, and ten times that.
fn scene() -> (Server, Bucket, [String; 2], i64) {
    let (server, _, bucket) = scene::bucket();
    let (one, other) = (bucket.source("one", &["v", "w"]), bucket.source("other", &["v"]));
    let start = now_ns() / DAY * DAY - 4 * DAY;
    let entries: Vec<Value> = (0..72)
        .flat_map(|hour| {
            let values = [json!({"v": hour, "w": 1}), json!({"v": hour * 10})];
            [&one, &other]
                .into_iter()
                .zip(values)
                .map(move |(source, values)| point(source, start + hour * HOUR, &values))
        })
        .collect();
    bucket.send(&entries);
    (server, bucket, [one, other], start)
}

fn body(start: i64, more: &Value) -> Value {
    let body = json!({
        "aggregation": "avg", "groupBy": "day",
        "filters": {"startTime": timestamp(start + DAY), "endTime": timestamp(start + 3 * DAY - 1)},
    });
    with_members(body, more)
}

#[test]
fn rows_have_what_stood_there_before() {
    let (_server, bucket, [one, _], start) = scene();
    let rows = array(
        &bucket.query(&body(start, &json!({"compare": {"offset": "1d"}}))),
        "/data",
    );
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0]["dataSourceId"], json!(one));
    assert_eq!(rows[0]["values"], json!({"v": 35.5, "w": 1}));
    assert_eq!(rows[0]["previous"], json!({"v": 11.5, "w": 1}), "small print H1");
    assert_eq!(rows[3]["previous"], json!({"v": 355}));
    let earliest = body(
        start,
        &json!({"compare": {"offset": "30d"}, "aggregation": ["avg", "max"]}),
    );
    let rows = array(&bucket.query(&earliest), "/data");
    assert_eq!(
        column(&rows, "/previous"),
        vec![json!({}); 4],
        "small print H1: nothing stood there"
    );
    // The points of 12 hours before the range are moved, then grouped.
    let half = body(
        start,
        &json!({"compare": {"offset": "12h"}, "mergeSources": true}),
    );
    let rows = array(&bucket.query(&half), "/data");
    let average = (12..36).map(f64::from).sum::<f64>() / 24.0;
    assert_eq!(
        rows[0]["previous"]["v"],
        json!((average + 10.0 * average) / 2.0),
        "small print H2"
    );
    let with_expressions = body(
        start,
        &json!({"compare": {"offset": "1d"}, "expressions": [{"name": "twice", "expression": "v * 2"}]}),
    );
    let rows = array(&bucket.query(&with_expressions), "/data");
    assert_eq!(rows[0]["previous"]["twice"], 23, "small print H1");
    let columns = body(start, &json!({"compare": {"offset": "1d"}, "layout": "columns"}));
    let columns = bucket.query(&columns);
    assert_eq!(
        columns["columns"]["previous"],
        json!({"v": [11.5, 115, 35.5, 355], "w": [1, null, 1, null]})
    );
    let filled = body(
        start,
        &json!({"compare": {"offset": "1d"}, "fill": 0, "groupBy": "1h", "limit": 3, "sort": "desc"}),
    );
    let rows = array(&bucket.query(&filled), "/data");
    assert_eq!(
        column(&rows, "/previous"),
        [json!({"v": 470}), json!({"v": 47, "w": 1}), json!({"v": 460})]
    );
}

#[test]
fn a_field_called_previous_stands_only_in_values() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("one", &["previous"]);
    bucket.send(&[point(&source, now_ns() - HOUR, &json!({"previous": 5}))]);
    let row = &bucket.query(&json!({"aggregation": "avg", "groupBy": "day"}))["data"][0];
    assert_eq!(
        (&row["values"]["previous"], row.get("previous")),
        (&json!(5), None),
        "small print H1"
    );
}

#[test]
fn offsets_are_lengths() {
    let (_server, bucket, _, start) = scene();
    let ask = |offset: &Value| bucket.post_query(&body(start, &json!({"compare": {"offset": offset}})));
    for fine in ["1s", "90m", "7d", "3650d", "521w", "87600h"] {
        ask(&json!(fine)).expect(200, "small print H3");
    }
    for wrong in [
        json!("0d"),
        json!("3651d"),
        json!("522w"),
        json!("1y"),
        json!("d"),
        json!("-1d"),
        json!(7),
        json!("day"),
    ] {
        assert_faults(&ask(&wrong), &["compare/offset"], "small print H3");
    }
    assert_faults(
        &bucket.post_query(&body(start, &json!({"compare": {}}))),
        &["compare/offset"],
        "required",
    );
    assert_faults(
        &bucket.post_query(&json!({"compare": {"offset": "1d"}})),
        &["compare"],
        "small print A3",
    );
}

#[test]
fn the_greatest_or_least_groups_are_kept() {
    let (_server, bucket, [one, other], start) = scene();
    let kept = |top: &Value, more: &Value| {
        let mut body = body(start, more);
        body["top"] = top.clone();
        let mut ids = column(&array(&bucket.query(&body), "/data"), "/dataSourceId");
        ids.dedup();
        ids.truncate(2);
        ids
    };
    let by_max = json!({"n": 1, "by": "max", "field": "v"});
    assert_eq!(kept(&by_max, &json!({})), [json!(other)]);
    assert_eq!(
        kept(
            &json!({"n": 1, "by": "max", "field": "v", "order": "asc"}),
            &json!({})
        ),
        [json!(one)]
    );
    assert_eq!(
        kept(&json!({"n": 1, "by": "p90", "field": "v"}), &json!({})),
        [json!(other)],
        "not asked for otherwise"
    );
    assert_eq!(
        kept(&json!({"n": 2, "by": "sum", "field": "w"}), &json!({})),
        [json!(one)],
        "without a value: never"
    );
    assert_eq!(
        kept(&json!({"n": 1, "by": "count", "field": "v"}), &json!({})),
        [json!(one)],
        "ties: the lower id"
    );
    assert_eq!(
        kept(&json!({"n": 5, "by": "avg", "field": "v"}), &json!({})),
        [json!(one), json!(other)]
    );
    let merged = bucket.query(&body(start, &json!({"top": by_max, "mergeSources": true})));
    assert_eq!(merged["data"][0]["v"], 195.25, "small print I2: changes nothing");
    let filled = body(start, &json!({"top": by_max, "fill": 0}));
    assert_eq!(array(&bucket.query(&filled), "/data").len(), 2, "before fill");
    let mut only = body(start, &json!({"top": {"n": 1, "by": "max"}}));
    only["filters"]["fields"] = json!(["v"]);
    assert_eq!(
        column(&array(&bucket.query(&only), "/data"), "/dataSourceId"),
        [json!(other), json!(other)]
    );
}

#[test]
fn top_has_its_limits() {
    let (_server, bucket, _, start) = scene();
    let ask = |top: &Value| bucket.post_query(&body(start, &json!({"top": top})));
    for (top, path) in [
        (json!({"n": 1, "by": "max"}), "top/field"),
        (json!({"n": 1, "by": "max", "field": "missing"}), "top/field"),
        (json!({"n": 0, "by": "max", "field": "v"}), "top/n"),
        (json!({"n": 1_001, "by": "max", "field": "v"}), "top/n"),
        (json!({"by": "max", "field": "v"}), "top/n"),
        (json!({"n": 1, "field": "v"}), "top/by"),
        (json!({"n": 1, "by": ["max"], "field": "v"}), "top/by"),
        (json!({"n": 1, "by": "trueShare", "field": "v"}), "top/by"),
        (
            json!({"n": 1, "by": "max", "field": "v", "order": "up"}),
            "top/order",
        ),
    ] {
        assert_faults(&ask(&top), &[path], "small print I");
    }
    let raw = json!({"top": {"n": 1, "by": "max", "field": "v"}});
    assert_faults(&bucket.post_query(&raw), &["top"], "small print A3");
    let schema = json!({"state": {"type": "string"}});
    bucket.source_with(&json!({"name": "text", "schema": schema}));
    assert_faults(
        &ask(&json!({"n": 1, "by": "count", "field": "state"})),
        &["top/field"],
        "small print I1",
    );
}
