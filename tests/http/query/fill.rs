//! `fill`: every step of the range is a row.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column, with_members};
use crate::support::given::{Bucket, point};
use crate::support::process::Server;
use crate::support::time::{DAY, HOUR, MINUTE, now_ns, timestamp};

/// A source with values in the hours 1, 2 and 5, and a silent one.
fn scene() -> (Server, Bucket, [String; 2], i64) {
    let (server, _, bucket) = scene::bucket();
    let schema = json!({"v": {"type": "number"}, "rare": {"type": "number"}, "state": {"type": "string"}});
    let body = |name: &str| json!({"name": name, "schema": schema});
    let (one, silent) = (
        bucket.source_with(&body("one")),
        bucket.source_with(&body("silent")),
    );
    let start = now_ns() / DAY * DAY - 2 * DAY;
    bucket.send(&[
        point(&one, start + HOUR, &json!({"v": 2, "state": "on"})),
        point(&one, start + 2 * HOUR, &json!({"v": 4})),
        point(&one, start + 5 * HOUR, &json!({"v": 10, "rare": 1})),
    ]);
    (server, bucket, [one, silent], start)
}

fn body(start: i64, hours: i64, fill: &Value) -> Value {
    json!({
        "aggregation": "avg", "groupBy": "hour", "fill": fill,
        "filters": {"startTime": timestamp(start), "endTime": timestamp(start + hours * HOUR - 1), "fields": ["v"]},
    })
}

#[test]
fn every_step_of_every_source_is_a_row() {
    let (_server, bucket, [one, silent], start) = scene();
    let answer = bucket.query(&body(start, 7, &json!("null")));
    let rows = array(&answer, "/data");
    assert_eq!(rows.len(), 14, "small print E1");
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(
            row["timestamp"],
            json!(timestamp(start + index as i64 / 2 * HOUR))
        );
        assert_eq!(row["dataSourceId"], json!([&one, &silent][index % 2]), "by id");
        assert!(
            row["values"].as_object().unwrap().contains_key("v"),
            "small print E2"
        );
    }
    let of_one: Vec<Value> = rows.iter().step_by(2).map(|row| row["v"].clone()).collect();
    assert_eq!(
        of_one,
        [
            json!(null),
            json!(2),
            json!(4),
            json!(null),
            json!(null),
            json!(10),
            json!(null)
        ]
    );
    // Both ends are included, also where the range begins within a step.
    let within = json!({
        "aggregation": "count", "groupBy": "hour", "fill": 0, "mergeSources": true,
        "filters": {"startTime": timestamp(start + 30 * MINUTE), "endTime": timestamp(start + 2 * HOUR), "fields": ["v"]},
    });
    let counted = array(&bucket.query(&within), "/data");
    assert_eq!(
        column(&counted, "/v"),
        [json!(0), json!(1), json!(1)],
        "small print E1: merged, once"
    );
    // Silence counted.
    let mut silence = body(start, 3, &json!(0));
    silence["aggregation"] = json!("count");
    silence["filters"]["dataSourceIds"] = json!([silent]);
    assert_eq!(
        column(&array(&bucket.query(&silence), "/data"), "/v"),
        [json!(0), json!(0), json!(0)]
    );
}

#[test]
fn missing_values_are_taken_from_before_or_between() {
    let (_server, bucket, [one, _], start) = scene();
    let ask = |fill: Value, more: &Value| {
        let mut body = body(start, 7, &fill);
        body["filters"]["dataSourceIds"] = json!([one]);
        let answer = bucket.query(&with_members(body, more));
        (
            column(&array(&answer, "/data"), "/v"),
            answer["metadata"]["hasMore"].clone(),
        )
    };
    let (previous, _) = ask(json!("previous"), &json!({}));
    let known = json!([null, 2, 4, 4, 4, 10, 10]);
    assert_eq!(json!(previous), known, "small print E3");
    let (descending, _) = ask(json!("previous"), &json!({"sort": "desc"}));
    let mut reversed = known.as_array().unwrap().clone();
    reversed.reverse();
    assert_eq!(
        descending, reversed,
        "small print E3: earlier in time also with desc"
    );
    assert_eq!(
        json!(ask(json!("linear"), &json!({})).0),
        json!([null, 2, 4, 6, 8, 10, null]),
        "small print E3"
    );
    assert_eq!(
        json!(ask(json!(-1.5), &json!({})).0),
        json!([-1.5, 2, 4, -1.5, -1.5, 10, -1.5])
    );
    assert_eq!(json!(ask(json!("none"), &json!({})).0), json!([2, 4, 10]));
    // Before limit and offset.
    for fill in ["previous", "linear", "null"] {
        let (all, _) = ask(json!(fill), &json!({}));
        for sort in ["asc", "desc"] {
            let (sorted, _) = ask(json!(fill), &json!({"sort": sort}));
            for offset in 0..8 {
                let page = json!({"sort": sort, "offset": offset, "limit": 3});
                let (found, has_more) = ask(json!(fill), &page);
                let past = (offset + 3).min(all.len());
                assert_eq!(
                    found,
                    sorted[offset.min(past)..past],
                    "small print E5: {fill} {sort} {offset}"
                );
                assert_eq!(has_more, json!(past < all.len()));
            }
        }
    }
}

