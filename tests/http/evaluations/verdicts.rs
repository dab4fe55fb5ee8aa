//! Posting verdicts: the first of an interval counts, every later one is answered with the recorded verdict.

use std::thread;

use serde_json::{Value, json};

use crate::scene::{self, UNKNOWN_ID, assert_faults, assert_timestamp, call, members};
use crate::support::watch::evaluation;

const EVIDENCE_BYTES_MAX: usize = 65_536;

#[test]
fn the_answer_shows_the_standing_of_the_rule() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    for (outcome, state, triggered) in [
        ("met", "firing", true),
        ("not_met", "armed", false),
        ("inconclusive", "armed", false),
    ] {
        let rule = bucket.evaluated_rule(outcome, &source);
        let answer = evaluator.verdict(&rule, &json!({"outcome": outcome, "evidence": {"mean": 7}}));
        let answer = answer.expect(200, "contract 6: 200 `{message, evaluation}`");
        assert!(
            answer["message"].is_string(),
            "contract 6: 200 `{{message, evaluation}}`: {answer}"
        );
        let result = &answer["evaluation"];
        assert_eq!(
            members(result),
            [
                "conditionClearedAt",
                "lastEvaluatedAt",
                "nextDueAt",
                "outcome",
                "previousState",
                "ruleId",
                "state",
                "triggered"
            ],
            "contract 6: the members of `evaluation`: {result}"
        );
        assert_eq!(result["ruleId"], rule, "contract 6: `ruleId`");
        assert_eq!(result["outcome"], outcome, "contract 6: `outcome`");
        assert_eq!(
            result["previousState"], "armed",
            "contract 6: a new rule is `armed`"
        );
        assert_eq!(result["state"], state, "contract 6: armed, then {outcome}");
        assert_eq!(
            result["triggered"], triggered,
            "contract 6: armed, then {outcome}"
        );
        assert_timestamp(&result["lastEvaluatedAt"], "lastEvaluatedAt");
        assert_timestamp(&result["nextDueAt"], "nextDueAt");
        let cleared = &result["conditionClearedAt"];
        if outcome == "not_met" {
            assert_eq!(
                cleared, &result["lastEvaluatedAt"],
                "contract 6: armed stays armed at `not_met`, `conditionClearedAt` = now when it was null"
            );
        } else {
            assert_eq!(
                cleared,
                &Value::Null,
                "contract 6: armed, then {outcome}: no timer"
            );
        }
        let shown = bucket.show(&rule);
        for (name, of_answer) in [
            ("state", "state"),
            ("lastEvaluatedAt", "lastEvaluatedAt"),
            ("conditionClearedAt", "conditionClearedAt"),
            ("nextDueAt", "nextDueAt"),
            ("lastOutcome", "outcome"),
        ] {
            assert_eq!(
                shown[name], result[of_answer],
                "contract 6: a rule shows `{name}` ({outcome})"
            );
        }
        let triggered_at = if triggered {
            &result["lastEvaluatedAt"]
        } else {
            &Value::Null
        };
        assert_eq!(
            &shown["lastTriggeredAt"], triggered_at,
            "contract 6: armed, then {outcome}: `lastTriggeredAt`"
        );
    }
}

#[test]
fn a_second_verdict_is_409_with_the_recorded_one() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let (evaluator, other) = (account.evaluator(), account.evaluator());
    let rule = bucket.evaluated_rule("judged", &source);
    let accepted = evaluator.evaluate(&rule, "met");
    for (evaluator, outcome) in [
        (&evaluator, "met"),
        (&evaluator, "not_met"),
        (&other, "inconclusive"),
    ] {
        let answer = evaluator.verdict(&rule, &json!({"outcome": outcome}));
        let body = answer.refused(409, "contract 6: any other verdict is 409");
        let result = &body["evaluation"];
        let sentence = "contract 6: the 409 body carries `evaluation` with the outcome already recorded";
        for name in [
            "ruleId",
            "outcome",
            "state",
            "lastEvaluatedAt",
            "conditionClearedAt",
            "nextDueAt",
        ] {
            assert_eq!(result[name], accepted[name], "{sentence} (`{name}`): {body}");
        }
        assert_eq!(result["outcome"], "met", "{sentence}");
    }
    let shown = bucket.show(&rule);
    assert_eq!(
        (&shown["state"], &shown["lastOutcome"]),
        (&json!("firing"), &json!("met")),
        "nothing changed"
    );
    assert_eq!(
        bucket.history(&rule).len(),
        2,
        "one verdict and its trigger are recorded"
    );
}

