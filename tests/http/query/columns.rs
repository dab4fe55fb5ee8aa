//! `layout: "columns"`: the same rows as one array for each member.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{HOUR, MINUTE, SECOND, now_ns, timestamp};

/// Sends the query in both layouts, and asserts that they agree.
#[track_caller]
fn query_both_layouts(bucket: &Bucket, body: &Value) -> Value {
    let rows = bucket.query(body);
    let mut columns_body = body.clone();
    columns_body["layout"] = json!("columns");
    let columns = bucket.query(&columns_body);
    assert_eq!(columns["metadata"], rows["metadata"], "{body}");
    assert!(columns.get("data").is_none(), "columns stand instead of data");
    let data = array(&rows, "/data");
    let columns = &columns["columns"];
    let nulls = |pointer: &str| -> Vec<Value> {
        data.iter()
            .map(|row| row.pointer(pointer).cloned().unwrap_or_default())
            .collect()
    };
    for (name, values) in columns.as_object().unwrap() {
        if name == "values" || name == "stats" {
            continue;
        }
        assert_eq!(
            *values,
            Value::from(nulls(&format!("/{name}"))),
            "{name} of {body}"
        );
    }
    for (field, values) in columns["values"].as_object().unwrap() {
        // With several aggregations, each has an array.
        let arrays = values.as_object().map_or_else(
            || vec![(format!("/values/{field}"), values)],
            |arrays| {
                let of = |name| format!("/values/{field}/{name}");
                arrays.iter().map(|(name, values)| (of(name), values)).collect()
            },
        );
        for (pointer, values) in arrays {
            assert_eq!(*values, Value::from(nulls(&pointer)), "{pointer} of {body}");
        }
    }
    for (field, stats) in columns["stats"].as_object().into_iter().flatten() {
        for (name, values) in stats.as_object().unwrap() {
            assert_eq!(
                *values,
                Value::from(nulls(&format!("/stats/{field}/{name}"))),
                "{field} {name}"
            );
        }
    }
    let fields = data.iter().flat_map(|row| row["values"].as_object().unwrap());
    for (field, value) in fields {
        let column = columns["values"].get(field);
        let column = column.unwrap_or_else(|| panic!("{field} has a column"));
        for aggregation in value.as_object().into_iter().flat_map(|values| values.keys()) {
            assert!(column.get(aggregation).is_some(), "{field} has {aggregation}");
        }
    }
    columns.clone()
}

#[test]
fn columns_hold_the_same_data_as_rows() {
    let (_server, _, bucket) = scene::bucket();
    let start = now_ns() / HOUR * HOUR;
    let (one, other) = (
        bucket.source("one", &["level", "depth"]),
        bucket.source("two", &["level"]),
    );
    let body = json!({"name": "states", "schema": {"on": {"type": "boolean"}, "mode": {"type": "string"}}});
    let states = bucket.source_with(&body);
    let mut marked = point(&one, start + 3, &json!({"level": -0.5}));
    marked["metadata"] = json!({"room": "a \"b\""});
    bucket.send(&[
        point(&one, start, &json!({"level": 1, "depth": 1e300})),
        point(&one, start + MINUTE, &json!({"depth": 2})),
        point(&other, start, &json!({"level": 7})),
        point(
            &states,
            start + 1,
            &json!({"on": true, "mode": "\"idle\" \u{1f30a}"}),
        ),
        point(&states, start + 2, &json!({"on": false})),
    ]);
    let columns = query_both_layouts(&bucket, &json!({}));
    assert!(columns.get("metadata").is_none(), "no point has metadata");
    bucket.send(&[marked]);
    let columns = query_both_layouts(&bucket, &json!({"sort": "desc"}));
    assert_eq!(columns["metadata"].as_array().map(Vec::len), Some(6));
    for aggregation in ["avg", "count"] {
        query_both_layouts(&bucket, &json!({"aggregation": aggregation, "groupBy": "hour"}));
        let merged = json!({"aggregation": aggregation, "groupBy": "minute", "mergeSources": true});
        assert!(query_both_layouts(&bucket, &merged).get("dataSourceId").is_none());
    }
    let rising: Vec<_> = (0..120)
        .map(|nth| point(&one, start - (nth + 2) * SECOND, &json!({"level": nth})))
        .collect();
    bucket.send(&rising);
    // Where a field has no values, its statistics are null.
    let chart = query_both_layouts(&bucket, &json!({"maxPoints": 100}));
    assert!(array(&chart, "/stats/depth/min").contains(&Value::Null));
    assert!(!array(&chart, "/stats/level/min").is_empty());
    let page = query_both_layouts(&bucket, &json!({"limit": 2, "offset": 1}));
    assert_eq!(page["timestamp"].as_array().map(Vec::len), Some(2));
    let nothing = query_both_layouts(&bucket, &json!({"filters": {"endTime": "1990-01-01T00:00:00Z"}}));
    assert_eq!(nothing["timestamp"], json!([]));
    assert_eq!(nothing["values"], json!({}));
}

