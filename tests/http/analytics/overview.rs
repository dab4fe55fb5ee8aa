//! `GET /api/analytics/overview`: its members, which cover only the caller's organization.

use serde_json::{Value, json};

use crate::scene::{self, assert_timestamp, call};
use crate::support::given::{Account, point, text};
use crate::support::process::{Server, Setup};
use crate::support::time::{DAY, HOUR, MINUTE, now_ns};

const PATH: &str = "/api/analytics/overview";

impl Account {
    #[track_caller]
    fn overview(&self) -> Value {
        let answer = call(&self.client, &self.admin, "GET", PATH, &Value::Null);
        answer.expect(200, "spec: GET /api/analytics/overview")["overview"].clone()
    }
}

/// Removes the members that depend on the number of requests.
fn without_calls(mut overview: Value) -> Value {
    for counted in ["apiCallsThisMonth", "apiCallsPercentage"] {
        let usage = overview["usage"].as_object_mut().unwrap();
        assert!(usage.remove(counted).is_some(), "spec: `usage.{counted}`");
    }
    overview
}

#[test]
fn a_new_organization_shows_every_member() {
    let server = scene::server();
    let account = Account::sign_up(&server.client);
    let expected = json!({
        "organization": {"_id": account.organization_id, "name": "Tide Lab"},
        "totals": {"buckets": 0, "dataSources": 0, "dataPoints": 0, "alertRules": 0, "apiKeys": 1},
        "usage": {"apiCallsLimit": null, "storageUsedBytes": 0, "storageUsedFormatted": "0 B"},
        "plan": {"name": "Enterprise", "maxBuckets": null, "maxRetentionDays": null, "maxApiCalls": null},
        "recentActivity": {
            "lastDataIngestion": null, "lastAlertTriggered": null, "dataPointsLast24h": 0,
            "alertsTriggeredLast24h": 0,
        },
    });
    let shown = account.overview();
    assert_eq!(
        shown["usage"]["apiCallsPercentage"],
        Value::Null,
        "contract 8: `apiCallsPercentage` is null when unlimited"
    );
    assert_eq!(without_calls(shown), expected, "spec: the members of `overview`");
    let request = server.client.get(PATH).bearer(&account.token);
    let by_bearer = request.send().expect(
        200,
        "contract 2: wherever an admin key is accepted, the bearer is too",
    );
    assert_eq!(without_calls(by_bearer["overview"].clone()), expected);
}

#[test]
fn a_limited_plan_shows_its_usage() {
    let server = Server::start_with(Setup::default());
    let account = Account::sign_up(&server.client);
    let shown = account.overview();
    assert_eq!(
        shown["plan"],
        json!({"name": "Free", "maxBuckets": 3, "maxRetentionDays": 30, "maxApiCalls": 10_000}),
        "spec: `plan`"
    );
    let usage = &shown["usage"];
    assert_eq!(
        usage["apiCallsLimit"], 10_000,
        "spec: Free has 10,000 calls a month"
    );
    let calls = usage["apiCallsThisMonth"].as_f64().unwrap();
    assert_eq!(
        usage["apiCallsPercentage"].as_f64(),
        Some((calls / 10_000.0 * 100.0 * 100.0).round() / 100.0),
        "contract 8: `apiCallsPercentage` has two decimals: {usage}"
    );
}

#[test]
fn only_objects_of_the_organization_are_counted() {
    let (mut server, account, bucket) = scene::sealing_bucket();
    let other = account.bucket("other");
    let (gauge, second) = (
        bucket.source("gauge", &["level"]),
        other.source("gauge", &["level"]),
    );
    bucket.key("read");
    let evaluator = account.evaluator();
    let rule = bucket.evaluated_rule("judged", &gauge);
    let still = other.evaluated_rule("still", &second);
    let fired = evaluator.evaluate(&rule, "met");
    evaluator.evaluate(&still, "not_met");
    let now = now_ns();
    bucket.send(&[
        point(&gauge, now - MINUTE, &json!({"level": 1})),
        point(&gauge, now - 25 * HOUR, &json!({"level": 1})),
        point(&gauge, now + DAY, &json!({"level": 1})),
    ]);
    let before = now_ns();
    other.send(&[point(&second, now - 23 * HOUR, &json!({"level": 1}))]);
    let foreigner = Account::sign_up(&server.client);
    let foreign = foreigner.bucket("tides");
    let foreign_source = foreign.source("gauge", &["level"]);
    let many: Vec<Value> = (0..1_000)
        .map(|nth| {
            point(
                &foreign_source,
                now - nth * MINUTE,
                &json!({"level": fastrand::f64()}),
            )
        })
        .collect();
    foreign.send(&many);

    let mut ingested = Value::Null;
    for restarted in ["", "killed", "stopped"] {
        match restarted {
            "killed" => server.kill(),
            "stopped" => drop(server.stop()),
            _ => {}
        }
        if !restarted.is_empty() {
            server.launch();
        }
        let shown = account.overview();
        assert_eq!(
            shown["totals"],
            json!({"buckets": 2, "dataSources": 2, "dataPoints": 4, "alertRules": 2, "apiKeys": 3}),
            "spec: `totals`, keys of the organization and of its buckets ({restarted})"
        );
        let activity = &shown["recentActivity"];
        assert_eq!(
            (
                &activity["dataPointsLast24h"],
                &activity["alertsTriggeredLast24h"],
                &activity["lastAlertTriggered"]
            ),
            (&json!(2), &json!(1), &fired["lastEvaluatedAt"]),
            "spec: `recentActivity` ({restarted})"
        );
        assert_timestamp(&activity["lastDataIngestion"], "lastDataIngestion");
        if ingested.is_null() {
            ingested = activity["lastDataIngestion"].clone();
            let within = crate::support::time::timestamp(before)..crate::support::time::timestamp(now_ns());
            assert!(
                within.contains(&text(activity, "/lastDataIngestion")),
                "`lastDataIngestion` is when data came, not what time it bears: {ingested}"
            );
        }
        assert_eq!(
            activity["lastDataIngestion"], ingested,
            "`lastDataIngestion` survives restarts ({restarted})"
        );
        let of_foreigner = foreigner.overview();
        assert_eq!(
            of_foreigner["totals"],
            json!({"buckets": 1, "dataSources": 1, "dataPoints": 1_000, "alertRules": 0, "apiKeys": 1}),
            "contract 1: objects of other organizations are not shown ({restarted})"
        );
        let bytes = |shown: &Value| shown["usage"]["storageUsedBytes"].as_u64().unwrap();
        let (own, foreign) = (bytes(&shown), bytes(&of_foreigner));
        assert!(
            (1..foreign).contains(&own),
            "contract 8: `storageUsedBytes` is what the organization's data takes: {own}, with more data {foreign}"
        );
        let formatted = text(&of_foreigner, "/usage/storageUsedFormatted");
        assert_eq!(
            formatted,
            format!("{} KB", (foreign as f64 / 100.0).round() / 10.0),
            "spec: `storageUsedFormatted`"
        );
    }
    bucket
        .call("DELETE", "", &Value::Null)
        .expect(200, "a bucket is deleted");
    let shown = account.overview();
    assert_eq!(
        shown["totals"],
        json!({"buckets": 1, "dataSources": 1, "dataPoints": 1, "alertRules": 1, "apiKeys": 2}),
        "what is deleted counts nowhere"
    );
    assert_eq!(
        shown["recentActivity"]["lastAlertTriggered"],
        Value::Null,
        "a rule's triggers go with it"
    );
}