#[test]
fn a_number_is_no_text_and_a_null_result_stays_null() {
    let (_server, bucket, [one, _], start) = scene();
    let ask = |aggregation: Value, fill: Value| {
        let mut body = body(start, 4, &fill);
        body["aggregation"] = aggregation;
        body["filters"] = json!({
            "startTime": timestamp(start), "endTime": timestamp(start + 4 * HOUR - 1), "dataSourceIds": [one]
        });
        column(&array(&bucket.query(&body), "/data"), "/values")
    };
    let firsts = ask(json!("first"), json!(7));
    assert_eq!(
        firsts[0],
        json!({"v": 7, "rare": 7, "state": null}),
        "small print E4, E2"
    );
    assert_eq!(firsts[1], json!({"v": 2, "rare": 7, "state": "on"}));
    let held = ask(json!("first"), json!("previous"));
    assert_eq!(held[3], json!({"v": 4, "rare": null, "state": "on"}));
    let several = ask(json!(["count", "first", "stddev"]), json!(7));
    assert_eq!(several[1]["state"], json!({"count": 1, "first": "on"}));
    assert_eq!(
        several[0]["state"],
        json!({"count": 7, "first": null}),
        "small print E4"
    );
    assert_eq!(
        several[1]["v"]["stddev"],
        Value::Null,
        "small print E3: a null result is not filled"
    );
    assert_eq!(several[0]["v"]["stddev"], 7);
}

#[test]
fn fill_needs_groups_and_both_ends_and_has_a_bound() {
    let (_server, bucket, _, start) = scene();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = body(start, 3, &json!("null"));
        change(&mut body);
        bucket.post_query(&body)
    };
    for (missing, sentence) in [("startTime", "small print E6"), ("endTime", "small print E6")] {
        let answer = with(&|body| body["filters"][missing] = Value::Null);
        assert_faults(&answer, &["fill"], sentence);
    }
    let ungrouped = json!({"fill": "null", "filters": {"startTime": timestamp(start), "endTime": timestamp(start + HOUR)}});
    assert_faults(&bucket.post_query(&ungrouped), &["fill"], "small print A3");
    for wrong in [json!("zero"), json!(true), json!({}), json!("")] {
        assert_faults(
            &with(&|body| body["fill"] = wrong.clone()),
            &["fill"],
            "contract 11",
        );
    }
    with(&|body| body["fill"] = Value::Null).expect(200, "small print A1");
    // 12 days of seconds are 1,036,800 rows; 5 days of two sources 864,000.
    let seconds = |days: i64, sources: &Value| {
        with(&|body| {
            body["groupBy"] = json!("1s");
            body["filters"]["endTime"] = json!(timestamp(start + days * DAY - 1));
            body["filters"]["dataSourceIds"] = sources.clone();
        })
    };
    assert_faults(&seconds(12, &json!([])), &["fill"], "small print E6");
    let most = seconds(5, &json!([])).expect(200, "864,000 rows, of which 10,000 are shown");
    assert_eq!(
        (&most["metadata"]["count"], &most["metadata"]["hasMore"]),
        (&json!(10_000), &json!(true))
    );
}

#[test]
fn a_day_that_a_zone_skipped_is_no_row() {
    let (_server, account, _) = scene::bucket();
    let bucket = account.bucket_with(&json!({"name": "old", "retentionDays": 1_000_000}));
    bucket.source("one", &["v"]);
    let body = json!({
        "aggregation": "count", "groupBy": "day", "fill": 0, "timezone": "Pacific/Apia",
        "filters": {"startTime": "2011-12-28T10:00:00Z", "endTime": "2011-12-31T10:00:00Z"},
    });
    let rows = array(&bucket.query(&body), "/data");
    let starts = [
        "2011-12-28T10:00:00Z",
        "2011-12-29T10:00:00Z",
        "2011-12-30T10:00:00Z",
        "2011-12-31T10:00:00Z",
    ];
    assert_eq!(
        column(&rows, "/timestamp"),
        starts.map(|start| json!(start)),
        "small print C3"
    );
}
