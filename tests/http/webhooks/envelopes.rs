//! The bodies of deliveries, member by member.

use serde_json::{Value, json};

use super::{EVENTS, admin, hook, receiver, scene, send_test};
use crate::scene::{UNKNOWN_ID, array, assert_timestamp, call, members};
use crate::support::given::{Account, Bucket, point, text};
use crate::support::receiver::{Received, Receiver};
use crate::support::time::{MINUTE, SECOND, now_ns, timestamp};
use crate::support::waiting::until;
use crate::support::watch::evaluation;

/// The `data` of an envelope of this event; asserts the other members.
#[track_caller]
fn data(request: &Received, event: &str, bucket: &Value) -> Value {
    let envelope = request.json();
    assert_eq!(
        members(&envelope),
        ["bucketId", "data", "event", "timestamp", "webhookId"],
        "spec: envelope `{{event, timestamp, webhookId, bucketId, data}}`: {envelope}"
    );
    assert_eq!(envelope["event"], event, "spec: `event` of the envelope");
    assert_eq!(&envelope["bucketId"], bucket, "spec: `bucketId` of the envelope");
    assert_timestamp(&envelope["timestamp"], "timestamp");
    let id = text(&envelope, "/webhookId");
    assert!(
        id.len() == 24
            && id
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
        "contract 1: ids are 24 lowercase hex characters: {id}"
    );
    envelope["data"].clone()
}

/// A whole second some minutes ago.
fn minutes_ago() -> i64 {
    (now_ns() - 10 * MINUTE) / SECOND * SECOND
}

/// A source with an older and a newer point, a rule with a block, and a receiver of its trigger.
struct FiredRule {
    bucket: Bucket,
    account: Account,
    source: String,
    receiver: Receiver,
    newest_at: i64,
    _server: crate::support::process::Server,
}

fn fired() -> FiredRule {
    let (server, account, bucket) = scene();
    let source = bucket.source("gauge", &["level", "depth"]);
    let newest_at = minutes_ago() + SECOND * 3 / 2;
    let mut newest = point(&source, newest_at, &json!({"level": 7.25, "depth": 3}));
    newest["metadata"] = json!({"by": "buoy 5"});
    bucket.send(&[newest, point(&source, newest_at - MINUTE, &json!({"level": 1}))]);
    FiredRule {
        bucket,
        account,
        source,
        receiver: receiver(),
        newest_at,
        _server: server,
    }
}

impl FiredRule {
    fn rule(&self, text: &str) -> String {
        self.bucket.rule(&json!({
            "dataSourceId": self.source, "name": "high water", "naturalLanguageQuery": text,
            "evaluation": evaluation("level"),
        }))
    }
}

#[test]
fn alert_triggered_from_the_condition_and_the_newest_point() {
    let scene = fired();
    hook(&scene.account, &scene.receiver, "/", &["alert.triggered"]);
    let rule = scene.rule("level greater than 5");
    let result = scene.account.evaluator().evaluate(&rule, "met");
    let request = scene.receiver.wait("/", 1).remove(0);
    let found = data(&request, "alert.triggered", &json!(scene.bucket.id));
    let expected = json!({
        "alertId": rule, "alertName": "high water", "dataSourceId": scene.source, "dataSourceName": "gauge",
        "condition": "level greater than 5", "currentValue": 7.25, "threshold": 5, "operator": "gt",
        "triggeredAt": result["lastEvaluatedAt"],
        "dataPoint": {
            "timestamp": timestamp(scene.newest_at), "values": {"level": 7.25, "depth": 3},
            "metadata": {"by": "buoy 5"},
        },
    });
    assert_eq!(
        found, expected,
        "spec: `alert.triggered` data; contract 6: from `parsedCondition` and the source's newest point"
    );
}

