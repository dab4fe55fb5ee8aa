//! `timezone`: hours, days and longer units in a zone.

use serde_json::{Value, json};

use crate::scene::{self, array, assert_faults, column};
use crate::support::given::{Bucket, point};
use crate::support::process::Server;
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, now_ns, timestamp};

/// 2026-03-29T00:00:00Z: an hour before the start of summer time in Europe.
const SPRING: i64 = 1_774_742_400 * SECOND;

/// A bucket whose retention includes that moment.
fn long_retention_bucket() -> (Server, Bucket) {
    let (server, account, _) = scene::bucket();
    let bucket = account.bucket_with(&json!({"name": "long", "retentionDays": scene::RETENTION_DAYS_MAX}));
    (server, bucket)
}

/// Sends a point every half hour from a day before that moment to a day after it.
fn filled() -> (Server, Bucket) {
    let (server, bucket) = long_retention_bucket();
    let source = bucket.source("gauge", &["level"]);
    // Sent singly: batches accept nothing older than 30 days.
    for nth in 0..96 {
        let one = point(&source, SPRING - DAY + nth * 30 * MINUTE, &json!({"level": nth}));
        bucket.single(&one).expect(201, "a point of the past");
    }
    (server, bucket)
}

fn count_by(bucket: &Bucket, unit: &str, zone: &str) -> (Vec<Value>, Vec<Value>) {
    let answer = bucket.query(&json!({"aggregation": "count", "groupBy": unit, "timezone": zone}));
    assert_eq!(answer["metadata"]["groupBy"], unit, "the unit as it was sent");
    let rows = array(&answer, "/data");
    (column(&rows, "/timestamp"), column(&rows, "/values/level"))
}

#[test]
fn days_begin_at_local_midnight_and_a_clock_change_day_has_23_hours() {
    let (_server, bucket) = filled();
    let (starts, counts) = count_by(&bucket, "day", "Europe/Stockholm");
    assert_eq!(
        starts,
        [
            "2026-03-27T23:00:00Z",
            "2026-03-28T23:00:00Z",
            "2026-03-29T22:00:00Z"
        ]
    );
    assert_eq!(counts, [46, 46, 4], "46 half hours: 23 hours");
    let (starts, _) = count_by(&bucket, "month", "Pacific/Auckland");
    assert_eq!(starts, ["2026-02-28T11:00:00Z"], "March of Auckland");
    let (starts, _) = count_by(&bucket, "week", "America/Los_Angeles");
    assert_eq!(starts, ["2026-03-23T07:00:00Z", "2026-03-30T07:00:00Z"][..1]);
    let (utc, _) = count_by(&bucket, "day", "UTC");
    assert_eq!(utc, ["2026-03-28T00:00:00Z", "2026-03-29T00:00:00Z"]);
}

#[test]
fn hours_follow_the_zone_and_minutes_do_not() {
    let (_server, bucket) = filled();
    let (starts, _) = count_by(&bucket, "hour", "Asia/Kolkata");
    assert!(
        starts
            .iter()
            .all(|start| start.as_str().is_some_and(|text| text.contains(":30:00"))),
        "{starts:?}"
    );
    let (starts, counts) = count_by(&bucket, "hour", "Europe/Stockholm");
    assert_eq!((starts.len(), counts.iter().all(|count| *count == 2)), (48, true));
    assert_eq!(
        count_by(&bucket, "minute", "Asia/Kolkata"),
        count_by(&bucket, "minute", "UTC"),
        "small print C1"
    );
}

#[test]
fn charts_follow_the_zone_and_raw_rows_do_not() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = (now_ns() / DAY - 5) * DAY;
    // A point every ten minutes for 100 hours: 101 rows of an hour are too many, 3 hours is the finest step.
    let points: Vec<Value> = (0..601)
        .map(|nth| point(&source, start + nth * 10 * MINUTE, &json!({"level": 1})))
        .collect();
    bucket.send(&points);
    let chart = bucket.query(&json!({"maxPoints": 100, "timezone": "Asia/Tokyo"}));
    assert_eq!(chart["metadata"]["groupBy"], "3h");
    let rows = array(&chart, "/data");
    let hour = |row: &Value| {
        row["timestamp"]
            .as_str()
            .and_then(|text| text[11..13].parse::<i64>().ok())
    };
    assert!(
        rows.iter().all(|row| hour(row).is_some_and(|hour| hour % 3 == 0)),
        "Tokyo is 9 h ahead"
    );
    let few = json!({"filters": {"endTime": timestamp(start + HOUR)}});
    let mut zoned = few.clone();
    zoned["timezone"] = json!("Asia/Tokyo");
    assert_eq!(
        bucket.query(&few),
        bucket.query(&zoned),
        "small print A3: nothing in raw rows"
    );
    let days = bucket.query(&json!({"timezone": "Asia/Tokyo"}));
    assert_eq!(days["metadata"]["downsamplingApplied"], true);
}

#[test]
fn an_unknown_time_zone_is_refused() {
    let (_server, _, bucket) = scene::bucket();
    for zone in ["europe/stockholm", "+02:00", "localtime", "", "Mars/Olympus"] {
        let answer = bucket.post_query(&json!({"aggregation": "avg", "groupBy": "day", "timezone": zone}));
        assert_faults(&answer, &["timezone"], "small print C5");
    }
}
