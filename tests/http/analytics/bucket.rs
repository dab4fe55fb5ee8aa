//! `GET /api/analytics/buckets/:bucketId`: its members, and the points that it counts.

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, assert_faults, call, column};
use crate::support::given::{Bucket, point, text};
use crate::support::time::{DAY, HOUR, MINUTE, SECOND, now_ns, timestamp};

const PERIODS: [(&str, f64); 4] = [("24h", 1.0), ("7d", 7.0), ("30d", 30.0), ("90d", 90.0)];

impl Bucket {
    #[track_caller]
    fn analytics(&self, query: &str) -> Value {
        let path = format!("/api/analytics/buckets/{}{query}", self.id);
        let answer = call(&self.client, &self.admin, "GET", &path, &Value::Null);
        answer.expect(200, "spec: GET /api/analytics/buckets/:bucketId")["analytics"].clone()
    }
}

#[test]
fn an_empty_bucket_shows_every_member() {
    let (_server, _, bucket) = scene::bucket();
    let without_sources = json!({
        "bucket": {"_id": bucket.id, "name": "tides"}, "period": "7d",
        "summary": {
            "totalDataPoints": 0, "dataPointsInPeriod": 0, "avgDataPointsPerDay": 0, "dataSources": 0,
            "activeAlerts": 0,
        },
        "dataSourceStats": [],
        "ingestionRate": {"dataPointsPerHour": []},
        "alertActivity": {"totalTriggered": 0, "byRule": []},
    });
    assert_eq!(
        bucket.analytics(""),
        without_sources,
        "spec: the members of `analytics`"
    );
    let source = bucket.source("gauge", &["level"]);
    let shown = bucket.analytics("");
    assert_eq!(
        shown["dataSourceStats"],
        json!([{
            "_id": source, "name": "gauge", "dataPointCount": 0, "lastDataPoint": null,
            "avgValues": {}, "minValues": {}, "maxValues": {},
        }]),
        "spec: the members of an entry of `dataSourceStats`"
    );
    assert_eq!(shown["summary"]["dataSources"], 1, "spec: `dataSources`");
}

#[test]
fn points_show_in_every_member() {
    let (mut server, account, bucket) = scene::sealing_bucket();
    let gauge = bucket.source_with(&json!({"name": "gauge", "schema": {
        "level": {"type": "number"}, "flow": {"type": "number"}, "valve": {"type": "string"},
        "open": {"type": "boolean"}, "unused": {"type": "number"},
    }}));
    let other = bucket.source("other", &["level"]);
    let idle = bucket.source("idle", &["level"]);
    // Hours that stay within the period during any test run.
    let hour = (now_ns() - 20 * HOUR) / HOUR * HOUR;
    let old = now_ns() / SECOND * SECOND - 20 * DAY;
    let ahead = now_ns() / SECOND * SECOND + DAY;
    bucket.send(&[
        point(&gauge, hour + 59 * MINUTE, &json!({"level": 1, "valve": "a"})),
        point(&gauge, hour, &json!({"level": 2.5, "open": true, "flow": -3})),
        point(&other, hour + HOUR - 1, &json!({"level": 7})),
        point(&gauge, hour + 2 * HOUR, &json!({"valve": "b", "level": 4})),
        point(&gauge, old, &json!({"level": 100})),
        point(&other, ahead, &json!({"level": 9})),
    ]);
    let hours = json!([
        {"hour": timestamp(hour), "count": 3},
        {"hour": timestamp(hour + 2 * HOUR), "count": 1},
    ]);
    for restarted in [false, true] {
        if restarted {
            server.stop();
            server.launch();
        }
        let shown = bucket.analytics("?period=24h");
        assert_eq!(
            shown["summary"],
            json!({
                "totalDataPoints": 6, "dataPointsInPeriod": 4, "avgDataPointsPerDay": 4, "dataSources": 3,
                "activeAlerts": 0,
            }),
            "contract 8, 10: `totalDataPoints` all time, the others within the period"
        );
        assert_eq!(
            shown["dataSourceStats"],
            json!([
                {
                    "_id": gauge, "name": "gauge", "dataPointCount": 3, "lastDataPoint": timestamp(hour + 2 * HOUR),
                    "avgValues": {"level": 2.5, "flow": -3}, "minValues": {"level": 1, "flow": -3},
                    "maxValues": {"level": 4, "flow": -3},
                },
                {
                    "_id": other, "name": "other", "dataPointCount": 1, "lastDataPoint": timestamp(ahead),
                    "avgValues": {"level": 7}, "minValues": {"level": 7}, "maxValues": {"level": 7},
                },
                {
                    "_id": idle, "name": "idle", "dataPointCount": 0, "lastDataPoint": null,
                    "avgValues": {}, "minValues": {}, "maxValues": {},
                },
            ]),
            "contract 10: `dataSourceStats` covers the period, `lastDataPoint` all time; fields that are no numbers, \
             and those without values, are left out"
        );
        assert_eq!(
            shown["ingestionRate"],
            json!({ "dataPointsPerHour": hours }),
            "contract 8: UTC hours of the timestamps over all sources, hours without points left out"
        );
        for (period, days) in PERIODS {
            let shown = bucket.analytics(&format!("?period={period}"));
            assert_eq!(shown["period"], period, "spec: `period`");
            let expected = if days > 20.0 { 5 } else { 4 };
            assert_eq!(
                shown["summary"]["dataPointsInPeriod"], expected,
                "contract 8: points within {period}"
            );
            let of_a_day = shown["summary"]["avgDataPointsPerDay"].as_f64().unwrap();
            assert!(
                (of_a_day - f64::from(expected) / days).abs() < 1e-12,
                "contract 8: avgDataPointsPerDay = in period / days of the period: {of_a_day}"
            );
        }
    }
    bucket
        .call("DELETE", &format!("/sources/{gauge}"), &Value::Null)
        .expect(200, "a source is deleted");
    assert_eq!(
        bucket.analytics("")["summary"]["totalDataPoints"],
        2,
        "what is deleted counts nowhere"
    );
    let elsewhere = account.bucket("elsewhere").analytics("");
    assert_eq!(
        elsewhere["summary"]["totalDataPoints"], 0,
        "a bucket shows its own points only"
    );
}

