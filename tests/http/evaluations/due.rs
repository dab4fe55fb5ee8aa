//! Listing due rules: selection, order, number, and claims.

use serde_json::{Value, json};

use crate::scene::{self, assert_faults, assert_timestamp, call, column, members};
use crate::support::given::Account;
use crate::support::watch::evaluation;

#[test]
fn a_new_rule_is_due_at_once_until_its_verdict() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    assert!(
        evaluator.due("").is_empty(),
        "spec: an empty list when nothing is due"
    );
    bucket.rule(&json!({"dataSourceId": source, "name": "plain", "naturalLanguageQuery": "level > 5"}));
    assert!(
        evaluator.due("").is_empty(),
        "spec: a plain rule is never returned as due"
    );
    let mut block = evaluation("level");
    block["kind"] = json!("threshold");
    block["parameters"] = json!({"above": 5, "strict": true, "unit": "m"});
    let rule = bucket.rule(&json!({
        "dataSourceId": source, "name": "judged", "naturalLanguageQuery": "level > 5", "evaluation": block,
    }));
    for _ in 0..3 {
        let due = evaluator.due("");
        assert_eq!(
            column(&due, "/ruleId"),
            [json!(rule)],
            "contract 6: polling changes nothing: a rule is listed until its verdict is in"
        );
    }
    let due = evaluator.due("").remove(0);
    for name in [
        "dueAt",
        "inputs",
        "kind",
        "missedIntervals",
        "name",
        "parameters",
        "ruleId",
    ] {
        assert!(
            members(&due).contains(&name),
            "spec, contract 6: a listed rule says `{name}`: {due}"
        );
    }
    assert_eq!(due["name"], "judged", "spec: `name` of the rule");
    assert_eq!(due["kind"], "threshold", "spec: `kind` of the rule");
    assert_eq!(
        due["parameters"], block["parameters"],
        "spec: `parameters` as they were sent"
    );
    assert_eq!(
        due["missedIntervals"], 0,
        "contract 6: whole intervals passed beyond the one that is due"
    );
    assert_timestamp(&due["dueAt"], "dueAt");
    assert_eq!(
        due["dueAt"],
        bucket.show(&rule)["createdAt"],
        "contract 10: `dueAt` of a rule never evaluated is when the block was added"
    );
    let input = &due["inputs"][0];
    assert_eq!(
        members(input),
        ["field", "key", "query"],
        "spec: inputs: [{{key, field, query}}]"
    );
    evaluator.evaluate(&rule, "inconclusive");
    assert!(
        evaluator.due("").is_empty(),
        "spec: extra polls just return an empty list"
    );
    let by_admin = call(
        &account.client,
        &account.admin,
        "GET",
        "/api/evaluations/due",
        &Value::Null,
    );
    by_admin.expect(200, "contract 6: integration or admin key");
}

#[test]
fn a_rule_without_kind_is_listed() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    bucket.evaluated_rule("kindless", &source);
    let due = account.evaluator().due("").remove(0);
    assert!(
        due.get("kind").is_none_or(Value::is_null),
        "spec: `kind` is optional: {due}"
    );
    assert_eq!(
        due["parameters"],
        json!({}),
        "contract 6: `parameters` may be empty"
    );
}

#[test]
fn the_oldest_is_listed_first_and_limit_cuts() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let rules: Vec<String> = (0..120)
        .map(|nth| bucket.evaluated_rule(&format!("rule {nth}"), &source))
        .collect();
    let sentence = "contract 6: most overdue first, then oldest rule";
    assert_eq!(evaluator.due_rules("?limit=1000"), rules, "{sentence}");
    assert_eq!(
        evaluator.due_rules(""),
        rules[..100],
        "contract 6: `limit` default 100"
    );
    for limit in [1, 7, 120] {
        let due = evaluator.due_rules(&format!("?limit={limit}"));
        assert_eq!(due, rules[..limit], "contract 6: `limit` {limit}");
    }
    for judged in [3, 0] {
        evaluator.evaluate(&rules[judged], "not_met");
    }
    let due = evaluator.due_rules("?limit=3");
    assert_eq!(
        due,
        [&*rules[1], &rules[2], &rules[4]],
        "{sentence}, without those evaluated"
    );
}