#[test]
fn alert_triggered_from_the_evidence() {
    let scene = fired();
    hook(&scene.account, &scene.receiver, "/", &["alert.triggered"]);
    let rule = scene.rule("it behaves strangely");
    let facts = json!({
        "currentValue": 99.5, "threshold": [1, 2], "operator": "strange", "note": "not for receivers",
        "dataPoint": {"timestamp": "2026-01-01T00:00:00Z", "values": {"level": 99.5}, "metadata": {"a": 1}},
    });
    let body = json!({"outcome": "met", "evidence": facts});
    let answer = scene.account.evaluator().verdict(&rule, &body);
    let result = answer.expect(200, "contract 6: a verdict")["evaluation"].clone();
    let request = scene.receiver.wait("/", 1).remove(0);
    let found = data(&request, "alert.triggered", &json!(scene.bucket.id));
    let expected = json!({
        "alertId": rule, "alertName": "high water", "dataSourceId": scene.source, "dataSourceName": "gauge",
        "condition": "it behaves strangely", "currentValue": 99.5, "threshold": [1, 2], "operator": "strange",
        "triggeredAt": result["lastEvaluatedAt"], "dataPoint": facts["dataPoint"],
    });
    assert_eq!(
        found, expected,
        "contract 6: `currentValue`, `threshold`, `operator`, `dataPoint` come from the evidence when it has them"
    );
}

#[test]
fn each_fact_is_taken_from_the_evidence_separately() {
    let scene = fired();
    hook(&scene.account, &scene.receiver, "/", &["alert.triggered"]);
    let evaluator = scene.account.evaluator();
    let evidence = [
        ("currentValue", json!(0)),
        ("threshold", json!("high")),
        ("operator", json!(null)),
        (
            "dataPoint",
            json!({"timestamp": "2026-01-01T00:00:00Z", "values": {"level": 1}}),
        ),
    ];
    let fallback = json!({"currentValue": 7.25, "threshold": 5, "operator": "gt"});
    for (nth, (name, value)) in evidence.into_iter().enumerate() {
        let rule = scene.rule("level greater than 5");
        let body = json!({"outcome": "met", "evidence": {name: value}});
        evaluator
            .verdict(&rule, &body)
            .expect(200, "contract 6: a verdict");
        let request = scene.receiver.wait("/", nth + 1).remove(nth);
        let found = data(&request, "alert.triggered", &json!(scene.bucket.id));
        for (member, expected) in fallback.as_object().unwrap() {
            let from_evidence = member == name && !value.is_null();
            let expected = if from_evidence { &value } else { expected };
            if member != name || from_evidence {
                assert_eq!(
                    &found[member], expected,
                    "contract 6: `{member}` with `{name}` in the evidence"
                );
            }
        }
        if name == "dataPoint" {
            let mut expected = value;
            expected["metadata"] = json!({});
            assert_eq!(
                found["dataPoint"], expected,
                "contract 10: in webhook bodies `metadata` is `{{}}` when a point had none"
            );
        } else {
            assert_eq!(
                found["dataPoint"]["metadata"]["by"], "buoy 5",
                "contract 6: the source's newest point with `{name}` in the evidence"
            );
        }
    }
}

