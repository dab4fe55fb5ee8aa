//! Retention that shrinks and grows again: expired points stay expired, and points of the admitted age are accepted.

use serde_json::{Value, json};

use crate::scene::{self, array, column};
use crate::support::given::{Bucket, point};
use crate::support::process::Server;
use crate::support::time::{DAY, now_ns, timestamp};

const GONE: &str = "contract 10: a point older than retentionDays is gone at that moment, dropped yet or not";
const KEPT: &str = "contract 4: a single point may be as old as the bucket's retention allows";

#[track_caller]
fn set_retention(bucket: &Bucket, days: u32) {
    bucket
        .call("PATCH", "", &json!({"retentionDays": days}))
        .expect(200, "contract 3: PATCH retentionDays");
}

/// Asserts the ages in days of the points in the bucket, oldest first, in every kind of query.
#[track_caller]
fn assert_ages(bucket: &Bucket, source: &str, now: i64, ages: &[i64]) {
    let rows = bucket.rows(&json!({}));
    assert_eq!(column(&rows, "/values/age"), ages, "{GONE} (raw)");
    let grouped = bucket.query(&json!({"aggregation": "count", "groupBy": "day", "mergeSources": true}));
    let counted = array(&grouped, "/data")
        .iter()
        .filter_map(|row| row["values"]["age"].as_u64())
        .sum::<u64>();
    assert_eq!(counted, ages.len() as u64, "{GONE} (grouped)");
    let of_bucket = bucket.call("GET", "", &Value::Null).json();
    assert_eq!(
        of_bucket["bucket"]["stats"]["dataPointCount"],
        ages.len(),
        "{GONE} (bucket stats)"
    );
    let of_source = bucket
        .call("GET", &format!("/sources/{source}"), &Value::Null)
        .json();
    let stats = &of_source["dataSource"]["stats"];
    assert_eq!(stats["totalDataPoints"], ages.len(), "{GONE} (source stats)");
    let first = ages.first().map(|age| timestamp(now - age * DAY));
    assert_eq!(stats["firstDataPoint"], json!(first), "{GONE} (firstDataPoint)");
}

fn scene() -> (Server, Bucket, String) {
    let (server, account, _) = scene::bucket();
    let bucket = account.bucket_with(&json!({"name": "gauges", "retentionDays": 20}));
    let source = bucket.source("gauge", &["age"]);
    (server, bucket, source)
}

/// Regression: after an increase of the retention, points older than the old one were refused for the length of the new
/// one, because they shared a cutoff with points that had expired before.
#[test]
fn longer_retention_admits_older_points_and_revives_none() {
    let (mut server, bucket, source) = scene();
    let now = now_ns();
    let aged = |age: i64| point(&source, now - age * DAY, &json!({"age": age}));
    for age in [15, 8, 1] {
        bucket.single(&aged(age)).expect(201, KEPT);
    }
    set_retention(&bucket, 5);
    assert_ages(&bucket, &source, now, &[1]);
    bucket.single(&aged(8)).refused(400, "contract 4: older is 400");
    set_retention(&bucket, 20);
    assert_ages(&bucket, &source, now, &[1]);
    bucket.single(&aged(12)).expect(201, KEPT);
    bucket.batch(&[aged(7), aged(25)]).expect(
        207,
        "contract 10: a batch entry older than retentionDays is an entry error",
    );
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        assert_ages(&bucket, &source, now, &[12, 7, 1]);
    }
    assert!(server.stop().success(), "contract 9: SIGTERM, exit 0");
    server.launch();
    assert_ages(&bucket, &source, now, &[12, 7, 1]);
    set_retention(&bucket, 10);
    set_retention(&bucket, 18);
    assert_ages(&bucket, &source, now, &[7, 1]);
    bucket.single(&aged(12)).expect(201, KEPT);
    assert_ages(&bucket, &source, now, &[12, 7, 1]);
}

/// The same with sealed points, in blocks that the cutoff divides.
#[test]
fn longer_retention_revives_no_points_of_sealed_blocks() {
    let server = scene::server_with("storage.checkpoint_bytes", "65536");
    let account = crate::support::given::Account::sign_up(&server.client);
    let bucket = account.bucket_with(&json!({"name": "gauges", "retentionDays": 20}));
    let source = bucket.source("gauge", &["level"]);
    let now = now_ns();
    // From 19 days ago to one day ago, in order: 9,000 of them before the cutoff of 10 days.
    let points = |count: i64| -> Vec<Value> {
        let at = |nth: i64| now - 19 * DAY + nth * (18 * DAY / count);
        (0..count)
            .map(|nth| point(&source, at(nth), &json!({"level": nth})))
            .collect()
    };
    bucket.send(&points(18_000));
    let count = || {
        let query = json!({"aggregation": "count", "groupBy": "month", "mergeSources": true});
        let rows = array(&bucket.query(&query), "/data");
        rows.iter()
            .filter_map(|row| row["values"]["level"].as_u64())
            .sum::<u64>()
    };
    assert_eq!(count(), 18_000);
    set_retention(&bucket, 10);
    let left = count();
    assert!((8_990..=9_000).contains(&left), "{GONE}: {left}");
    set_retention(&bucket, 20);
    // A few points at most expire while the test runs.
    let still = count();
    assert!((left - 5..=left).contains(&still), "{GONE}: {still} of {left}");
    bucket.send(&points(180));
    assert_eq!(count(), still + 180, "{KEPT}");
}
