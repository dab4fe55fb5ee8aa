//! Grouped exports: the rows of the query, however many.

use serde_json::{Value, json};

use super::{fields, file, lines};
use crate::scene::{self, array};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, MINUTE, SECOND, now_ns, timestamp};

/// More than the groups of the first windows, for each of three sources.
const MINUTES: i64 = 3_000;

/// A value every 20 seconds, of a counter too, in three sources; returns start and end.
fn send_points(bucket: &Bucket) -> (i64, i64) {
    let schema =
        json!({"level": {"type": "number"}, "count": {"type": "number"}, "open": {"type": "boolean"}});
    let start_ns = now_ns() / DAY * DAY - 4 * DAY;
    let mut random = fastrand::Rng::with_seed(3);
    for nth in 0..3 {
        let source = bucket.source_with(&json!({"name": format!("gauge {nth}"), "schema": schema}));
        let mut points: Vec<Value> = (0..MINUTES * 3)
            .filter(|nth| nth % 7 != 0)
            .map(|nth| {
                let values = json!({
                    "level": f64::from(random.i32(-1_000..1_000)) / 8.0, "count": nth % 500, "open": random.bool(),
                });
                point(&source, start_ns + nth * 20 * SECOND, &values)
            })
            .collect();
        random.shuffle(&mut points[..1_000]);
        bucket.send(&points);
    }
    (start_ns, start_ns + MINUTES * MINUTE)
}

/// All rows of a grouped query, page by page.
fn pages(bucket: &Bucket, query: &Value) -> Vec<Value> {
    let mut body = query.clone();
    body["limit"] = json!(4_000);
    let mut rows = Vec::new();
    loop {
        body["offset"] = json!(rows.len());
        let answer = bucket.query(&body);
        rows.extend(array(&answer, "/data"));
        if answer["metadata"]["hasMore"] == false {
            return rows;
        }
    }
}

#[test]
fn all_groups_in_the_order_of_the_query() {
    for (_server, _, bucket) in [scene::bucket(), scene::sealing_bucket()] {
        let (start_ns, end_ns) = send_points(&bucket);
        let range = json!({"startTime": timestamp(start_ns), "endTime": timestamp(end_ns)});
        let part = json!({"startTime": timestamp(start_ns + 90 * SECOND), "fields": ["level"]});
        for query in [
            json!({"aggregation": "avg", "groupBy": "minute"}),
            json!({"aggregation": "avg", "groupBy": "minute", "sort": "desc"}),
            json!({"aggregation": ["count", "max"], "groupBy": "minute", "filters": part}),
            json!({"aggregation": ["increase", "p90", "timeAvg"], "groupBy": "2m"}),
            json!({"aggregation": ["rate", "last"], "groupBy": "5m", "sort": "desc"}),
            json!({"aggregation": "sum", "groupBy": "minute", "mergeSources": true}),
            json!({"aggregation": "avg", "groupBy": "minute", "fill": "linear", "filters": range}),
            json!({"aggregation": "min", "groupBy": "minute", "fill": "previous", "filters": range, "sort": "desc"}),
            json!({"aggregation": "max", "groupBy": "minute", "compare": {"offset": "1d"}, "filters": {"startTime": timestamp(start_ns + DAY)}}),
            json!({"aggregation": "avg", "groupBy": "minute", "top": {"n": 2, "by": "max", "field": "level"}}),
            json!({
                "aggregation": "avg", "groupBy": "minute", "filters": {"fields": ["level"]},
                "expressions": [{"name": "sum", "expression": "level + count"}],
            }),
            json!({"aggregation": "count", "groupBy": "all"}),
            json!({"aggregation": "avg", "groupBy": "day", "timezone": "America/St_Johns"}),
        ] {
            let expected = pages(&bucket, &query);
            assert!(!expected.is_empty(), "{query}");
            let found = lines(&bucket, &query);
            assert_eq!(found.len(), expected.len(), "contract 11: all rows: {query}");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "small print L5: a row of the query: {query}");
            }
            check_csv(&fields(&file(&bucket, "csv", &query)), &expected, &query);
        }
    }
}

/// Compares CSV with rows of the query, value by value.
#[track_caller]
fn check_csv(csv: &[Vec<Option<String>>], rows: &[Value], query: &Value) {
    let names: Vec<&str> = csv[0].iter().map(|name| name.as_deref().unwrap()).collect();
    assert_eq!(csv.len() - 1, rows.len(), "{query}");
    for (line, row) in csv[1..].iter().zip(rows) {
        for (name, found) in names.iter().zip(line) {
            let (values, path) = match name.strip_prefix("previous.") {
                Some(path) => (&row["previous"], path),
                None => (&row["values"], *name),
            };
            let value = match (*name, path.split_once('.')) {
                ("timestamp" | "dataSourceId", _) => &row[*name],
                (_, Some((field, aggregation))) => &values[field][aggregation],
                (_, None) => &values[path],
            };
            let expected = match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            let is_same = match (found, &expected) {
                (Some(found), Some(expected)) => {
                    found == expected || found.parse::<f64>().ok() == expected.parse::<f64>().ok()
                }
                (found, expected) => found == expected,
            };
            assert!(is_same, "{name} is {found:?}, not {expected:?}: {query}");
        }
    }
}