/// A source with enough points for several blocks, whose minutes are read from where they are stored, and late points
/// in the midst of them.
#[test]
fn minutes_of_many_points_are_the_same_in_both_layouts() {
    const POINTS: i64 = 30_000;
    let (_server, _, bucket) = scene::sealing_bucket();
    let source = bucket.source("gauge", &["level", "depth"]);
    let start = now_ns() / HOUR * HOUR - POINTS * SECOND;
    // The greatest level of each minute, by its start.
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    for late in [false, true] {
        let seconds: Vec<i64> = match late {
            false => (0..POINTS)
                .filter(|second| !(12_000..13_000).contains(second))
                .collect(),
            true => (4_000..4_100).chain(12_500..12_520).collect(),
        };
        for seconds in seconds.chunks(5_000) {
            let points: Vec<Value> = seconds
                .iter()
                .map(|second| {
                    let at_ns = start + second * SECOND + i64::from(late);
                    let level = second * 7 % 1_009 + 2_000 * i64::from(late);
                    let greatest = expected
                        .entry(timestamp(at_ns / MINUTE * MINUTE))
                        .or_insert(level);
                    *greatest = level.max(*greatest);
                    match second % 1_000 < 100 {
                        true => point(&source, at_ns, &json!({"level": level, "depth": second})),
                        false => point(&source, at_ns, &json!({"level": level})),
                    }
                })
                .collect();
            bucket.send(&points);
        }
        let body = |more: Value| {
            let mut body = json!({"aggregation": "max", "groupBy": "minute", "limit": 10_000});
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            body
        };
        let all = query_both_layouts(&bucket, &body(json!({})));
        let starts = array(&all, "/timestamp")
            .into_iter()
            .map(|start| start.as_str().unwrap().to_owned());
        let levels = array(&all, "/values/level")
            .into_iter()
            .map(|level| level.as_i64().unwrap());
        let found: BTreeMap<String, i64> = starts.zip(levels).collect();
        assert_eq!(found, expected);
        let range = [10_007, 21_003].map(|second| timestamp(start + second * SECOND));
        for more in [
            json!({"sort": "desc", "offset": 7, "limit": 333}),
            json!({"mergeSources": true, "offset": 130, "limit": 100}),
            json!({"aggregation": ["min", "count", "avg"], "limit": 400}),
            json!({"sort": "desc", "filters": {"startTime": range[0], "endTime": range[1]}}),
        ] {
            query_both_layouts(&bucket, &body(more));
        }
        for sort in ["asc", "desc"] {
            let chart = query_both_layouts(&bucket, &json!({"maxPoints": 600, "sort": sort}));
            assert_eq!(array(&chart, "/stats/level/max").len(), expected.len());
        }
    }
}

#[test]
fn the_cursor_continues_in_the_columns_layout() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns() / HOUR * HOUR;
    let points: Vec<_> = (0..25)
        .map(|nth| point(&source, start + nth, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
    let (mut cursor, mut seen) = (Value::Null, Vec::new());
    loop {
        let answer = bucket.query(&json!({"layout": "columns", "limit": 10, "cursor": cursor}));
        seen.extend(array(&answer, "/columns/values/level"));
        cursor = answer["metadata"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let rows = array(&bucket.query(&json!({"limit": 100})), "/data");
    assert_eq!(seen, column(&rows, "/values/level"));
}

#[test]
fn another_layout_is_refused() {
    let (_server, _, bucket) = scene::bucket();
    let answer = bucket.post_query(&json!({"layout": "table"}));
    assert_faults(&answer, &["layout"], "contract 11: rows or columns");
}
