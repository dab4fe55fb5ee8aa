//! PATCH and DELETE: which members change, and that a refused change has no effect. `tests/loop`
//! tests with a simulated clock that runtime state is kept over intervals.

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, assert_faults, call, members};
use crate::support::client::Answer;
use crate::support::given::Bucket;
use crate::support::watch::evaluation;

const URL: &str = "https://hooks.invalid/alerts";

fn gauge(bucket: &Bucket) -> String {
    bucket.source("gauge", &["level", "depth"])
}

fn plain_rule(bucket: &Bucket, source: &str) -> String {
    bucket.rule(&json!({
        "dataSourceId": source, "name": "plain", "condition": "level greater than 5", "webhookUrl": URL,
    }))
}

#[track_caller]
fn patch(bucket: &Bucket, rule: &str, body: &Value) -> Answer {
    call(
        &bucket.client,
        &bucket.admin,
        "PATCH",
        &format!("/api/alerts/{rule}"),
        body,
    )
}

/// Sends a PATCH; its answer must equal that of a GET.
#[track_caller]
fn patched(bucket: &Bucket, rule: &str, body: &Value) -> Value {
    let answer = patch(bucket, rule, body).expect(200, &format!("contract 6: PATCH {body}"));
    assert!(
        answer["message"].is_string(),
        "contract 6: PATCH answers `{{message, alertRule}}`: {answer}"
    );
    assert_eq!(
        bucket.show(rule),
        answer["alertRule"],
        "contract 6: what PATCH answers is what GET shows"
    );
    answer["alertRule"].clone()
}

