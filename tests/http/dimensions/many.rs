//! Queries of so many series that several threads read them: the answers are those of one.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::scene::{self, array};
use crate::support::given::Bucket;
use crate::support::time::{HOUR, now_ns, timestamp};

/// More than a query may have in a short turn.
const SERIES: i64 = 6_000;
const RACKS: i64 = 150;
const HOURS: i64 = 3;
const ROWS: usize = (HOURS * RACKS) as usize;

fn value_of(series: i64, hour: i64) -> i64 {
    series * 7 % 101 + hour * series % 13
}

/// Stores a value of each series in each hour, from the returned start on.
fn filled(bucket: &Bucket) -> i64 {
    let first_ns = now_ns() / HOUR * HOUR - 2 * HOURS * HOUR;
    for hour in 0..HOURS {
        let mut lines = String::new();
        for series in 0..SERIES {
            let (rack, value, at_ns) = (series % RACKS, value_of(series, hour), first_ns + hour * HOUR);
            writeln!(lines, "cpu,host=h{series},rack=r{rack:03} v={value} {at_ns}").unwrap();
        }
        let path = format!("/write?bucket={}", bucket.id);
        let request = bucket.client.post(&path).key(&bucket.admin);
        let answer = request.bytes(lines.as_bytes()).send();
        assert_eq!(answer.status, 204, "{answer}");
    }
    first_ns
}

/// Time, rack, sum, maximum, count and median of each row, oldest first.
fn expected(first_ns: i64) -> Vec<Value> {
    let row = |place: i64| {
        let (hour, rack) = (place / RACKS, place % RACKS);
        let of_rack = (rack..SERIES).step_by(RACKS as usize);
        let mut values: Vec<i64> = of_rack.map(|series| value_of(series, hour)).collect();
        values.sort_unstable();
        let (count, middle) = (values.len(), values.len() / 2);
        let median = (values[middle - 1] + values[middle]) as f64 / 2.0;
        let sum: i64 = values.iter().sum();
        let at = timestamp(first_ns + hour * HOUR);
        json!([
            at,
            format!("r{rack:03}"),
            sum as f64,
            values[count - 1] as f64,
            count,
            median
        ])
    };
    (0..ROWS as i64).map(row).collect()
}

/// The same of an answer, with null for what was not asked.
fn rows(answer: &Value) -> Vec<Value> {
    let rows = array(answer, "/data");
    let row = |row: &Value| {
        let of = |name: &str| row["values"]["v"][name].clone();
        let number = |name: &str| of(name).as_f64().map_or(Value::Null, Value::from);
        json!([
            row["timestamp"],
            row["dimensions"]["rack"],
            number("sum"),
            number("max"),
            of("count"),
            number("median")
        ])
    };
    rows.iter().map(row).collect()
}

#[test]
fn groups_of_many_series_are_those_of_their_points() {
    let (_server, _, bucket) = scene::bucket();
    let all = expected(filled(&bucket));
    let without_median = |rows: &[Value]| -> Vec<Value> {
        let mut rows = rows.to_vec();
        rows.iter_mut().for_each(|row| row[5] = Value::Null);
        rows
    };
    let ask = |aggregations: &[&str], extra: Value| {
        let mut body = json!({"aggregation": aggregations, "groupBy": "hour", "groupByDimensions": ["rack"]});
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        rows(&bucket.query(&body))
    };
    let sums = ["sum", "max", "count"];
    let all_of_them = ["sum", "max", "count", "median"];
    assert_eq!(ask(&sums, json!({"limit": 10_000})), without_median(&all));
    assert_eq!(ask(&all_of_them, json!({"limit": 10_000})), all);
    // A page from the other end: each thread finds its own window, and the answer has one of all.
    let mut newest = all;
    newest.reverse();
    let page = json!({"sort": "desc", "limit": 100, "offset": 130});
    assert_eq!(ask(&sums, page.clone()), without_median(&newest[130..230]));
    assert_eq!(ask(&all_of_them, page), newest[130..230]);
    let merged = bucket.query(&json!({"aggregation": "count", "groupBy": "all", "mergeSources": true}));
    assert_eq!(
        merged["data"][0]["values"]["v"],
        json!(SERIES * HOURS),
        "one group"
    );
}
