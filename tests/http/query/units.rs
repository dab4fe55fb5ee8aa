//! Calendar units with literal dates and expected rows.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_timestamp, column};
use crate::support::given::Bucket;

/// Sends one point at each instant; old ones singly, as the contract requires.
fn fill(bucket: &Bucket, instants: &[&str]) {
    let source = bucket.source("gauge", &["level"]);
    for instant in instants {
        let point = json!({"dataSourceId": source, "timestamp": instant, "values": {"level": 1}});
        bucket
            .single(&point)
            .expect(201, &format!("a point at {instant}"));
    }
}

#[track_caller]
fn assert_groups(bucket: &Bucket, unit: &str, expected: &[(&str, i64)]) {
    let answer = bucket.query(&json!({"aggregation": "count", "groupBy": unit}));
    let rows = array(&answer, "/data");
    let found: Vec<(&str, i64)> = rows
        .iter()
        .map(|row| {
            (
                row["timestamp"].as_str().unwrap_or("?"),
                row["level"].as_i64().unwrap_or(-1),
            )
        })
        .collect();
    assert_eq!(
        found, expected,
        "contract 5: UTC calendar unit `{unit}`, named by its start"
    );
    for row in &rows {
        assert_timestamp(&row["timestamp"], "timestamp");
    }
}

#[test]
fn minutes_hours_and_days_begin_at_their_first_nanosecond() {
    let (_server, _, bucket) = scene::bucket();
    let instants = [
        "2024-02-28T23:59:59.999999999Z",
        "2024-02-29T00:00:00Z",
        "2024-02-29T00:00:59.999999999Z",
        "2024-02-29T00:01:00Z",
        "2024-02-29T00:59:59.999999999Z",
        "2024-02-29T01:00:00Z",
        "2024-02-29T23:59:59Z",
        "2024-03-01T00:00:00Z",
    ];
    fill(&bucket, &instants);
    assert_groups(
        &bucket,
        "minute",
        &[
            ("2024-02-28T23:59:00Z", 1),
            ("2024-02-29T00:00:00Z", 2),
            ("2024-02-29T00:01:00Z", 1),
            ("2024-02-29T00:59:00Z", 1),
            ("2024-02-29T01:00:00Z", 1),
            ("2024-02-29T23:59:00Z", 1),
            ("2024-03-01T00:00:00Z", 1),
        ],
    );
    assert_groups(
        &bucket,
        "hour",
        &[
            ("2024-02-28T23:00:00Z", 1),
            ("2024-02-29T00:00:00Z", 4),
            ("2024-02-29T01:00:00Z", 1),
            ("2024-02-29T23:00:00Z", 1),
            ("2024-03-01T00:00:00Z", 1),
        ],
    );
    assert_groups(
        &bucket,
        "day",
        &[
            ("2024-02-28T00:00:00Z", 1),
            ("2024-02-29T00:00:00Z", 6),
            ("2024-03-01T00:00:00Z", 1),
        ],
    );
}

#[test]
fn weeks_start_on_monday_across_years() {
    let (_server, _, bucket) = scene::bucket();
    let instants = [
        // 2023-12-31 was a Sunday, 2024-01-01 a Monday.
        "2023-12-31T23:59:59.999999999Z",
        "2024-01-01T00:00:00Z",
        "2024-01-07T23:59:59Z",
        "2024-01-08T00:00:00Z",
        // 2024-12-30 was a Monday: the year boundary is within its week.
        "2024-12-29T12:00:00Z",
        "2024-12-31T12:00:00Z",
        "2025-01-01T12:00:00Z",
        "2025-01-05T23:59:59Z",
        // Before 1970, which began on a Thursday.
        "1969-12-28T23:59:59Z",
        "1969-12-29T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "1970-01-04T23:59:59Z",
    ];
    fill(&bucket, &instants);
    assert_groups(
        &bucket,
        "week",
        &[
            ("1969-12-22T00:00:00Z", 1),
            ("1969-12-29T00:00:00Z", 3),
            ("2023-12-25T00:00:00Z", 1),
            ("2024-01-01T00:00:00Z", 2),
            ("2024-01-08T00:00:00Z", 1),
            ("2024-12-23T00:00:00Z", 1),
            ("2024-12-30T00:00:00Z", 3),
        ],
    );
}