#[test]
fn refused_verdicts_and_their_reasons() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let met = json!({"outcome": "met"});
    let plain =
        bucket.rule(&json!({"dataSourceId": source, "name": "a", "naturalLanguageQuery": "level > 5"}));
    evaluator
        .verdict(&plain, &met)
        .refused(400, "contract 6: plain rule: 400");
    evaluator
        .verdict(UNKNOWN_ID, &met)
        .refused(404, "contract 6: unknown: 404");
    evaluator
        .verdict("x", &met)
        .refused(400, "contract 1: a malformed id is 400");
    let rule = bucket.evaluated_rule("judged", &source);
    let path = format!("/api/evaluations/{rule}/verdict");
    for kind in ["write", "read"] {
        let key = bucket.key(kind);
        let sentence = "contract 6: integration or admin key; write and read: 403";
        call(&account.client, &key, "POST", &path, &met).refused(403, sentence);
        call(&account.client, &key, "GET", "/api/evaluations/due", &Value::Null).refused(403, sentence);
    }
    call(
        &account.client,
        &account.admin,
        "PATCH",
        &format!("/api/alerts/{rule}"),
        &json!({"status": "paused"}),
    )
    .expect(200, "contract 6: PATCH `status`");
    let body = evaluator
        .verdict(&rule, &met)
        .refused(409, "contract 6: paused rule: 409");
    assert_eq!(
        body["evaluation"]["outcome"],
        Value::Null,
        "contract 10: the 409 of a rule never evaluated has `outcome: null`: {body}"
    );
    assert_eq!(
        body["evaluation"]["nextDueAt"],
        Value::Null,
        "contract 10: `nextDueAt` is null for not active rules: {body}"
    );
    call(
        &account.client,
        &account.admin,
        "PATCH",
        &format!("/api/alerts/{rule}"),
        &json!({"status": "active"}),
    )
    .expect(200, "contract 6: PATCH `status`");
    call(&account.client, &account.admin, "POST", &path, &met)
        .expect(200, "contract 6: integration or admin key");
}

#[test]
fn bodies_are_validated() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let rule = bucket.evaluated_rule("judged", &source);
    for (body, faults) in [
        (json!({}), &["outcome"][..]),
        (json!({"evidence": {}}), &["outcome"]),
        (json!({"outcome": "Met"}), &["outcome"]),
        (json!({"outcome": "notMet"}), &["outcome"]),
        (json!({"outcome": "error"}), &["outcome"]),
        (json!({"outcome": null}), &["outcome"]),
        (json!({"outcome": true}), &["outcome"]),
        (json!({"outcome": "met", "evidence": []}), &["evidence"]),
        (json!({"outcome": "met", "evidence": "hot"}), &["evidence"]),
        (json!({"outcome": 5, "evidence": 5}), &["evidence", "outcome"]),
    ] {
        assert_faults(
            &evaluator.verdict(&rule, &body),
            faults,
            &format!("spec: body `{{outcome: met / not_met / inconclusive, evidence: object}}`, not {body}"),
        );
    }
    assert_eq!(
        bucket.show(&rule)["lastOutcome"],
        Value::Null,
        "what was refused was not recorded"
    );
    let body = json!({"outcome": "met", "colour": "red"});
    evaluator.verdict(&rule, &body).expect(
        200,
        "contract 1, 6: unnamed fields are ignored, and `evidence` may be absent",
    );
    let broken = format!("/api/evaluations/{rule}/verdict");
    let request = account.client.post(&broken).key(&evaluator.key);
    request
        .body("{\"outcome\":\"met\"")
        .send()
        .refused(400, "contract 1: malformed JSON is 400");
}

