//! Grouped rows: all layouts of the spec, name collisions, merging, order, metadata.

use serde_json::{Value, json};

use crate::scene::{self, array, column, members};
use crate::support::given::{Bucket, point};
use crate::support::time::{HOUR, MINUTE, now_ns, timestamp};

fn grouped(bucket: &Bucket, extra: &Value) -> Value {
    let mut body = json!({"aggregation": "avg", "groupBy": "hour"});
    for (name, value) in extra.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    bucket.query(&body)
}

#[test]
fn rows_carry_every_layout_and_the_answer_its_metadata() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level", "depth"]);
    let start = now_ns() / HOUR * HOUR;
    bucket.send(&[
        point(&source, start, &json!({"level": 1, "depth": 10})),
        point(&source, start + MINUTE, &json!({"level": 2})),
        point(&source, start + HOUR, &json!({"level": 5})),
    ]);
    let answer = grouped(&bucket, &json!({}));
    let row = |at: i64, values: Value| {
        let mut row = json!({"timestamp": timestamp(at), "time": timestamp(at), "dataSourceId": source, "values": values});
        for (field, value) in values.as_object().into_iter().flatten() {
            row[field] = value.clone();
        }
        row
    };
    let expected = json!([
        row(start, json!({"level": 1.5, "depth": 10})),
        row(start + HOUR, json!({"level": 5}))
    ]);
    assert_eq!(
        answer["data"], expected,
        "contract 5: a grouped row carries every layout of the spec at once"
    );
    let metadata = json!({
        "count": 2, "aggregation": "avg", "groupBy": "hour", "bucketId": bucket.id, "limit": 10_000, "offset": 0,
        "hasMore": false,
    });
    assert_eq!(
        answer["metadata"], metadata,
        "contract 5: metadata of a grouped answer"
    );
    let empty = grouped(
        &bucket,
        &json!({"filters": {"startTime": timestamp(start + 50 * HOUR)}}),
    );
    assert_eq!(
        empty["data"],
        json!([]),
        "contract 5: only groups with data are rows"
    );
    assert_eq!(
        empty["metadata"]["count"], 0,
        "contract 5: count is the number of rows in this answer"
    );
}

#[test]
fn fields_named_like_row_members_appear_only_in_values() {
    let (_server, _, bucket) = scene::bucket();
    let own = ["timestamp", "time", "dataSourceId", "values", "stats"];
    let free = ["metadata", "_id", "count", "Time", "id"];
    let fields: Vec<&str> = own.iter().chain(&free).copied().collect();
    let source = bucket.source("gauge", &fields);
    let start = now_ns() / HOUR * HOUR;
    let values: Value = fields
        .iter()
        .zip(1..)
        .map(|(field, number)| ((*field).to_owned(), json!(number)))
        .collect();
    let mut sent = point(&source, start, &values);
    sent["metadata"] = json!({"a": 1});
    bucket.send(&[sent]);

    let raw = &bucket.rows(&json!({}))[0];
    assert_eq!(
        raw["values"], values,
        "contract 4: any declared field takes values"
    );
    assert_eq!(
        raw["metadata"],
        json!({"a": 1}),
        "a raw row's own keys are its own"
    );
    for merge in [false, true] {
        let row = grouped(&bucket, &json!({"mergeSources": merge}))["data"][0].clone();
        let sentence = "contract 5: a field whose name is one of the row's own keys appears only in `values`";
        assert_eq!(row["values"], values, "{sentence}");
        assert_eq!(row["timestamp"], timestamp(start), "{sentence}");
        assert_eq!(row["time"], timestamp(start), "{sentence}");
        assert!(
            row.get("stats").is_none(),
            "contract 10: `stats` is never a field key of a row: {row}"
        );
        if merge {
            assert!(
                row.get("dataSourceId").is_none(),
                "contract 10: `dataSourceId` is never a field key, in any layout: {row}"
            );
        } else {
            assert_eq!(row["dataSourceId"], source, "{sentence}");
        }
        for field in free {
            assert_eq!(
                row[field], values[field],
                "contract 5: other fields appear flat too: {row}"
            );
        }
    }
}