#[test]
fn bucket_updated_lists_actual_changes_only() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    hook(&account, &receiver, "/", &["bucket.updated"]);
    let keys = admin(&account, "GET", "/api/organization/keys", &Value::Null).json();
    let admin_key = array(&keys, "/apiKeys")[0]["_id"].clone();
    let before = bucket.call("GET", "", &Value::Null).json()["bucket"].clone();
    let body =
        json!({"name": "renamed", "description": "of the harbour", "retentionDays": before["retentionDays"]});
    let after = bucket.call("PATCH", "", &body).expect(200, "contract 3: PATCH");
    let found = data(&receiver.wait("/", 1)[0], "bucket.updated", &json!(bucket.id));
    let old = before.get("description").cloned().unwrap_or(Value::Null);
    assert_eq!(
        found,
        json!({
            "changes": {
                "name": {"old": "tides", "new": "renamed"},
                "description": {"old": old, "new": "of the harbour"},
            },
            "updatedBy": admin_key, "updatedAt": after["bucket"]["updatedAt"],
        }),
        "spec: `bucket.updated` data; contract 3: what really changed; contract 10: `updatedBy` is the id of the key"
    );
    // Without a change, no event is emitted: the next delivery is of the following change.
    bucket.call("PATCH", "", &body).expect(200, "contract 3: PATCH");
    let by_bearer = account
        .client
        .request("PATCH", &format!("/api/buckets/{}", bucket.id));
    let by_bearer = by_bearer
        .bearer(&account.token)
        .json(&json!({"retentionDays": 9}))
        .send();
    by_bearer.expect(200, "contract 3: PATCH");
    let found = data(&receiver.wait("/", 2)[1], "bucket.updated", &json!(bucket.id));
    assert_eq!(
        found["changes"],
        json!({"retentionDays": {"old": before["retentionDays"], "new": 9}}),
        "contract 3: nothing changed, nothing emitted"
    );
    let me = account
        .client
        .get("/api/auth/me")
        .bearer(&account.token)
        .send()
        .json();
    assert_eq!(
        found["updatedBy"], me["user"]["_id"],
        "contract 10: or of the user"
    );
}

#[test]
fn data_received_of_a_single_point() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    hook(&account, &receiver, "/", &["data.received"]);
    let source = bucket.source("gauge", &["level", "depth"]);
    let at = minutes_ago();
    let mut sent = point(&source, at, &json!({"level": 1.5, "depth": null}));
    sent["metadata"] = json!({"by": "buoy 5"});
    for (nth, sent) in [sent, point(&source, at - MINUTE, &json!({"level": 2}))]
        .iter()
        .enumerate()
    {
        let created = bucket.single(sent).expect(201, "a point")["dataPoint"].clone();
        let found = data(
            &receiver.wait("/", nth + 1)[nth],
            "data.received",
            &json!(bucket.id),
        );
        let metadata = sent.get("metadata").cloned().unwrap_or(json!({}));
        assert_eq!(
            found,
            json!({
                "dataSourceId": source, "dataSourceName": "gauge",
                "dataPoint": {
                    "_id": created["_id"], "timestamp": sent["timestamp"], "values": created["values"],
                    "metadata": metadata,
                },
            }),
            "spec: `data.received` data; contract 10: `metadata` is `{{}}` when a point had none"
        );
    }
}

#[test]
fn data_received_of_a_batch_is_once_per_source() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    hook(&account, &receiver, "/", &["data.received"]);
    let (first, second) = (
        bucket.source("first", &["level"]),
        bucket.source("second", &["level"]),
    );
    let at = minutes_ago();
    let mut newest = point(&first, at + 2 * SECOND, &json!({"level": 2}));
    newest["metadata"] = json!({"newest": true});
    let entries = [
        point(&first, at + SECOND, &json!({"level": 1})),
        newest,
        point(&second, at, &json!({"level": 10})),
        point(UNKNOWN_ID, at, &json!({"level": 0})),
        point(&first, at - SECOND, &json!({"level": 3})),
    ];
    bucket
        .batch(&entries)
        .expect(207, "contract 4: an entry's fault never stops the others");
    let received = receiver.wait("/", 2);
    let mut observed: Vec<Value> = received
        .iter()
        .map(|request| data(request, "data.received", &json!(bucket.id)))
        .collect();
    observed.sort_by_key(|data| text(data, "/dataSourceName"));
    let rows = bucket.rows(&json!({}));
    let id_of = |level: i64| rows.iter().find(|row| row["values"]["level"] == level).unwrap()["_id"].clone();
    for (found, (source, name, at, level, metadata, count)) in observed.iter().zip([
        (
            &first,
            "first",
            &entries[1]["timestamp"],
            2,
            json!({"newest": true}),
            3,
        ),
        (&second, "second", &entries[2]["timestamp"], 10, json!({}), 1),
    ]) {
        assert_eq!(
            found,
            &json!({
                "dataSourceId": source, "dataSourceName": name, "dataPointCount": count,
                "dataPoint": {"_id": id_of(level), "timestamp": at, "values": {"level": level}, "metadata": metadata},
            }),
            "contract 7: once per source of a batch, with its newest point and `dataPointCount`"
        );
    }
    bucket
        .batch(&[point(UNKNOWN_ID, at, &json!({"level": 0}))])
        .refused(400, "contract 4: all entries failed");
    bucket
        .single(&point(&second, at, &json!({"level": 11})))
        .expect(201, "a point");
    let last = receiver.wait("/", 3);
    let last = data(&last[2], "data.received", &json!(bucket.id));
    assert_eq!(
        last["dataPoint"]["values"]["level"], 11,
        "refused points are not notified"
    );
}

