//! `aggregation` as an array, and `range`.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, members, with_members};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, MINUTE, now_ns};

const ALL: [&str; 6] = ["avg", "sum", "min", "max", "count", "range"];

/// A bucket with a source of numbers and texts, and one whose `state` is a number.
fn filled() -> (crate::support::process::Server, Bucket) {
    let (server, _, bucket) = scene::sealing_bucket();
    let schema = json!({"level": {"type": "number"}, "state": {"type": "string"}});
    let one = bucket.source_with(&json!({"name": "one", "schema": schema}));
    let other = bucket.source("other", &["level", "state"]);
    let start = now_ns() / DAY * DAY - 2 * DAY;
    for (source, state) in [(one, json!("on")), (other, json!(5))] {
        let entries: Vec<Value> = (0..600)
            .map(|nth| {
                let mut values = json!({"level": f64::from(nth % 37) / 4.0 - 3.0});
                if nth % 3 == 0 {
                    values["state"] = state.clone();
                }
                point(&source, start + i64::from(nth) * MINUTE, &values)
            })
            .collect();
        bucket.send(&entries);
    }
    (server, bucket)
}

fn query(bucket: &Bucket, aggregation: &Value, more: &Value) -> Value {
    let body = json!({"aggregation": aggregation, "groupBy": "2h"});
    bucket.query(&with_members(body, more))
}

#[test]
fn an_array_nests_what_each_aggregation_gives_alone() {
    let (_server, bucket) = filled();
    for more in [
        json!({}),
        json!({"mergeSources": true}),
        json!({"sort": "desc", "limit": 3}),
    ] {
        let together = query(&bucket, &json!(ALL), &more);
        assert_eq!(
            together["metadata"]["aggregation"],
            json!(ALL),
            "small print A5: as it was sent"
        );
        let rows = array(&together, "/data");
        for aggregation in ALL {
            let alone = query(&bucket, &json!(aggregation), &more);
            assert_eq!(alone["metadata"]["aggregation"], aggregation);
            let single = query(&bucket, &json!([aggregation]), &more);
            let found = array(&alone, "/data");
            assert_eq!(found.len(), rows.len());
            for ((row, of_single), of_alone) in rows.iter().zip(array(&single, "/data")).zip(found) {
                assert_eq!(
                    (&row["timestamp"], &row["dataSourceId"]),
                    (&of_alone["timestamp"], &of_alone["dataSourceId"])
                );
                for (field, value) in of_alone["values"].as_object().unwrap() {
                    assert_eq!(
                        row["values"][field][aggregation], *value,
                        "{aggregation} of {field}: {row}"
                    );
                    assert_eq!(
                        of_single["values"][field],
                        json!({aggregation: value}),
                        "an array of one still nests"
                    );
                }
            }
        }
        let is_merged = more["mergeSources"] == true;
        let keys: &[&str] = match is_merged {
            true => &["time", "timestamp", "values"],
            false => &["dataSourceId", "time", "timestamp", "values"],
        };
        for row in &rows {
            assert_eq!(members(row), keys, "small print D4: no flat keys");
        }
    }
}

#[test]
fn a_field_has_the_aggregations_that_cover_its_type() {
    let (_server, bucket) = filled();
    let answer = query(&bucket, &json!(["max", "count", "range"]), &json!({"limit": 2}));
    let [texts, numbers] = &array(&answer, "/data")[..] else {
        panic!("one row of each source")
    };
    assert_eq!(texts["values"]["state"], json!({"count": 40}), "small print D4");
    assert_eq!(
        numbers["values"]["state"],
        json!({"max": 5, "count": 40, "range": 0}),
        "small print D11"
    );
    assert_eq!(
        texts["values"]["level"],
        json!({"max": 6, "count": 120, "range": 9})
    );
    let left_out = query(&bucket, &json!(["max", "range"]), &json!({"limit": 1}));
    assert_eq!(
        members(&left_out["data"][0]["values"]),
        ["level"],
        "small print D3"
    );
    let columns = query(
        &bucket,
        &json!(["max", "count"]),
        &json!({"limit": 2, "layout": "columns"}),
    );
    let values = &columns["columns"]["values"];
    assert_eq!(values["state"], json!({"max": [null, 5], "count": [40, 40]}));
    assert_eq!(values["level"], json!({"max": [6, 6], "count": [120, 120]}));
}

#[test]
fn arrays_have_their_limits() {
    let (_server, account, bucket) = scene::bucket();
    let schema = json!({"level": {"type": "number"}, "state": {"type": "string"}});
    let source = bucket.source_with(&json!({"name": "one", "schema": schema}));
    let post = |aggregation: Value| bucket.post_query(&json!({"aggregation": aggregation, "groupBy": "day"}));
    for (aggregation, path) in [
        (json!([]), "aggregation"),
        (json!(["avg", "avg"]), "aggregation/1"),
        (json!(["avg", "mode"]), "aggregation/1"),
        (json!(["avg", 5]), "aggregation/1"),
        (json!("mode"), "aggregation"),
        (json!(vec!["avg"; 9]), "aggregation"),
        (json!({"avg": true}), "aggregation"),
    ] {
        assert_faults(&post(aggregation), &[path], "small print D4");
    }
    let of_text = |aggregation: Value| {
        let body = json!({"aggregation": aggregation, "groupBy": "day", "filters": {"fields": ["state"]}});
        bucket.post_query(&body)
    };
    assert_faults(
        &of_text(json!(["avg", "range"])),
        &["filters/fields/0"],
        "small print D3",
    );
    of_text(json!(["avg", "count"])).expect(200, "count covers every type");
    let input = json!({"key": "x", "field": "level", "aggregation": ["avg"], "groupBy": "hour"});
    let rule = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": "high", "naturalLanguageQuery": "level is high",
        "evaluation": {"intervalSeconds": 60, "windowSeconds": 3_600, "inputs": [input], "parameters": {}},
    });
    let created = bucket
        .client
        .post("/api/alerts")
        .key(&account.admin)
        .json(&rule)
        .send();
    assert_faults(
        &created,
        &["evaluation/inputs/0/aggregation"],
        "small print A2: one name, no array",
    );
}