#[test]
fn a_period_is_one_of_four_and_defaults_to_seven_days() {
    let (_server, _, bucket) = scene::bucket();
    assert_eq!(bucket.analytics("")["period"], "7d", "spec: `7d` (default)");
    let path = format!("/api/analytics/buckets/{}", bucket.id);
    for wrong in ["", "7", "7D", "1d", "365d", "24h,7d", "7d%20", "-7d"] {
        let path = format!("{path}?period={wrong}");
        let answer = call(&bucket.client, &bucket.admin, "GET", &path, &Value::Null);
        assert_faults(
            &answer,
            &["period"],
            "spec: `period` is `24h`, `7d`, `30d` or `90d`",
        );
    }
    let path = "/api/analytics/buckets/nonsense?period=1y";
    let answer = call(&bucket.client, &bucket.admin, "GET", path, &Value::Null);
    assert_faults(
        &answer,
        &["bucketId", "period"],
        "contract 1: a malformed id is 400",
    );
    let path = format!("/api/analytics/buckets/{UNKNOWN_ID}?period=1y");
    let answer = call(&bucket.client, &bucket.admin, "GET", &path, &Value::Null);
    assert_faults(&answer, &["period"], "contract 1: the shape before the resource");
}

#[test]
fn rules_count_as_active_by_their_status_and_by_rule_when_they_fire() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let quiet = bucket.evaluated_rule("quiet", &source);
    let first = bucket.evaluated_rule("same name", &source);
    let second = bucket.evaluated_rule("same name", &source);
    let paused = bucket.evaluated_rule("paused", &source);
    evaluator.evaluate(&quiet, "not_met");
    evaluator.evaluate(&second, "met");
    evaluator.evaluate(&paused, "met");
    let path = format!("/api/alerts/{paused}");
    call(
        &bucket.client,
        &bucket.admin,
        "PATCH",
        &path,
        &json!({"status": "paused"}),
    )
    .expect(200, "a rule is paused");
    let activity = |shown: &Value| shown["alertActivity"].clone();
    let shown = bucket.analytics("?period=24h");
    assert_eq!(
        shown["summary"]["activeAlerts"], 3,
        "contract 8: rules with status `active`"
    );
    assert_eq!(
        activity(&shown),
        json!({"totalTriggered": 2, "byRule": [
            {"name": "same name", "count": 1}, {"name": "paused", "count": 1},
        ]}),
        "contract 8: triggers in the period, an entry for each rule that fired, oldest first among equals"
    );
    evaluator.evaluate(&first, "met");
    let shown = bucket.analytics("?period=24h");
    assert_eq!(
        activity(&shown)["totalTriggered"],
        3,
        "contract 8: `totalTriggered`"
    );
    let names = column(
        shown
            .pointer("/alertActivity/byRule")
            .unwrap()
            .as_array()
            .unwrap(),
        "/name",
    );
    assert_eq!(
        names,
        [json!("same name"), json!("same name"), json!("paused")],
        "rules of one name are two entries"
    );
    call(&bucket.client, &bucket.admin, "DELETE", &path, &Value::Null).expect(200, "a rule is deleted");
    assert_eq!(
        activity(&bucket.analytics(""))["totalTriggered"],
        2,
        "a rule's triggers go with it"
    );
    let elsewhere = account.bucket("elsewhere");
    assert_eq!(
        activity(&elsewhere.analytics(""))["totalTriggered"],
        0,
        "a bucket shows its own rules only"
    );
}

#[test]
fn sources_are_listed_oldest_first_and_long_lists_compressed() {
    let (_server, _, bucket) = scene::bucket();
    let sources: Vec<String> = (0..30)
        .map(|nth| bucket.source(&format!("gauge {nth}"), &["level"]))
        .collect();
    let points: Vec<Value> = sources
        .iter()
        .map(|source| point(source, now_ns() - HOUR, &json!({"level": 1})))
        .collect();
    bucket.send(&points);
    let path = format!("/api/analytics/buckets/{}", bucket.id);
    let request = bucket.client.get(&path).key(&bucket.admin);
    let answer = request.header("Accept-Encoding", "gzip").send();
    assert_eq!(
        (answer.status, answer.header("content-encoding")),
        (200, Some("gzip")),
        "contract 1: answers are compressed when `Accept-Encoding` allows it"
    );
    let shown = bucket.analytics("");
    let ids: Vec<String> = scene::array(&shown, "/dataSourceStats")
        .iter()
        .map(|entry| text(entry, "/_id"))
        .collect();
    assert_eq!(ids, sources, "contract 1: oldest first");
}