/// Only a creation with `condition` requires one.
#[test]
fn a_change_never_requires_a_webhook_url() {
    let (_server, _, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let with_url = plain_rule(&bucket, &source);
    let shown = patched(&bucket, &with_url, &json!({"webhookUrl": null}));
    assert_eq!(shown["webhookUrl"], Value::Null);
    let without = bucket.rule(&json!({
        "dataSourceId": source, "name": "none", "naturalLanguageQuery": "level greater than 5",
    }));
    for rule in [with_url, without] {
        let shown = patched(&bucket, &rule, &json!({"condition": "level less than 3"}));
        assert_eq!(shown["condition"], "level less than 3");
        assert_eq!(shown["webhookUrl"], Value::Null);
    }
}

/// Regression: the stored block was checked at each change, so that such a rule could not be paused.
#[test]
fn a_rule_can_be_changed_when_a_source_that_it_reads_is_gone() {
    let (_server, _, bucket) = scene::bucket();
    let (own, other) = (gauge(&bucket), bucket.source("other", &["flow"]));
    let mut block = evaluation("flow");
    block["inputs"][0]["dataSourceId"] = json!(other);
    let rule = bucket.rule(&json!({
        "dataSourceId": own, "name": "reads another", "condition": "level greater than 5", "webhookUrl": URL,
        "evaluation": block,
    }));
    let gone = bucket.call("DELETE", &format!("/sources/{other}"), &Value::Null);
    gone.expect(200, "contract 4: DELETE of a source");
    for change in [
        json!({"status": "paused"}),
        json!({"name": "renamed"}),
        json!({"webhookUrl": null}),
        json!({"cooldownMinutes": 3}),
        json!({"condition": "level less than 3"}),
        json!({"evaluation": block}),
    ] {
        patched(&bucket, &rule, &change);
    }
    block["windowSeconds"] = json!(600);
    let refused = patch(&bucket, &rule, &json!({"evaluation": block}));
    assert_faults(
        &refused,
        &["evaluation/inputs/0/dataSourceId"],
        "contract 6: a new block reads what is there",
    );
    block["inputs"] = evaluation("level")["inputs"].clone();
    patched(&bucket, &rule, &json!({"evaluation": block}));
}

#[test]
fn what_a_text_was_understood_as_stays_while_the_text_stays() {
    let (_server, _, bucket) = scene::bucket();
    let boiler = bucket.source_with(&json!({
        "name": "boiler", "schema": {"temperature": {"type": "number", "unit": "°C"}},
    }));
    let rule = bucket.rule(&json!({
        "dataSourceId": boiler, "name": "hot", "condition": "temperature exceeds 100 °C", "webhookUrl": URL,
    }));
    let parsed = bucket.show(&rule)["parsedCondition"].clone();
    assert_eq!(parsed["value"], 100, "contract 6: {parsed}");
    let schema = json!({"schema": {"temperature": {"type": "number", "unit": "K"}}});
    let changed = bucket.call("PATCH", &format!("/sources/{boiler}"), &schema);
    changed.expect(200, "contract 4: PATCH of a source");
    let shown = patched(&bucket, &rule, &json!({"status": "paused"}));
    assert_eq!(
        shown["parsedCondition"], parsed,
        "contract 6: only what is named changes"
    );
    let refused = patch(&bucket, &rule, &json!({"condition": "temperature exceeds 90 °C"}));
    assert_faults(&refused, &["condition"], "contract 6: a new text is parsed");
}

#[test]
fn each_member_can_be_changed_alone() {
    let (_server, _, bucket) = scene::bucket();
    let rule = plain_rule(&bucket, &gauge(&bucket));
    let mut expected = bucket.show(&rule);
    let changes = [
        ("name", json!("renamed"), json!("renamed")),
        (
            "webhookUrl",
            json!("https://hooks.invalid/other"),
            json!("https://hooks.invalid/other"),
        ),
        ("cooldownMinutes", json!(7.5), json!(7.5)),
        ("status", json!("paused"), json!("paused")),
        ("status", json!("inactive"), json!("inactive")),
        ("status", json!("active"), json!("active")),
        ("name", json!("  trimmed "), json!("trimmed")),
    ];
    for (member, value, shown) in changes {
        let found = patched(&bucket, &rule, &json!({member: value}));
        expected[member] = shown;
        for name in members(&expected) {
            if name != "updatedAt" {
                assert_eq!(
                    found[name], expected[name],
                    "contract 6: PATCH `{member}` changes only it ({name})"
                );
            }
        }
    }
    let found = patched(&bucket, &rule, &json!({"condition": "depth drops below 2"}));
    assert_eq!(
        found["parsedCondition"],
        json!({"field": "depth", "operator": "lt", "value": 2}),
        "contract 6: a changed text is parsed anew"
    );
    assert_eq!(
        (&found["condition"], &found["naturalLanguageQuery"]),
        (&json!("depth drops below 2"), &json!("depth drops below 2")),
        "contract 6: answers show both keys with the same text"
    );
    let found = patched(
        &bucket,
        &rule,
        &json!({"naturalLanguageQuery": "depth exceeds 2"}),
    );
    assert_eq!(
        found["condition"], "depth exceeds 2",
        "contract 6: either name of the text may be patched"
    );
    let before = found;
    let found = patched(&bucket, &rule, &json!({}));
    assert_eq!(
        found["name"], before["name"],
        "contract 6: nothing sent, nothing changed"
    );
    let found = patched(
        &bucket,
        &rule,
        &json!({"_id": UNKNOWN_ID, "bucketId": UNKNOWN_ID, "dataSourceId": UNKNOWN_ID, "state": "firing",
            "lastTriggeredAt": "2026-01-01T00:00:00Z", "createdAt": 5}),
    );
    for name in [
        "_id",
        "bucketId",
        "dataSourceId",
        "state",
        "lastTriggeredAt",
        "createdAt",
    ] {
        assert_eq!(
            found[name], before[name],
            "contract 1: body fields that are not named are ignored (`{name}`)"
        );
    }
}

#[test]
fn a_change_is_validated_like_a_creation() {
    let (_server, _, bucket) = scene::bucket();
    let rule = plain_rule(&bucket, &gauge(&bucket));
    let before = bucket.show(&rule);
    let wrong = json!({
        "name": "", "condition": 5, "webhookUrl": 5, "cooldownMinutes": "5", "status": "asleep", "evaluation": [],
    });
    assert_faults(
        &patch(&bucket, &rule, &wrong),
        &[
            "name",
            "condition",
            "webhookUrl",
            "cooldownMinutes",
            "status",
            "evaluation",
        ],
        "contract 1: all faults of one body are reported together",
    );
    for (body, path) in [
        (json!({"condition": "what is this"}), "condition"),
        (
            json!({"naturalLanguageQuery": "what is this"}),
            "naturalLanguageQuery",
        ),
        (json!({"webhookUrl": "ftp://hooks.invalid/"}), "webhookUrl"),
        (json!({"webhookUrl": "http://127.0.0.1/"}), "webhookUrl"),
    ] {
        assert_faults(
            &patch(&bucket, &rule, &body),
            &[path],
            &format!("spec: unparsable, or an invalid URL: 400 ({body})"),
        );
    }
    let unparsable = patch(&bucket, &rule, &json!({"condition": "what is this"}));
    for field in ["level", "depth"] {
        assert!(
            unparsable.text().contains(field),
            "contract 6: 400 naming the fields available: {unparsable}"
        );
    }
    let both = json!({"condition": "level > 1", "naturalLanguageQuery": "level > 1"});
    patch(&bucket, &rule, &both).refused(400, "contract 6: exactly one of both texts");
    assert_eq!(bucket.show(&rule), before, "a refused change changes nothing");
    patch(&bucket, UNKNOWN_ID, &json!({"name": "a"})).refused(404, "contract 1: an unknown rule is 404");
}

#[test]
fn the_block_is_replaced_as_a_whole_and_removed_by_null() {
    let (_server, account, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let evaluator = account.evaluator();
    let mut block = evaluation("level");
    block["kind"] = json!("threshold");
    block["dwellSeconds"] = json!(7);
    block["parameters"] = json!({"above": 5});
    let rule = bucket.rule(&json!({
        "dataSourceId": source, "name": "judged", "naturalLanguageQuery": "level is above 5", "evaluation": block,
    }));
    evaluator.evaluate(&rule, "met");
    let judged = bucket.show(&rule);
    let found = patched(&bucket, &rule, &json!({"evaluation": evaluation("depth")}));
    let sentence = "spec: PATCH replaces the evaluation block wholesale";
    assert_eq!(
        found["evaluation"].get("kind"),
        None,
        "{sentence}: what is left out is gone"
    );
    assert_eq!(found["evaluation"]["parameters"], json!({}), "{sentence}");
    assert_eq!(
        found["evaluation"]["dwellSeconds"], found["evaluation"]["windowSeconds"],
        "{sentence}: the dwell is the window again"
    );
    assert_eq!(found["evaluation"]["inputs"][0]["field"], "depth", "{sentence}");
    for name in [
        "state",
        "lastEvaluatedAt",
        "conditionClearedAt",
        "lastTriggeredAt",
        "lastOutcome",
    ] {
        assert_eq!(
            found[name], judged[name],
            "spec: current state, lastEvaluatedAt and conditionClearedAt are preserved (`{name}`)"
        );
    }
    assert_eq!(
        found["state"], "firing",
        "spec: an already-firing rule goes on firing"
    );
    let renamed = patched(&bucket, &rule, &json!({"name": "renamed"}));
    assert_eq!(
        renamed["evaluation"], found["evaluation"],
        "contract 6: a PATCH without a block keeps the block"
    );
    let found = patched(&bucket, &rule, &json!({"evaluation": null}));
    assert!(
        found.get("evaluation").is_none_or(Value::is_null),
        "contract 6: `evaluation: null` removes the block: {found}"
    );
    assert_eq!(
        found["state"], "unevaluated",
        "contract 6: plain rules show `state: \"unevaluated\"`"
    );
    assert_eq!(
        found["nextDueAt"],
        Value::Null,
        "contract 10: `nextDueAt` is null for plain rules"
    );
    assert!(
        evaluator.due_rules("").is_empty(),
        "spec: a plain rule is never returned as due"
    );
    let found = patched(&bucket, &rule, &json!({"evaluation": evaluation("level")}));
    assert_eq!(
        found["evaluation"]["intervalSeconds"], 60,
        "contract 6: a plain rule gets a block by PATCH"
    );
}

#[test]
fn the_block_cannot_be_removed_from_a_rule_with_unparsable_text() {
    let (_server, _, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let rule = bucket.rule(&json!({
        "dataSourceId": source, "name": "odd", "naturalLanguageQuery": "it behaves strangely",
        "evaluation": evaluation("level"),
    }));
    let before = bucket.show(&rule);
    patch(&bucket, &rule, &json!({"evaluation": null})).refused(
        400,
        "contract 10: `evaluation: null` on a rule whose text cannot be parsed: 400",
    );
    assert_eq!(bucket.show(&rule), before, "a refused change changes nothing");
    let both = json!({"evaluation": null, "naturalLanguageQuery": "level exceeds 5"});
    let found = patched(&bucket, &rule, &both);
    assert_eq!(
        found["parsedCondition"]["operator"], "gt",
        "contract 10: with a text that can be parsed the block may go"
    );
    patch(
        &bucket,
        &rule,
        &json!({"naturalLanguageQuery": "it behaves strangely"}),
    )
    .refused(400, "contract 6: without a block an unparsable text is 400");
    let back = json!({"evaluation": evaluation("level"), "naturalLanguageQuery": "it behaves strangely"});
    let found = patched(&bucket, &rule, &back);
    assert_eq!(
        found["parsedCondition"],
        Value::Null,
        "contract 6: with a block an unparsable text is kept, `parsedCondition` null"
    );
}

#[test]
fn inactive_rules_are_not_evaluated() {
    let (_server, account, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let evaluator = account.evaluator();
    for status in ["paused", "inactive"] {
        let rule = bucket.evaluated_rule(status, &source);
        let due = bucket.show(&rule)["nextDueAt"].clone();
        let found = patched(&bucket, &rule, &json!({"status": status}));
        assert_eq!(
            found["nextDueAt"],
            Value::Null,
            "contract 10: `nextDueAt` is null for rules that are not active ({status})"
        );
        assert!(
            evaluator.due_rules("").is_empty(),
            "contract 6: a rule is due when it is `active`, not when {status}"
        );
        let answer = evaluator.verdict(&rule, &json!({"outcome": "met"}));
        answer.refused(409, &format!("contract 6: a {status} rule: 409"));
        assert_eq!(
            bucket.show(&rule)["lastOutcome"],
            Value::Null,
            "a refused verdict is not recorded"
        );
        let found = patched(&bucket, &rule, &json!({"status": "active"}));
        assert_eq!(
            found["nextDueAt"], due,
            "contract 10: pausing changes nothing in `dueAt`"
        );
        assert_eq!(evaluator.due_rules(""), [&*rule], "an active rule is due again");
        evaluator.evaluate(&rule, "not_met");
    }
}

#[test]
fn a_rule_made_paused_is_not_due() {
    let (_server, account, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let rule = bucket.rule(&json!({
        "dataSourceId": source, "name": "later", "naturalLanguageQuery": "level > 5", "status": "paused",
        "evaluation": evaluation("level"),
    }));
    assert_eq!(bucket.show(&rule)["status"], "paused", "spec: status of a rule");
    assert!(
        account.evaluator().due_rules("").is_empty(),
        "contract 6: only active rules are due"
    );
}

#[test]
fn a_deleted_rule_is_404() {
    let (_server, account, bucket) = scene::bucket();
    let source = gauge(&bucket);
    let evaluator = account.evaluator();
    let rules = [
        plain_rule(&bucket, &source),
        bucket.evaluated_rule("judged", &source),
    ];
    for rule in rules {
        let path = format!("/api/alerts/{rule}");
        let name = bucket.show(&rule)["name"].clone();
        let answer = call(&bucket.client, &bucket.admin, "DELETE", &path, &Value::Null);
        let answer = answer.expect(200, "contract 6: DELETE /api/alerts/:id");
        assert!(
            answer["message"].is_string(),
            "contract 10: DELETE answers a message: {answer}"
        );
        assert_eq!(
            answer["deletedAlertRule"],
            json!({"_id": rule, "name": name}),
            "contract 10: DELETE answers `deletedAlertRule: {{_id, name}}`"
        );
        for below in ["", "/history", "/deliveries"] {
            call(
                &bucket.client,
                &bucket.admin,
                "GET",
                &format!("{path}{below}"),
                &Value::Null,
            )
            .refused(404, "contract 1: the id is 404 from the next request on");
        }
        patch(&bucket, &rule, &json!({"name": "a"})).refused(404, "a deleted rule is not changed");
        call(&bucket.client, &bucket.admin, "DELETE", &path, &Value::Null)
            .refused(404, "a deleted rule is not deleted twice");
        evaluator
            .verdict(&rule, &json!({"outcome": "met"}))
            .refused(404, "contract 6: a verdict for an unknown rule: 404");
    }
    assert!(
        evaluator.due_rules("").is_empty(),
        "contract 6: a deleted rule is not due"
    );
    assert_eq!(
        bucket.call("GET", "/alerts", &Value::Null).json()["pagination"]["total"],
        0,
        "deleted rules are not listed"
    );
}
