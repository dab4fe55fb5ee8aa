//! Somebody knows that a rule has fired (contract 14).

use serde_json::{Value, json};

use crate::scene::{self, assert_faults, assert_timestamp};
use crate::support::given::point;
use crate::support::time::now_ns;

#[test]
fn a_rule_that_fired_shows_who_knows() {
    let (mut server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&[point(&source, now_ns(), &json!({"level": 9}))]);
    let rule = bucket.evaluated_rule("high", &source);
    let evaluator = account.evaluator();
    let path = format!("/api/alerts/{rule}/acknowledge");
    let client = &account.client;
    let acknowledge = |key: &str, body: &Value| client.post(&path).key(key).json(body).send();
    assert_eq!(
        bucket.show(&rule)["acknowledgement"],
        Value::Null,
        "small print 28"
    );
    acknowledge(&account.admin, &json!({})).expect(409, "small print 27: armed");
    evaluator.evaluate(&rule, "met");
    let before = bucket.show(&rule);
    let history = bucket.history(&rule).len();
    let answer = client
        .post(&path)
        .key(&account.admin)
        .send()
        .expect(200, "small print 28: the body may be absent");
    let shown = &answer["alertRule"]["acknowledgement"];
    assert_timestamp(&shown["at"], "acknowledgement.at");
    assert!(shown["by"].is_string());
    assert_eq!(shown["note"], Value::Null, "small print 28: null when none");
    assert!(answer["message"].is_string());
    let writer = bucket.key("write");
    let noted =
        acknowledge(&writer, &json!({"note": "Maria is on her way"})).expect(200, "small print 28: write");
    assert_eq!(
        noted["alertRule"]["acknowledgement"]["note"], "Maria is on her way",
        "the last one stands"
    );
    assert_ne!(
        noted["alertRule"]["acknowledgement"]["by"], shown["by"],
        "small print 28: the id of the key"
    );
    acknowledge(&writer, &json!({"note": null})).expect(200, "null is absent");
    let by_bearer = client
        .post(&path)
        .bearer(&account.token)
        .json(&json!({"note": "seen"}))
        .send();
    let by_bearer = by_bearer.expect(200, "the bearer");
    // It changes nothing else, and is durable.
    server.kill();
    server.launch();
    let after = bucket.show(&rule);
    assert_eq!(
        after["acknowledgement"],
        by_bearer["alertRule"]["acknowledgement"]
    );
    for member in [
        "state",
        "lastTriggeredAt",
        "updatedAt",
        "nextDueAt",
        "conditionClearedAt",
    ] {
        assert_eq!(after[member], before[member], "{member}");
    }
    assert_eq!(
        bucket.history(&rule).len(),
        history,
        "small print 28: not a history entry"
    );
}

#[test]
fn acknowledging_has_its_limits() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.send(&[point(&source, now_ns(), &json!({"level": 9}))]);
    let rule = bucket.evaluated_rule("high", &source);
    account.evaluator().evaluate(&rule, "met");
    let client = &account.client;
    let post = |rule: &str, key: &str, body: &Value| {
        let path = format!("/api/alerts/{rule}/acknowledge");
        client.post(&path).key(key).json(body).send()
    };
    let longest = "ä".repeat(1_000);
    post(&rule, &account.admin, &json!({"note": longest})).expect(200, "small print 28");
    let longer = format!("{longest}.");
    assert_faults(
        &post(&rule, &account.admin, &json!({"note": longer})),
        &["note"],
        "small print 28",
    );
    assert_faults(
        &post(&rule, &account.admin, &json!({"note": 5})),
        &["note"],
        "a text",
    );
    post(&rule, &bucket.key("read"), &json!({})).expect(403, "small print 28: admin, write");
    post(&rule, &account.evaluator().key, &json!({})).expect(403, "small print 28: admin, write");
    let elsewhere = account.bucket("elsewhere");
    post(&rule, &elsewhere.key("write"), &json!({})).expect(403, "small print 28: of its bucket");
    post("0123456789abcdef01234567", &account.admin, &json!({})).expect(404, "unknown");
    let plain = bucket.rule(&json!({
        "dataSourceId": source, "name": "plain", "naturalLanguageQuery": "level is above 3"
    }));
    post(&plain, &account.admin, &json!({})).expect(409, "small print 27: plain rules");
    let malformed = client
        .post(&format!("/api/alerts/{rule}/acknowledge"))
        .key(&account.admin);
    malformed.body(b"{\"note\": ").send().expect(400, "not JSON");
}