#[test]
fn months_have_their_own_lengths_including_leap_years() {
    let (_server, _, bucket) = scene::bucket();
    let instants = [
        "1900-02-28T23:59:59Z",
        "1900-03-01T00:00:00Z",
        "1969-12-31T23:59:59.999999999Z",
        "1970-01-01T00:00:00Z",
        "2000-02-29T23:59:59Z",
        "2000-03-01T00:00:00Z",
        "2023-02-28T23:59:59Z",
        "2024-02-29T23:59:59Z",
        "2024-03-31T23:59:59Z",
        "2024-04-01T00:00:00Z",
        "2024-04-30T23:59:59.999999999Z",
        "2024-12-31T23:59:59Z",
        "2025-01-01T00:00:00Z",
        "2100-02-28T12:00:00Z",
        "2100-03-01T00:00:00Z",
    ];
    fill(&bucket, &instants);
    assert_groups(
        &bucket,
        "month",
        &[
            ("1900-02-01T00:00:00Z", 1),
            ("1900-03-01T00:00:00Z", 1),
            ("1969-12-01T00:00:00Z", 1),
            ("1970-01-01T00:00:00Z", 1),
            ("2000-02-01T00:00:00Z", 1),
            ("2000-03-01T00:00:00Z", 1),
            ("2023-02-01T00:00:00Z", 1),
            ("2024-02-01T00:00:00Z", 1),
            ("2024-03-01T00:00:00Z", 1),
            ("2024-04-01T00:00:00Z", 2),
            ("2024-12-01T00:00:00Z", 1),
            ("2025-01-01T00:00:00Z", 1),
            ("2100-02-01T00:00:00Z", 1),
            ("2100-03-01T00:00:00Z", 1),
        ],
    );
}

/// The first and the last group contain only points in the range, and have the start of the unit as their time.
#[test]
fn a_range_cuts_groups_and_does_not_rename_them() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let point =
        |nth: u32, at: &str| json!({"dataSourceId": source, "timestamp": at, "values": {"level": nth}});
    for (nth, at) in [
        (1, "2024-05-31T23:59:59Z"),
        (2, "2024-06-10T10:00:00Z"),
        (4, "2024-06-10T10:30:00Z"),
        (8, "2024-06-30T23:59:59Z"),
        (16, "2024-07-01T00:00:00Z"),
    ] {
        bucket.single(&point(nth, at)).expect(201, "a point");
    }
    let sums = |unit: &str, from: &str, until: &str| {
        let body = json!({
            "filters": {"startTime": from, "endTime": until}, "aggregation": "sum", "groupBy": unit,
        });
        let rows = array(&bucket.query(&body), "/data");
        let pairs: Vec<Value> = rows
            .iter()
            .map(|row| json!([row["time"], row["values"]["level"]]))
            .collect();
        pairs
    };
    let sentence = "contract 5: exact at any range bounds";
    assert_eq!(
        sums("month", "2024-06-10T10:00:00.000000001Z", "2024-07-01T00:00:00Z"),
        [
            json!(["2024-06-01T00:00:00Z", 12]),
            json!(["2024-07-01T00:00:00Z", 16])
        ],
        "{sentence}"
    );
    assert_eq!(
        sums("month", "2024-05-31T23:59:59Z", "2024-06-30T23:59:58.999Z"),
        [
            json!(["2024-05-01T00:00:00Z", 1]),
            json!(["2024-06-01T00:00:00Z", 6])
        ],
        "{sentence}"
    );
    let one_hour = sums("hour", "2024-06-10T10:00:00Z", "2024-06-10T10:29:59Z");
    assert_eq!(one_hour, [json!(["2024-06-10T10:00:00Z", 2])], "{sentence}");
    assert!(
        sums("day", "2024-06-11", "2024-06-30").is_empty(),
        "contract 5: only groups with data are rows"
    );
    let by_day = column(
        &array(
            &bucket.query(&json!({"aggregation": "max", "groupBy": "day"})),
            "/data",
        ),
        "/level",
    );
    assert_eq!(
        by_day,
        [1, 4, 8, 16],
        "contract 5: one row for each day with data"
    );
}
