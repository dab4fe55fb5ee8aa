//! What a silence stops, and what it does not.

use serde_json::{Value, json};

use super::{at, create, in_seconds, listed};
use crate::scene::{self, column};
use crate::support::given::{Account, Bucket, point, text};
use crate::support::process::Server;
use crate::support::receiver::{Receiver, status};
use crate::support::time::now_ns;
use crate::support::waiting::until;
use crate::support::watch::evaluation;

fn scene() -> (Server, Account, Bucket) {
    let server = scene::server_with("webhooks.allow_private_networks", "true");
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    (server, account, bucket)
}

/// Creates a rule that notifies this path of the receiver.
fn rule(bucket: &Bucket, source: &str, receiver: &Receiver, path: &str) -> String {
    bucket.rule(&json!({
        "dataSourceId": source, "name": "high water", "condition": "level greater than 5",
        "webhookUrl": receiver.url(path), "evaluation": evaluation("level"),
    }))
}

/// `silenceId` of the rule's only trigger.
#[track_caller]
fn silence_of_trigger(bucket: &Bucket, rule: &str) -> Value {
    let history = bucket.history(rule);
    assert_eq!(
        column(&history, "/kind"),
        [json!("trigger"), json!("verdict")],
        "contract 14: verdicts still move states and history"
    );
    assert!(
        history[1].get("silenceId").is_none(),
        "small print 25: entries of kind `trigger`"
    );
    let found = history[0].get("silenceId").cloned();
    found.unwrap_or_else(|| panic!("small print 25: `silenceId`, or null: {history:?}"))
}

#[test]
fn a_silenced_rule_fires_and_is_not_delivered_also_after_a_kill() {
    let (mut server, account, bucket) = scene();
    let other = account.bucket("other");
    let receiver = Receiver::answering(|_, _| status(200));
    let events = ["alert.triggered", "bucket.updated", "data.received"];
    account.webhook(&json!({"url": receiver.url("/hook"), "events": events}));
    let source = bucket.source("gauge", &["level"]);
    let elsewhere = other.source("gauge", &["level"]);
    let rule_at = |path: &str| rule(&bucket, &source, &receiver, path);
    let evaluator = account.evaluator();
    // By rule, by bucket, by organization.
    let by_rule = rule_at("/muted/rule");
    let silence = create(&account, &json!({"alertIds": [by_rule]}));
    let verdict = evaluator.evaluate(&by_rule, "met");
    assert_eq!(
        (&verdict["triggered"], &verdict["state"]),
        (&json!(true), &json!("firing")),
        "contract 14: verdicts still move states"
    );
    assert_eq!(
        bucket.show(&by_rule)["lastTriggeredAt"],
        verdict["lastEvaluatedAt"]
    );
    assert_eq!(silence_of_trigger(&bucket, &by_rule), json!(silence));
    // A rule that it does not name.
    let heard = rule_at("/heard/rule");
    evaluator.evaluate(&heard, "met");
    assert_eq!(silence_of_trigger(&bucket, &heard), Value::Null);
    let of_bucket = create(&account, &json!({"bucketId": bucket.id}));
    let by_bucket = rule_at("/muted/bucket");
    evaluator.evaluate(&by_bucket, "met");
    assert_eq!(silence_of_trigger(&bucket, &by_bucket), json!(of_bucket));
    let heard_elsewhere = rule(&other, &elsewhere, &receiver, "/heard/bucket");
    evaluator.evaluate(&heard_elsewhere, "met");
    assert_eq!(silence_of_trigger(&other, &heard_elsewhere), Value::Null);
    let of_all = create(&account, &json!({}));
    let by_organization = rule(&other, &elsewhere, &receiver, "/muted/organization");
    server.kill();
    server.launch();
    evaluator.evaluate(&by_organization, "met");
    assert_eq!(silence_of_trigger(&other, &by_organization), json!(of_all));
    let foreigner = Account::sign_up(&server.client);
    let foreign = foreigner.bucket("tides");
    let foreign_source = foreign.source("gauge", &["level"]);
    let foreign_rule = rule(&foreign, &foreign_source, &receiver, "/heard/foreign");
    foreigner.evaluator().evaluate(&foreign_rule, "met");
    assert_eq!(silence_of_trigger(&foreign, &foreign_rule), Value::Null);
    // Other events are never muted.
    bucket.send(&[point(&source, now_ns(), &json!({"level": 1}))]);
    bucket
        .call("PATCH", "", &json!({"description": "renewed"}))
        .expect(200, "changed");
    for path in ["/heard/rule", "/heard/bucket", "/heard/foreign"] {
        receiver.wait(path, 1);
    }
    let events = |count: usize| {
        let requests = receiver.wait("/hook", count);
        let mut events: Vec<_> = requests.iter().map(|it| text(&it.json(), "/event")).collect();
        events.sort();
        events
    };
    let told = [
        "alert.triggered",
        "alert.triggered",
        "bucket.updated",
        "data.received",
    ];
    assert_eq!(events(4), told, "small print 24");
    // The silences end: what they stopped is never made up for, what happens then is told.
    for silence in [&silence, &of_bucket, &of_all] {
        at(&account, &account.admin, "DELETE", silence).expect(200, "contract 14: DELETE");
    }
    let after = rule_at("/heard/after");
    evaluator.evaluate(&after, "met");
    receiver.wait("/heard/after", 1);
    assert_eq!(silence_of_trigger(&bucket, &after), Value::Null);
    assert_eq!(events(5).len(), 5, "small print 23: never made up for");
    for path in ["/muted/rule", "/muted/bucket", "/muted/organization"] {
        assert!(
            receiver.received(path).is_empty(),
            "small print 24: {path} is muted"
        );
    }
    for rule in [&by_rule, &by_bucket, &by_organization] {
        let list = format!("/api/alerts/{rule}/deliveries");
        let list = account.client.get(&list).key(&account.admin).send().json();
        assert_eq!(list["pagination"]["total"], 0, "deliveries are not made");
    }
    assert_eq!(
        silence_of_trigger(&bucket, &by_rule),
        json!(silence),
        "small print 25: also when the silence is gone"
    );
}