#[test]
fn parameters_out_of_range_are_400() {
    let (_server, account, _) = scene::bucket();
    let evaluator = account.evaluator();
    let list_due = |parameters: &str| {
        let path = format!("/api/evaluations/due{parameters}");
        call(&account.client, &evaluator.key, "GET", &path, &Value::Null)
    };
    for wrong in ["0", "1001", "-1", "1.5", "abc", ""] {
        let sentence = "contract 6: `limit` 1..1000";
        assert_faults(&list_due(&format!("?limit={wrong}")), &["limit"], sentence);
    }
    for wrong in ["4", "0", "3601", "-5", "5.5", "soon", ""] {
        let sentence = "contract 6: `claim` 5 to 3600";
        assert_faults(&list_due(&format!("?claim={wrong}")), &["claim"], sentence);
    }
    assert_faults(
        &list_due("?limit=0&claim=0"),
        &["claim", "limit"],
        "contract 1: all faults together",
    );
    for fine in [
        "?limit=1",
        "?limit=1000",
        "?claim=5",
        "?claim=3600",
        "?claim=60&limit=10",
    ] {
        list_due(fine).expect(200, "contract 6: the edges are taken");
    }
}

#[test]
fn a_claim_hides_the_listed_rules_until_their_verdict() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let (first, second) = (account.evaluator(), account.evaluator());
    let rules: Vec<String> = (0..4)
        .map(|nth| bucket.evaluated_rule(&format!("rule {nth}"), &source))
        .collect();
    assert_eq!(
        first.due_rules("?claim=3600&limit=2"),
        rules[..2],
        "contract 6: the listed rules are claimed"
    );
    let sentence = "contract 6: polls leave claimed rules out, so that several evaluators share the work";
    assert_eq!(second.due_rules(""), rules[2..], "{sentence}");
    assert_eq!(
        first.due_rules(""),
        rules[2..],
        "{sentence}, those of the claimer too"
    );
    assert_eq!(second.due_rules("?claim=3600"), rules[2..], "{sentence}");
    assert!(first.due_rules("?claim=3600").is_empty(), "{sentence}");
    let accepted = "contract 6: a verdict is accepted once per due interval, claimed or not";
    for (evaluator, rule) in [(&first, &rules[0]), (&first, &rules[3]), (&second, &rules[1])] {
        let answer = evaluator.verdict(rule, &json!({"outcome": "not_met"}));
        answer.expect(200, accepted);
        evaluator
            .verdict(rule, &json!({"outcome": "not_met"}))
            .refused(409, "contract 6: any other is 409");
    }
    assert!(first.due_rules("").is_empty(), "the one that is left is claimed");
}

#[test]
fn a_restart_releases_claims() {
    let (mut server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let rule = bucket.evaluated_rule("judged", &source);
    let evaluator = account.evaluator();
    assert_eq!(evaluator.due_rules("?claim=3600"), [&*rule], "a claim");
    assert!(evaluator.due_rules("").is_empty(), "claimed");
    server.kill();
    server.launch();
    assert_eq!(
        evaluator.due_rules(""),
        [rule],
        "contract 10: claims live in memory; a restart releases them"
    );
}

#[test]
fn organizations_see_only_their_own_due_rules() {
    let (server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let other_bucket = account.bucket("other");
    let own = [
        bucket.evaluated_rule("a", &source),
        other_bucket.evaluated_rule("b", &other_bucket.source("gauge", &["level"])),
    ];
    let foreigner = Account::sign_up(&server.client);
    let foreign_bucket = foreigner.bucket("tides");
    let foreign = foreign_bucket.evaluated_rule("c", &foreign_bucket.source("gauge", &["level"]));
    assert_eq!(
        foreigner.evaluator().due_rules("?claim=3600"),
        [&*foreign],
        "contract 1: a key never learns of another organization's rules"
    );
    let evaluator = account.evaluator();
    assert_eq!(
        evaluator.due_rules(""),
        own,
        "contract 6: integration keys reach all buckets of their organization"
    );
    evaluator
        .verdict(&foreign, &json!({"outcome": "met"}))
        .refused(404, "contract 1: a foreign rule is 404");
}
