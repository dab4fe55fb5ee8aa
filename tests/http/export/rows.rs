//! The rows of an export are those of the query.

use serde_json::{Value, json};

use super::{fields, file, lines};
use crate::scene::{self, array, column};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, SECOND, now_ns, timestamp};

/// All raw rows of a query, page by page.
fn pages(bucket: &Bucket, query: &Value) -> Vec<Value> {
    let mut body = query.clone();
    body["limit"] = json!(7_000);
    body["downsampling"] = json!(false);
    let mut rows = Vec::new();
    loop {
        let answer = bucket.query(&body);
        rows.extend(array(&answer, "/data"));
        if answer["metadata"]["hasMore"] == false {
            return rows;
        }
        body["cursor"] = answer["metadata"]["nextCursor"].clone();
    }
}

/// Points of several sources, late ones and equal times among them.
fn send_points(bucket: &Bucket, count: i64) -> Vec<String> {
    let schema = json!({
        "nth": {"type": "number"}, "level": {"type": "number"}, "text": {"type": "string"}, "open": {"type": "boolean"},
    });
    let sources: Vec<String> = (0..3)
        .map(|nth| {
            bucket
                .source_with(&json!({"name": format!("gauge {nth}"), "schema": schema, "downsampling": true}))
        })
        .collect();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let first_ns = now_ns() / SECOND * SECOND - DAY;
    let points: Vec<Value> = (0..count)
        .map(|nth| {
            let late_ns = if random.u8(..) < 10 { random.i64(0..DAY) } else { 0 };
            let mut values = json!({"nth": nth});
            if random.bool() {
                values["level"] = json!(f64::from(random.i32(-1_000..1_000)) / 8.0);
            }
            if random.u8(..) < 60 {
                values["text"] = json!(format!("text {}", random.u8(..)));
                values["open"] = json!(random.bool());
            }
            let at_ns = first_ns + nth / 4 * SECOND - late_ns;
            let mut point = point(&sources[random.usize(..3)], at_ns, &values);
            if random.u8(..) < 100 {
                point["metadata"] = json!({"shift": random.u8(..5), "size": "1.50"});
            }
            point
        })
        .collect();
    bucket.send(&points);
    sources
}

#[test]
fn all_points_in_the_order_of_the_query_whatever_downsampling_says() {
    for (_server, _, bucket) in [scene::bucket(), scene::sealing_bucket()] {
        let sources = send_points(&bucket, 24_000);
        let at = timestamp(now_ns() - DAY + 1_000 * SECOND);
        for query in [
            json!({}),
            json!({"sort": "desc"}),
            json!({"downsampling": true}),
            json!({"filters": {"dataSourceIds": [sources[1]], "fields": ["text", "level"]}}),
            json!({"filters": {"startTime": at, "metadata": {"shift": 3}}}),
            json!({"filters": {"values": {"level": {"gt": 100}}}, "sort": "desc"}),
            json!({
                "filters": {"fields": ["level"]},
                "expressions": [{"name": "twice", "expression": "2 * nth"}],
            }),
        ] {
            let expected = pages(&bucket, &query);
            assert!(!expected.is_empty(), "{query}");
            let found = lines(&bucket, &query);
            assert_eq!(found.len(), expected.len(), "contract 11: all rows: {query}");
            assert_eq!(
                found, expected,
                "small print L5: a line of NDJSON is a row of the query's data: {query}"
            );
            let csv = fields(&file(&bucket, "csv", &query));
            let ids: Vec<Value> = csv[1..].iter().map(|row| json!(row[2])).collect();
            assert_eq!(ids, column(&expected, "/_id"), "the same rows as CSV: {query}");
        }
    }
}

#[test]
fn max_points_exports_averages_and_points_where_they_fit() {
    let (_server, _, bucket) = scene::sealing_bucket();
    send_points(&bucket, 6_000);
    for query in [
        json!({"maxPoints": 100}),
        json!({"maxPoints": 100, "sort": "desc", "timezone": "Asia/Kathmandu"}),
        json!({"maxPoints": 10_000}),
    ] {
        let answer = bucket.query(&query);
        let expected = array(&answer, "/data");
        assert_eq!(
            lines(&bucket, &query),
            expected,
            "small print L3: maxPoints is allowed: {query}"
        );
        let header = &fields(&file(&bucket, "csv", &query))[0];
        let is_grouped = answer["metadata"]["downsamplingApplied"] == true;
        assert_eq!(
            header.contains(&Some("_id".to_owned())),
            !is_grouped,
            "averages have the columns of groups: {query}"
        );
    }
}
