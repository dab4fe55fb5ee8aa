//! Which keys may change a rule with an evaluation block, and that rules survive restarts.

use serde_json::{Value, json};

use crate::scene::{self, array, call};
use crate::support::given::Account;
use crate::support::watch::evaluation;

#[test]
fn a_block_needs_an_admin() {
    let (_server, account, bucket) = scene::bucket();
    let client = &account.client;
    let source = bucket.source("gauge", &["level"]);
    let write = bucket.key("write");
    let with_block = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": "a", "naturalLanguageQuery": "level > 5",
        "evaluation": evaluation("level"),
    });
    let sentence = "spec: a rule carrying an evaluation block requires an admin key";
    call(client, &write, "POST", "/api/alerts", &with_block).refused(403, sentence);
    let bearer = client
        .post("/api/alerts")
        .bearer(&account.token)
        .json(&with_block)
        .send();
    bearer.expect(
        201,
        "contract 2: wherever an admin key is accepted, the bearer is too",
    );

    let mut plain = with_block.clone();
    plain.as_object_mut().unwrap().remove("evaluation");
    let created = call(client, &write, "POST", "/api/alerts", &plain)
        .expect(201, "spec: a write key makes plain rules");
    let path = |rule: &Value| format!("/api/alerts/{}", rule["_id"].as_str().unwrap());
    let plain_path = path(&created["alertRule"]);
    let sentence = "contract 6: write when neither the stored rule nor the patch has an evaluation block";
    call(client, &write, "PATCH", &plain_path, &json!({"name": "b"})).expect(200, sentence);
    call(
        client,
        &write,
        "PATCH",
        &plain_path,
        &json!({"evaluation": evaluation("level")}),
    )
    .refused(403, sentence);

    let judged = format!("/api/alerts/{}", bucket.evaluated_rule("judged", &source));
    for body in [
        json!({"name": "b"}),
        json!({"evaluation": evaluation("level")}),
        json!({"evaluation": null}),
        json!({"status": "paused"}),
    ] {
        call(client, &write, "PATCH", &judged, &body).refused(403, sentence);
    }
    call(client, &write, "DELETE", &judged, &Value::Null).refused(403, "contract 6: DELETE as PATCH");
    call(client, &write, "GET", &judged, &Value::Null).expect(200, "contract 6: a write key reads any rule");
    let foreigner = Account::sign_up(client);
    let foreign = foreigner.bucket("tides").key("write");
    call(client, &foreign, "PATCH", &judged, &json!({"name": "b"}))
        .refused(404, "contract 1: a key never learns whether a foreign id exists");
    let other = account.bucket("other").key("write");
    let refused = call(client, &other, "PATCH", &judged, &json!({"name": "b"}));
    assert_eq!(
        refused.refused(403, "contract 1: a bucket-scoped key on a rule in another bucket")["message"],
        "API key does not have access to this bucket",
        "contract 1: its message"
    );
    call(client, &write, "DELETE", &plain_path, &Value::Null).expect(200, "contract 6: DELETE as PATCH");
}

#[test]
fn integration_keys_cannot_create_or_modify_rules() {
    let (_server, account, bucket) = scene::bucket();
    let client = &account.client;
    let source = bucket.source("gauge", &["level"]);
    let key = account.evaluator().key;
    let rule =
        bucket.rule(&json!({"dataSourceId": source, "name": "a", "naturalLanguageQuery": "level > 5"}));
    let path = format!("/api/alerts/{rule}");
    let sentence = "spec: integration keys cannot create or modify rules";
    let body = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": "b", "naturalLanguageQuery": "level > 5",
    });
    call(client, &key, "POST", "/api/alerts", &body).refused(403, sentence);
    call(client, &key, "PATCH", &path, &json!({"name": "b"})).refused(403, sentence);
    call(client, &key, "DELETE", &path, &Value::Null).refused(403, sentence);
    let beyond = "contract 6: integration keys reach nothing beyond the three endpoints";
    for path in [
        path.clone(),
        format!("{path}/history"),
        format!("/api/buckets/{}/alerts", bucket.id),
        "/api/webhooks".to_owned(),
        "/api/buckets".to_owned(),
    ] {
        call(client, &key, "GET", &path, &Value::Null).refused(403, beyond);
    }
    let other = account.bucket("other");
    for bucket in [&bucket, &other] {
        call(
            client,
            &key,
            "POST",
            "/api/data/query",
            &json!({"bucketId": bucket.id}),
        )
        .expect(
            200,
            "contract 6: integration keys reach all buckets of their organization through /api/data/query",
        );
    }
}

#[test]
fn rules_survive_every_kind_of_restart() {
    let (mut server, account, bucket) = scene::sealing_bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let plain = bucket.rule(&json!({
        "dataSourceId": source, "name": "plain", "condition": "level between 1 and 5",
        "webhookUrl": "https://hooks.invalid/a", "cooldownMinutes": 2.5,
    }));
    let fired = bucket.evaluated_rule("fired", &source);
    evaluator.evaluate(&fired, "met");
    let cleared = bucket.evaluated_rule("cleared", &source);
    evaluator.evaluate(&cleared, "not_met");
    let waiting = bucket.evaluated_rule("waiting", &source);
    let deleted = bucket.evaluated_rule("deleted", &source);
    call(
        &account.client,
        &account.admin,
        "DELETE",
        &format!("/api/alerts/{deleted}"),
        &Value::Null,
    )
    .expect(200, "contract 6: DELETE");
    let list = || array(&bucket.call("GET", "/alerts", &Value::Null).json(), "/alertRules");
    let (rules, history) = (list(), bucket.history(&fired));
    assert_eq!(rules.len(), 4, "the rules that were not deleted are listed");
    for stop in [false, true, false] {
        if stop {
            assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");
        } else {
            server.kill();
        }
        server.launch();
        let sentence = "contract 6: timers and states survive restarts";
        assert_eq!(list(), rules, "{sentence}");
        assert_eq!(bucket.history(&fired), history, "{sentence}, and history");
        assert_eq!(
            evaluator.due_rules(""),
            [&*waiting],
            "{sentence}: an evaluated rule is not due again"
        );
        evaluator.verdict(&fired, &json!({"outcome": "met"})).refused(
            409,
            "contract 6: a verdict is accepted once per due interval, over restarts",
        );
    }
    bucket.show(&plain);
}