/// Regression: ingestion uses the last of duplicate members, but the notification's parser refused them.
#[test]
fn data_received_shows_the_stored_value_of_duplicate_members() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    let webhook = hook(&account, &receiver, "/", &["data.received"]);
    let source = bucket.source("gauge", &["level"]);
    let body = format!(
        r#"{{"bucketId":"{}","dataPoints":[
            {{"dataSourceId":"{source}","timestamp":"2026-01-01T00:00:00Z","values":{{"level":0}}}},
            {{"dataSourceId":"{source}","values":{{"level":1}},"values":{{"level":2}}}},
            {{"dataSourceId":"{source}","values":{{"level":9007199254740993}},"timestamp":"{}"}}]}}"#,
        bucket.id,
        point(&source, minutes_ago(), &json!({}))["timestamp"]
            .as_str()
            .unwrap()
    );
    let sent = account.client.post("/api/data/batch").key(&account.admin);
    sent.header("content-type", "application/json")
        .body(body)
        .send()
        .expect(207, "contract 4: the first is too old");
    let found = data(&receiver.wait("/", 1)[0], "data.received", &json!(bucket.id));
    let row = bucket
        .rows(&json!({}))
        .into_iter()
        .find(|row| row["values"]["level"] == 2)
        .unwrap();
    let observed = (
        &found["dataPointCount"],
        &found["dataPoint"]["_id"],
        &found["dataPoint"]["values"],
    );
    assert_eq!(
        observed,
        (&json!(2), &row["_id"], &json!({"level": 2})),
        "contract 7: once per source of a batch, with its newest point and `dataPointCount`"
    );
    let path = format!("/api/webhooks/{webhook}");
    until("the statistics follow", || {
        let shown = admin(&account, "GET", &path, &Value::Null).json()["webhook"].clone();
        let observed = [&shown["totalDeliveries"], &shown["successfulDeliveries"]];
        (observed == [&json!(1), &json!(1)]).then_some(())
    });
}

#[test]
fn webhook_test_has_an_envelope() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    let of_all = hook(&account, &receiver, "/all", &EVENTS);
    let of_bucket = account.webhook(&json!({
        "url": receiver.url("/one"), "events": ["bucket.updated"], "bucketId": bucket.id,
    }));
    for (webhook, path, bucket) in [
        (of_all, "/all", Value::Null),
        (text(&of_bucket, "/_id"), "/one", json!(bucket.id)),
    ] {
        let delivery = send_test(&account, &webhook);
        assert_eq!(
            delivery["event"], "webhook.test",
            "contract 7: the test event is `webhook.test`"
        );
        let request = receiver.wait(path, 1).remove(0);
        data(&request, "webhook.test", &bucket);
    }
    let key = bucket.key("write");
    let path = "/api/webhooks";
    call(&account.client, &key, "GET", path, &Value::Null).refused(403, "contract 7: bearer or admin key");
}
