//! The age limit of points.

use serde_json::{Value, json};

use crate::scene::{self, assert_faults};
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, HOUR, MINUTE, now_ns};

fn bucket_with_retention(days: u32) -> (crate::support::process::Server, Bucket, String) {
    let (server, account, _) = scene::bucket();
    let bucket = account.bucket_with(&json!({"name": "short", "retentionDays": days}));
    let source = bucket.source("gauge", &["level"]);
    (server, bucket, source)
}

fn point_of_age(source: &str, age_ns: i64) -> Value {
    point(source, now_ns() - age_ns, &json!({"level": 1}))
}

#[test]
fn a_batch_entry_is_at_most_30_days_old() {
    let (_server, bucket, source) = bucket_with_retention(365);
    let sentence = "contract 4: a batch entry older than 30 days is an entry error";
    bucket
        .batch(&[point_of_age(&source, 30 * DAY - MINUTE)])
        .expect(201, sentence);
    let answer = bucket.batch(&[
        point_of_age(&source, 30 * DAY + MINUTE),
        point_of_age(&source, 0),
        point_of_age(&source, 300 * DAY),
        point_of_age(&source, 29 * DAY),
        json!({"dataSourceId": source, "timestamp": "1700-01-01", "values": {"level": 1}}),
    ]);
    let answer = answer.expect(207, sentence);
    let failed: Vec<Value> = scene::column(&scene::array(&answer, "/errors"), "/index");
    assert_eq!(failed, [0, 2, 4], "{sentence}");
}

#[test]
fn a_single_point_is_as_old_as_retention_allows() {
    let (_server, bucket, source) = bucket_with_retention(365);
    let sentence = "contract 4: a single point may be as old as the bucket's retention allows, older is 400";
    for age in [31 * DAY, 200 * DAY, 365 * DAY - MINUTE] {
        bucket.single(&point_of_age(&source, age)).expect(201, sentence);
    }
    for age in [365 * DAY + MINUTE, 366 * DAY, 10_000 * DAY] {
        assert_faults(
            &bucket.single(&point_of_age(&source, age)),
            &["timestamp"],
            sentence,
        );
    }
    assert_eq!(bucket.rows(&json!({})).len(), 3, "{sentence}");
}

#[test]
fn a_batch_entry_older_than_a_short_retention_is_an_entry_error() {
    let (_server, bucket, source) = bucket_with_retention(5);
    let sentence = "contract 10: a batch entry older than retentionDays is an entry error";
    let answer = bucket.batch(&[
        point_of_age(&source, 6 * DAY),
        point_of_age(&source, 5 * DAY - MINUTE),
        point_of_age(&source, 5 * DAY + MINUTE),
    ]);
    let answer = answer.expect(207, sentence);
    assert_eq!(
        scene::column(&scene::array(&answer, "/errors"), "/index"),
        [0, 2],
        "{sentence}"
    );
    assert_faults(
        &bucket.single(&point_of_age(&source, 6 * DAY)),
        &["timestamp"],
        "contract 4: older than retention is 400",
    );
}

#[test]
fn the_future_is_allowed() {
    let (_server, bucket, source) = bucket_with_retention(1);
    let sentence = "contract 4: the future is allowed";
    for ahead in [HOUR, 400 * DAY, 10_000 * DAY] {
        bucket
            .single(&point_of_age(&source, -ahead))
            .expect(201, sentence);
        bucket
            .batch(&[point_of_age(&source, -ahead)])
            .expect(201, sentence);
    }
    let last = json!({"dataSourceId": source, "timestamp": "2261-12-31T23:59:59.999999999Z", "values": {"level": 1}});
    bucket.batch(&[last]).expect(201, sentence);
    assert_eq!(bucket.rows(&json!({})).len(), 7, "{sentence}");
}

/// Arithmetic with retentions must not overflow at either end of the range of timestamps.
#[test]
fn unlimited_retention_accepts_points_since_the_first_year() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let first = json!({"dataSourceId": source, "timestamp": "1678-01-01", "values": {"level": 1}});
    bucket.single(&first).expect(
        201,
        "contract 2: Enterprise is unlimited; contract 1: years 1678 to 2261",
    );
    assert_eq!(bucket.rows(&json!({})).len(), 1, "the oldest point is kept");
    let grouped = bucket.query(&json!({"aggregation": "sum", "groupBy": "week"}));
    assert_eq!(
        grouped["data"][0]["timestamp"], "1677-12-27T00:00:00Z",
        "contract 5: weeks start on Monday, in 1677 too"
    );
}
