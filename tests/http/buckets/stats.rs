//! `stats` of a source: counts and times of its points.

use serde_json::{Value, json};

use crate::scene;
use crate::support::given::{Bucket, point};
use crate::support::time::{DAY, MINUTE, SECOND, now_ns, timestamp};

fn stats(bucket: &Bucket, source: &str) -> Value {
    let shown = bucket.call("GET", &format!("/sources/{source}"), &Value::Null);
    shown.expect(200, "contract 3: GET one source")["dataSource"]["stats"].clone()
}

#[test]
fn stats_include_late_points() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let other = bucket.source("other", &["level"]);
    let start = now_ns() / SECOND * SECOND;
    let at = |ns: i64| point(&source, ns, &json!({"level": 1}));
    bucket.send(&[point(&other, start - DAY, &json!({"level": 1}))]);
    bucket.send(&[at(start)]);
    let one = json!({
        "totalDataPoints": 1, "firstDataPoint": timestamp(start), "lastDataPoint": timestamp(start),
        "averageIntervalSeconds": null, "seriesCount": null,
    });
    assert_eq!(
        stats(&bucket, &source),
        one,
        "contract 3: averageIntervalSeconds is null below 2 points"
    );

    // Evenly spaced, newest first: the average interval is the spacing, however it is computed.
    let points: Vec<Value> = (1..=40).rev().map(|nth| at(start - nth * MINUTE)).collect();
    bucket.send(&points);
    for restarted in [false, true] {
        if restarted {
            server.kill();
            server.launch();
        }
        let shown = stats(&bucket, &source);
        assert_eq!(
            shown["totalDataPoints"], 41,
            "contract 3: totalDataPoints (after a kill: {restarted})"
        );
        assert_eq!(
            shown["firstDataPoint"],
            timestamp(start - 40 * MINUTE),
            "contract 3: firstDataPoint"
        );
        assert_eq!(
            shown["lastDataPoint"],
            timestamp(start),
            "contract 3: lastDataPoint"
        );
        assert!(
            shown["averageIntervalSeconds"].is_u64(),
            "contract 1: an integral value is printed without .0: {shown}"
        );
        let interval = shown["averageIntervalSeconds"].as_f64().unwrap_or(f64::NAN);
        assert!(
            (interval - 60.0).abs() < 1e-6,
            "contract 3: averageIntervalSeconds is 60, not {interval}"
        );
    }
    let listed = bucket.call("GET", "/sources", &Value::Null).json();
    assert_eq!(
        listed["dataSources"][0]["stats"],
        stats(&bucket, &source),
        "a list shows the same stats"
    );
}

#[test]
fn future_points_are_counted_like_past_ones() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns() / SECOND * SECOND;
    let points: Vec<Value> = (0..5)
        .map(|nth| point(&source, start + nth * 1000 * DAY, &json!({"level": nth})))
        .collect();
    bucket.send(&points);
    let shown = stats(&bucket, &source);
    assert_eq!(shown["totalDataPoints"], 5, "contract 4: the future is allowed");
    assert_eq!(
        shown["lastDataPoint"],
        timestamp(start + 4000 * DAY),
        "contract 4: the future is allowed"
    );
    assert_eq!(
        shown["averageIntervalSeconds"].as_f64(),
        Some(86_400_000.0),
        "contract 3: averageIntervalSeconds"
    );
}
