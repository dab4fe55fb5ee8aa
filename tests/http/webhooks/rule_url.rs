//! The `webhookUrl` of a rule: a different body, unsigned, delivered with the same retries.

use serde_json::{Value, json};

use super::{admin, deliveries, hook, receiver, scene, wait_until_ended};
use crate::scene::{call, column};
use crate::support::given::{Bucket, point, text};
use crate::support::receiver::{Receiver, status};
use crate::support::time::{SECOND, now_ns};
use crate::support::watch::evaluation;

fn rule(bucket: &Bucket, source: &str, url: &str) -> String {
    bucket.rule(&json!({
        "dataSourceId": source, "name": "high water", "condition": "level greater than 5", "webhookUrl": url,
        "evaluation": evaluation("level"),
    }))
}

#[test]
fn a_firing_rule_notifies_its_url() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    let source = bucket.source("gauge", &["level"]);
    let newest = point(&source, now_ns() / SECOND * SECOND, &json!({"level": 7}));
    bucket.send(std::slice::from_ref(&newest));
    hook(&account, &receiver, "/webhook", &["alert.triggered"]);
    let id = rule(&bucket, &source, &receiver.url("/rule"));
    let verdict = account.evaluator().evaluate(&id, "met");
    let request = receiver.wait("/rule", 1).remove(0);
    assert_eq!(
        request.json(),
        json!({
            "alertId": id, "alertName": "high water", "condition": "level greater than 5",
            "triggeredAt": verdict["lastEvaluatedAt"],
            "dataPoint": {"timestamp": newest["timestamp"], "values": {"level": 7}, "metadata": {}},
            "bucket": {"_id": bucket.id, "name": "tides"}, "dataSource": {"_id": source, "name": "gauge"},
        }),
        "spec: the body that a rule's `webhookUrl` receives"
    );
    assert_eq!(request.method, "POST", "spec: the service sends an HTTP POST");
    let id_header = request.header("x-webhook-id");
    let id_header =
        id_header.unwrap_or_else(|| panic!("contract 7: with `X-Webhook-Id`: {:?}", request.headers));
    for name in ["x-webhook-signature", "webhook-signature"] {
        assert_eq!(
            request.header(name),
            None,
            "contract 7: unsigned: {:?}",
            request.headers
        );
    }
    let listed = wait_until_ended(&account, &format!("alerts/{id}"), 1);
    assert_eq!(
        (&listed[0]["event"], &listed[0]["status"]),
        (&json!("alert.triggered"), &json!("delivered")),
        "contract 10: GET /api/alerts/:id/deliveries shows the deliveries of its `webhookUrl`"
    );
    let of_webhook = receiver.wait("/webhook", 1).remove(0);
    assert_ne!(
        of_webhook.json()["webhookId"],
        id_header,
        "contract 7: `webhookId` is different for every event and webhook"
    );
    let read = bucket.key("read");
    let path = format!("/api/alerts/{id}/deliveries");
    let as_reader = call(&account.client, &read, "GET", &path, &Value::Null);
    assert_eq!(
        as_reader.expect(200, "contract 10: shown as webhooks show theirs")["pagination"]["total"],
        1,
        "contract 1: all lists of this page paginate"
    );
}

#[test]
fn deliveries_to_a_rule_url_are_retried_under_the_same_id() {
    let (_server, account, bucket) = scene();
    let receiver = Receiver::answering(|_, before| status(if before < 2 { 500 } else { 204 }));
    let source = bucket.source("gauge", &["level"]);
    let id = rule(&bucket, &source, &receiver.url("/rule"));
    account.evaluator().evaluate(&id, "met");
    let received = receiver.wait("/rule", 3);
    for request in &received {
        assert_eq!(
            (request.header("x-webhook-id"), &request.body),
            (received[0].header("x-webhook-id"), &received[0].body),
            "contract 7: durable deliveries of the same machinery: the same id on every attempt"
        );
    }
    let listed = wait_until_ended(&account, &format!("alerts/{id}"), 1).remove(0);
    assert_eq!(
        listed["status"], "delivered",
        "contract 7: 2xx is a success: {listed}"
    );
    let attempts = crate::scene::array(&listed, "/attempts");
    assert_eq!(
        column(&attempts, "/statusCode"),
        [json!(500), json!(500), json!(204)],
        "contract 7: attempts [{{at, statusCode?, error?, durationMs}}]"
    );
}

#[test]
fn only_a_firing_rule_notifies_its_url() {
    let (_server, account, bucket) = scene();
    let receiver = receiver();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let quiet: Vec<String> = ["not_met", "inconclusive"]
        .iter()
        .map(|outcome| {
            let id = rule(&bucket, &source, &receiver.url("/quiet"));
            evaluator.evaluate(&id, outcome);
            id
        })
        .collect();
    let last = rule(&bucket, &source, &receiver.url("/told"));
    evaluator.evaluate(&last, "met");
    receiver.wait("/told", 1);
    for id in quiet {
        assert!(
            deliveries(&account, &format!("alerts/{id}")).is_empty(),
            "contract 6: only firing sends deliveries"
        );
    }
    assert!(
        receiver.received("/quiet").is_empty(),
        "contract 6: only firing sends deliveries"
    );
    let patched = rule(&bucket, &source, &receiver.url("/old"));
    let path = format!("/api/alerts/{patched}");
    admin(
        &account,
        "PATCH",
        &path,
        &json!({"webhookUrl": receiver.url("/new")}),
    )
    .expect(200, "contract 6: PATCH");
    evaluator.evaluate(&patched, "met");
    receiver.wait("/new", 1);
    assert!(
        receiver.received("/old").is_empty(),
        "contract 6: a changed `webhookUrl` is the one told"
    );
    let listed = wait_until_ended(&account, &format!("alerts/{patched}"), 1);
    assert_eq!(text(&listed[0], "/status"), "delivered", "contract 7: delivered");
}
