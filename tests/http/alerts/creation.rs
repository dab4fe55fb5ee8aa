//! Creation of rules: forms A and B, required members, shown members.

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, array, assert_faults, assert_timestamp, call, members};
use crate::support::client::Answer;
use crate::support::given::{Bucket, text};
use crate::support::watch::evaluation;

const URL: &str = "https://hooks.invalid/alerts";

fn form_a(source: &str) -> Value {
    json!({"dataSourceId": source, "name": "high water", "condition": "level greater than 5", "webhookUrl": URL})
}

fn form_b(source: &str) -> Value {
    json!({"dataSourceId": source, "name": "high water", "naturalLanguageQuery": "level greater than 5"})
}

/// Sends POST /api/alerts; `body` lacks only the `bucketId`.
#[track_caller]
fn post(bucket: &Bucket, body: &Value) -> Answer {
    let mut body = body.clone();
    body["bucketId"] = json!(bucket.id);
    call(&bucket.client, &bucket.admin, "POST", "/api/alerts", &body)
}

fn with(body: &Value, name: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[name] = value;
    body
}

fn without(body: &Value, name: &str) -> Value {
    let mut body = body.clone();
    body.as_object_mut().unwrap().remove(name);
    body
}

#[test]
fn form_a_shows_the_rule() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let answer = post(&bucket, &form_a(&source)).expect(201, "spec: form A gives 201");
    assert!(
        answer["message"].is_string(),
        "spec: 201 `{{message, alertRule}}`: {answer}"
    );
    assert_eq!(
        answer.get("alert"),
        None,
        "contract 6: form B's answer has `alert` beside `alertRule`, form A's has not"
    );
    let rule = &answer["alertRule"];
    let expected = json!({
        "bucketId": bucket.id, "dataSourceId": source, "name": "high water",
        "condition": "level greater than 5", "naturalLanguageQuery": "level greater than 5",
        "parsedCondition": {"field": "level", "operator": "gt", "value": 5}, "webhookUrl": URL,
        "status": "active", "cooldownMinutes": 5, "lastTriggeredAt": null, "state": "unevaluated",
        "lastEvaluatedAt": null, "conditionClearedAt": null, "nextDueAt": null, "lastOutcome": null,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(
            rule.get(name),
            Some(value),
            "spec, contract 6, 10: `{name}` of a new plain rule: {rule}"
        );
    }
    assert_timestamp(&rule["createdAt"], "createdAt");
    assert!(
        rule.get("evaluation").is_none_or(Value::is_null),
        "spec: a rule without an evaluation block: {rule}"
    );
    let shown = bucket.show(&text(rule, "/_id"));
    assert_eq!(shown, *rule, "contract 6: GET /api/alerts/:id shows the rule");
}

#[test]
fn form_b_shows_the_rule_and_its_short_form() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let body = with(&form_b(&source), "cooldownMinutes", json!(15));
    let answer = post(&bucket, &body).expect(201, "spec: form B gives 201");
    let (rule, alert) = (&answer["alertRule"], &answer["alert"]);
    assert_eq!(
        members(alert),
        ["_id", "createdAt", "name", "status"],
        "contract 6: form B's answer has `alert {{_id, name, status, createdAt}}`: {answer}"
    );
    for name in members(alert) {
        assert_eq!(
            alert[name], rule[name],
            "contract 6: `alert.{name}` is the rule's"
        );
    }
    assert_eq!(
        (&rule["condition"], &rule["naturalLanguageQuery"]),
        (&body["naturalLanguageQuery"], &body["naturalLanguageQuery"]),
        "contract 6: answers show both keys with the same text"
    );
    assert_eq!(
        rule["cooldownMinutes"], 15,
        "contract 6: `cooldownMinutes` is kept and shown"
    );
    assert_eq!(
        rule["webhookUrl"],
        Value::Null,
        "contract 6: `webhookUrl` is optional with `naturalLanguageQuery`"
    );
    let with_url = post(&bucket, &with(&body, "webhookUrl", json!(URL))).expect(201, "contract 6: form B");
    assert_eq!(
        with_url["alertRule"]["webhookUrl"], URL,
        "contract 6: optional, and kept"
    );
}