#[test]
fn a_delivery_that_was_queued_before_goes_on() {
    let (_server, account, bucket) = scene();
    let receiver = Receiver::answering(|_, before| status(if before == 0 { 500 } else { 200 }));
    let source = bucket.source("gauge", &["level"]);
    let rule = rule(&bucket, &source, &receiver, "/rule");
    account.evaluator().evaluate(&rule, "met");
    receiver.wait("/rule", 1);
    create(&account, &json!({"alertIds": [rule]}));
    receiver.wait("/rule", 2);
    assert_eq!(silence_of_trigger(&bucket, &rule), Value::Null, "small print 23");
}

#[test]
fn a_silence_ends_by_itself() {
    let (_server, account, bucket) = scene();
    let receiver = Receiver::answering(|_, _| status(200));
    let source = bucket.source("gauge", &["level"]);
    let brief = create(&account, &json!({"bucketId": bucket.id, "until": in_seconds(5)}));
    let rest = create(&account, &json!({"bucketId": bucket.id}));
    assert_eq!(
        listed(&account, &account.admin),
        [brief.clone(), rest.clone()],
        "by creation"
    );
    at(&account, &account.admin, "DELETE", &rest).expect(200, "contract 14: DELETE");
    until("small print 26: a silence that has ended is not listed", || {
        listed(&account, &account.admin).is_empty().then_some(())
    });
    for method in ["GET", "DELETE"] {
        at(&account, &account.admin, method, &brief).expect(404, "it has ended");
    }
    let rule = rule(&bucket, &source, &receiver, "/rule");
    account.evaluator().evaluate(&rule, "met");
    assert_eq!(silence_of_trigger(&bucket, &rule), Value::Null);
    receiver.wait("/rule", 1);
}