#[test]
fn merged_sources_are_pooled_point_by_point() {
    let (_server, _, bucket) = scene::bucket();
    let (first, second) = (
        bucket.source("first", &["level", "depth"]),
        bucket.source("second", &["level"]),
    );
    let other = bucket.source("other", &["level"]);
    let start = now_ns() / HOUR * HOUR;
    bucket.send(&[
        point(&first, start, &json!({"level": 1, "depth": 7})),
        point(&first, start + 1, &json!({"level": 2})),
        point(&first, start + 2, &json!({"level": 3})),
        point(&second, start + 3, &json!({"level": 10})),
        point(&second, start + HOUR, &json!({"level": 20})),
        point(&other, start, &json!({"level": 1000})),
    ]);
    let merged = |aggregation: &str| {
        let body = json!({
            "filters": {"dataSourceIds": [first, second]}, "aggregation": aggregation, "groupBy": "hour",
            "mergeSources": true,
        });
        array(&bucket.query(&body), "/data")
    };
    let sentence =
        "contract 5: with mergeSources all selected sources together, rows then have no dataSourceId";
    for (aggregation, level, depth) in [
        ("avg", 4.0, 7.0),
        ("sum", 16.0, 7.0),
        ("min", 1.0, 7.0),
        ("max", 10.0, 7.0),
        ("count", 4.0, 1.0),
    ] {
        let rows = merged(aggregation);
        assert_eq!(rows.len(), 2, "{sentence}: one row for each hour");
        let values = (
            rows[0]["values"]["level"].as_f64(),
            rows[0]["values"]["depth"].as_f64(),
        );
        assert_eq!(
            values,
            (Some(level), Some(depth)),
            "{sentence}: {aggregation} over the points of both"
        );
        assert_eq!(
            members(&rows[0]),
            ["depth", "level", "time", "timestamp", "values"],
            "{sentence}"
        );
    }
    let apart = grouped(&bucket, &json!({"mergeSources": false}));
    assert_eq!(
        array(&apart, "/data").len(),
        4,
        "contract 5: without it, groups are by dataSourceId"
    );
}

#[test]
fn rows_are_ordered_by_time_then_source_and_desc_is_the_reverse() {
    let (_server, _, bucket) = scene::bucket();
    let sources: Vec<String> = (0..6)
        .map(|nth| bucket.source(&format!("gauge {nth}"), &["level"]))
        .collect();
    let start = now_ns() / HOUR * HOUR;
    let points: Vec<Value> = (0..60)
        .map(|nth| {
            point(
                &sources[(nth * 5 % 6) as usize],
                start + nth % 4 * HOUR + nth,
                &json!({"level": nth}),
            )
        })
        .collect();
    bucket.send(&points);
    let order = |sort: &str| {
        let rows = array(&grouped(&bucket, &json!({"sort": sort})), "/data");
        let keys: Vec<(String, String)> = rows
            .iter()
            .map(|row| (row["timestamp"].to_string(), row["dataSourceId"].to_string()))
            .collect();
        keys
    };
    let ascending = order("asc");
    let mut sorted = ascending.clone();
    sorted.sort();
    assert_eq!(
        ascending, sorted,
        "contract 5: order: timestamp, then dataSourceId"
    );
    sorted.reverse();
    assert_eq!(order("desc"), sorted, "contract 5: desc reverses");
    assert!(
        ascending.len() > 6,
        "the test has several sources in several hours"
    );
}

#[test]
fn sources_of_different_schemas_show_their_own_fields() {
    let (_server, _, bucket) = scene::bucket();
    let first = bucket.source("first", &["level"]);
    let second = bucket.source_with(
        &json!({"name": "second", "schema": {"wind": {"type": "number"}, "note": {"type": "string"}}}),
    );
    let start = now_ns() / HOUR * HOUR;
    bucket.send(&[
        point(&first, start, &json!({"level": 1})),
        point(&second, start, &json!({"wind": 2, "note": "gust"})),
    ]);
    let mut values = column(&array(&grouped(&bucket, &json!({})), "/data"), "/values");
    values.sort_by_key(Value::to_string);
    assert_eq!(
        values,
        [json!({"level": 1}), json!({"wind": 2})],
        "contract 5: a row has the fields of its source"
    );
    let merged = grouped(&bucket, &json!({"mergeSources": true}));
    assert_eq!(
        merged["data"][0]["values"],
        json!({"level": 1, "wind": 2}),
        "contract 5: merged rows have all of them"
    );
}