#[test]
fn exactly_one_text_is_allowed_and_required_members_are_checked() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let sentence = "contract 6: exactly one of `condition` and `naturalLanguageQuery`";
    let neither = without(&form_b(&source), "naturalLanguageQuery");
    let answer = post(&bucket, &neither);
    answer.refused(400, sentence);
    assert_eq!(answer.faults().len(), 1, "{sentence}: {answer}");
    let both = with(
        &form_a(&source),
        "naturalLanguageQuery",
        json!("level greater than 5"),
    );
    post(&bucket, &both).refused(400, sentence);
    assert_faults(
        &post(&bucket, &without(&form_a(&source), "webhookUrl")),
        &["webhookUrl"],
        "contract 6: `webhookUrl` is required with `condition`",
    );
    for (body, form) in [(form_a(&source), "A"), (form_b(&source), "B")] {
        for name in ["dataSourceId", "name"] {
            assert_faults(
                &post(&bucket, &without(&body, name)),
                &[name],
                &format!("spec: `{name}` is required in form {form}"),
            );
        }
    }
    let wrong = json!({
        "bucketId": "x", "dataSourceId": 5, "name": " ", "condition": 7, "webhookUrl": [], "cooldownMinutes": -1,
        "status": "asleep", "evaluation": 5,
    });
    assert_faults(
        &call(&account.client, &account.admin, "POST", "/api/alerts", &wrong),
        &[
            "bucketId",
            "dataSourceId",
            "name",
            "condition",
            "webhookUrl",
            "cooldownMinutes",
            "status",
            "evaluation",
        ],
        "contract 1: all faults of one body are reported together",
    );
    let empty = call(&account.client, &account.admin, "POST", "/api/alerts", &json!({}));
    empty.refused(400, sentence);
    for name in ["bucketId", "dataSourceId", "name"] {
        assert!(
            empty.faults().iter().any(|fault| fault == name),
            "contract 1: all faults together, `{name}` among them: {empty}"
        );
    }
    for cooldown in [json!("5"), json!(null), json!(-0.5), json!([5])] {
        let answer = post(
            &bucket,
            &with(&form_b(&source), "cooldownMinutes", cooldown.clone()),
        );
        if !cooldown.is_null() {
            assert_faults(
                &answer,
                &["cooldownMinutes"],
                "spec: `cooldownMinutes` is a number",
            );
        }
    }
}

#[test]
fn names_are_trimmed_and_blank_is_400() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let answer = post(&bucket, &with(&form_b(&source), "name", json!("  high \n")));
    let answer = answer.expect(201, "contract 10: names of everything are stored trimmed");
    assert_eq!(
        answer["alertRule"]["name"], "high",
        "contract 10: names are stored trimmed"
    );
    for blank in ["", "  ", "\t\n"] {
        assert_faults(
            &post(&bucket, &with(&form_b(&source), "name", json!(blank))),
            &["name"],
            "contract 10: blank is 400",
        );
        assert_faults(
            &post(
                &bucket,
                &with(&form_b(&source), "naturalLanguageQuery", json!(blank)),
            ),
            &["naturalLanguageQuery"],
            "spec: a condition that cannot be parsed gives 400",
        );
    }
}

#[test]
fn an_invalid_url_is_400() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let wrong = [
        "",
        "no url",
        "hooks.invalid/alerts",
        "//hooks.invalid/alerts",
        "ftp://hooks.invalid/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "https://",
        "https:///path",
        "http://hooks.invalid:99999/",
        "http://127.0.0.1/",
        "http://localhost:8080/",
        "http://10.1.2.3/",
        "http://[::1]/",
    ];
    for url in wrong {
        let sentence = format!("spec: an invalid webhook URL gives 400 ({url:?})");
        assert_faults(
            &post(&bucket, &with(&form_a(&source), "webhookUrl", json!(url))),
            &["webhookUrl"],
            &sentence,
        );
        assert_faults(
            &post(&bucket, &with(&form_b(&source), "webhookUrl", json!(url))),
            &["webhookUrl"],
            &sentence,
        );
    }
    let fault = json!({
        "dataSourceId": source, "name": "n", "condition": "what is this", "webhookUrl": "http://127.0.0.1/",
        "evaluation": {"intervalSeconds": 60, "windowSeconds": 60, "parameters": {},
            "inputs": [{"key": "a", "field": "nope"}]},
    });
    assert_faults(
        &post(&bucket, &fault),
        &["webhookUrl", "evaluation/inputs/0/field"],
        "contract 10: faults that only the named resource can tell come all of them together",
    );
}

#[test]
fn an_unknown_source_is_404() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let other = account.bucket("other");
    let others = other.source("gauge", &["level"]);
    for id in [UNKNOWN_ID, others.as_str()] {
        post(&bucket, &form_b(id)).refused(404, "spec: an unknown data source gives 404");
    }
    let mut elsewhere = form_b(&source);
    elsewhere["bucketId"] = json!(UNKNOWN_ID);
    call(&account.client, &account.admin, "POST", "/api/alerts", &elsewhere)
        .refused(404, "contract 1: an unknown bucket is 404");
    let wrong = with(&form_b(UNKNOWN_ID), "naturalLanguageQuery", json!("what is this"));
    post(&bucket, &wrong).refused(
        404,
        "contract 10: faults that only the named resource can tell come after its 404",
    );
}