#[test]
fn evidence_above_its_limit_is_413() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let rule = bucket.evaluated_rule("judged", &source);
    let path = format!("/api/evaluations/{rule}/verdict");
    let send = |bytes: usize| {
        let frame = r#"{"a":""}"#;
        let evidence = format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - frame.len()));
        let body = format!(r#"{{"outcome":"met","evidence":{evidence}}}"#);
        account.client.post(&path).key(&evaluator.key).body(body).send()
    };
    let sentence = "contract 6: evidence above 65,536 bytes: 413";
    send(EVIDENCE_BYTES_MAX + 1).refused(413, sentence);
    assert_eq!(
        bucket.show(&rule)["lastOutcome"],
        Value::Null,
        "what was refused was not recorded"
    );
    send(EVIDENCE_BYTES_MAX).expect(200, "contract 6: 65,536 bytes are taken");
    let kept = bucket.history(&rule)[0]["evidence"]["a"].as_str().map(str::len);
    assert_eq!(
        kept,
        Some(EVIDENCE_BYTES_MAX - 8),
        "contract 6: history with evidence"
    );
}

/// Fifty evaluators evaluate the same rules at the same time.
#[test]
fn exactly_one_of_simultaneous_verdicts_wins() {
    const EVALUATORS: usize = 50;
    const RULES: usize = 8;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let rules: Vec<String> = (0..RULES)
        .map(|nth| bucket.evaluated_rule(&format!("rule {nth}"), &source))
        .collect();
    let evaluator = account.evaluator();
    let plans: Vec<Vec<(usize, &str)>> = (0..EVALUATORS)
        .map(|_| {
            let mut order: Vec<usize> = (0..RULES).collect();
            random.shuffle(&mut order);
            let outcome = |rule| (rule, ["met", "not_met", "inconclusive"][random.usize(..3)]);
            order.into_iter().map(outcome).collect()
        })
        .collect();
    let answers: Vec<Vec<(usize, u16, Value)>> = thread::scope(|scope| {
        let post = |plan: &Vec<(usize, &str)>| {
            let judge = |&(rule, outcome): &(usize, &str)| {
                let answer = evaluator.verdict(&rules[rule], &json!({"outcome": outcome}));
                (rule, answer.status, answer.json())
            };
            plan.iter().map(judge).collect()
        };
        let posting: Vec<_> = plans.iter().map(|plan| scope.spawn(move || post(plan))).collect();
        posting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let answers = answers.concat();
    for (nth, rule) in rules.iter().enumerate() {
        let of_rule = || answers.iter().filter(|(rule, ..)| *rule == nth);
        let accepted: Vec<&Value> = of_rule()
            .filter(|(_, status, _)| *status == 200)
            .map(|(.., body)| body)
            .collect();
        assert_eq!(
            accepted.len(),
            1,
            "contract 6: also when two arrive at the same instant exactly one wins (seed {seed})"
        );
        let recorded = &accepted[0]["evaluation"]["outcome"];
        for (_, status, body) in of_rule().filter(|(_, status, _)| *status != 200) {
            assert_eq!(*status, 409, "contract 6: any other is 409 (seed {seed}): {body}");
            assert_eq!(
                &body["evaluation"]["outcome"], recorded,
                "contract 6: 409 carries the outcome already recorded (seed {seed}): {body}"
            );
        }
        let verdicts = bucket
            .history(rule)
            .iter()
            .filter(|entry| entry["kind"] == "verdict")
            .count();
        assert_eq!(verdicts, 1, "no verdict is counted twice (seed {seed})");
    }
}

#[test]
fn a_rule_without_its_block_refuses_verdicts() {
    let (_server, account, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let evaluator = account.evaluator();
    let rule = bucket.evaluated_rule("judged", &source);
    let patch = |body: Value| {
        call(
            &account.client,
            &account.admin,
            "PATCH",
            &format!("/api/alerts/{rule}"),
            &body,
        )
        .expect(200, "contract 6: PATCH");
    };
    patch(json!({"evaluation": null}));
    evaluator
        .verdict(&rule, &json!({"outcome": "met"}))
        .refused(400, "contract 6: plain rule: 400");
    patch(json!({"evaluation": evaluation("level")}));
    evaluator.evaluate(&rule, "met");
}