#[test]
fn a_rule_with_an_evaluation_block_begins_armed_and_due() {
    let (_server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let body = json!({
        "dataSourceId": source, "name": "odd", "naturalLanguageQuery": "the water behaves strangely",
        "evaluation": evaluation("level"),
    });
    let answer = post(&bucket, &body);
    let answer = answer.expect(
        201,
        "contract 6: with an `evaluation` block an unparsable text is kept: the evaluator judges it",
    );
    let rule = &answer["alertRule"];
    assert_eq!(
        rule["parsedCondition"],
        Value::Null,
        "contract 6: `parsedCondition` null: {rule}"
    );
    assert_eq!(
        rule["naturalLanguageQuery"], "the water behaves strangely",
        "contract 6: the text is kept"
    );
    assert_eq!(rule["state"], "armed", "contract 6: a new rule is `armed`");
    assert_eq!(rule["lastOutcome"], Value::Null, "a new rule was never evaluated");
    assert_eq!(
        rule["nextDueAt"], rule["createdAt"],
        "contract 6, 10: a new rule is due at once; `dueAt` is when the block was added"
    );
    let parsed = with(&body, "naturalLanguageQuery", json!("level exceeds 5"));
    let parsed = post(&bucket, &parsed).expect(201, "form B with a block");
    assert_eq!(
        parsed["alertRule"]["parsedCondition"],
        json!({"field": "level", "operator": "gt", "value": 5}),
        "spec: `parsedCondition` of a text that can be parsed, with a block too"
    );
}

#[test]
fn the_list_shows_the_rules_of_its_bucket() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let other = account.bucket("other");
    let list = |bucket: &Bucket| array(&bucket.call("GET", "/alerts", &Value::Null).json(), "/alertRules");
    assert!(
        list(&bucket).is_empty(),
        "spec: GET /api/buckets/:bucketId/alerts, none yet"
    );
    let created = post(&bucket, &form_a(&source)).json();
    let listed = list(&bucket);
    assert_eq!(listed.len(), 1, "spec: 200 `{{alertRules: [...]}}`");
    for name in [
        "_id",
        "name",
        "condition",
        "dataSourceId",
        "webhookUrl",
        "status",
        "cooldownMinutes",
        "lastTriggeredAt",
        "createdAt",
    ] {
        assert_eq!(
            listed[0].get(name),
            created["alertRule"].get(name),
            "spec: the list of rules shows `{name}`"
        );
        assert!(
            listed[0].get(name).is_some(),
            "spec: the list of rules shows `{name}`"
        );
    }
    assert!(list(&other).is_empty(), "spec: the rules of this bucket only");
}

#[test]
fn rules_are_deleted_with_their_source_or_bucket() {
    let (_server, account, bucket) = scene::bucket();
    let (gauge, other) = (
        bucket.source("gauge", &["level"]),
        bucket.source("other", &["level"]),
    );
    let (of_gauge, of_other) = (
        bucket.evaluated_rule("a", &gauge),
        bucket.evaluated_rule("b", &other),
    );
    let path = |rule: &str| format!("/api/alerts/{rule}");
    let deleted = bucket.call("DELETE", &format!("/sources/{gauge}"), &Value::Null);
    assert_eq!(
        deleted.expect(200, "contract 3: DELETE of a source")["deletedResources"]["alertRules"],
        1,
        "contract 3: deletedResources: {{dataPoints, alertRules}}"
    );
    call(
        &account.client,
        &account.admin,
        "GET",
        &path(&of_gauge),
        &Value::Null,
    )
    .refused(404, "contract 3: the rules of a deleted source are deleted");
    bucket.show(&of_other);
    let evaluator = account.evaluator();
    assert_eq!(
        evaluator.due_rules(""),
        [&*of_other],
        "contract 6: a deleted rule is not due"
    );
    let deleted = bucket.call("DELETE", "", &Value::Null);
    assert_eq!(
        deleted.expect(200, "spec: DELETE of a bucket")["deletedResources"]["alertRules"],
        1,
        "spec: deletedResources: {{dataSources, dataPoints, apiKeys, alertRules}}"
    );
    call(
        &account.client,
        &account.admin,
        "GET",
        &path(&of_other),
        &Value::Null,
    )
    .refused(404, "spec: deleting a bucket permanently removes its alert rules");
    assert!(evaluator.due_rules("").is_empty(), "no rule is due");
    evaluator
        .verdict(&of_other, &json!({"outcome": "met"}))
        .refused(404, "contract 6: an unknown rule: 404");
}
