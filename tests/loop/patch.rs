//! PATCH while a rule is firing or clearing: the block is replaced, the standing is kept.

use serde_json::{Value, json};

use crate::time::{SECOND, timestamp};
use crate::watch::evaluation;
use crate::world::{START, scene};

const INTERVAL: i64 = 60;
const DWELL: i64 = 300;

fn block(interval_seconds: i64, dwell_seconds: i64) -> Value {
    let mut block = evaluation("level");
    block["intervalSeconds"] = json!(interval_seconds);
    block["dwellSeconds"] = json!(dwell_seconds);
    json!({ "evaluation": block })
}

fn at(seconds: i64) -> String {
    timestamp(*START + seconds * SECOND)
}

#[test]
fn changing_a_firing_rule_does_not_fire_it_again() {
    let mut scene = scene();
    let rule = scene.rule("firing", INTERVAL, DWELL);
    scene.evaluator.evaluate(&rule, "met");
    let sentence = "spec: an already-firing rule is not re-fired by an update";
    for (nth, patch) in [
        block(90, 0),
        json!({"name": "renamed"}),
        json!({"naturalLanguageQuery": "level is below 3"}),
        json!({"status": "inactive"}),
        json!({"status": "active"}),
        block(INTERVAL, DWELL),
    ]
    .iter()
    .enumerate()
    {
        let shown = scene.patch(&rule, patch);
        assert_eq!(shown["state"], "firing", "{sentence}: {patch}");
        assert_eq!(shown["lastTriggeredAt"], at(0), "{sentence}: {patch}");
        if nth == 2 {
            scene.world.restart(0);
        }
    }
    scene.world.advance(INTERVAL);
    let result = scene.evaluator.evaluate(&rule, "met");
    assert_eq!(
        (&result["previousState"], &result["triggered"]),
        (&json!("firing"), &json!(false)),
        "{sentence}: {result}"
    );
    assert_eq!(
        scene.bucket.history(&rule).len(),
        3,
        "two verdicts and one trigger"
    );
}

#[test]
fn changing_the_rule_keeps_a_running_dwell() {
    let mut scene = scene();
    let rule = scene.rule("clearing", INTERVAL, DWELL);
    scene.evaluator.evaluate(&rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.world.advance(100);
    let sentence = "spec: an in-progress dwell is not cleared by an update";
    let shown = scene.patch(&rule, &block(INTERVAL, DWELL));
    assert_eq!(
        (
            &shown["state"],
            &shown["conditionClearedAt"],
            &shown["lastEvaluatedAt"]
        ),
        (&json!("clearing"), &json!(at(INTERVAL)), &json!(at(INTERVAL))),
        "{sentence}: {shown}"
    );
    scene.world.restart(0);
    scene.world.advance(199);
    assert_eq!(
        scene.bucket.show(&rule)["state"],
        "clearing",
        "{sentence}: it runs on"
    );
    scene.world.advance(1);
    assert_eq!(
        scene.bucket.show(&rule)["state"],
        "armed",
        "{sentence}: it ends when it would have"
    );
}

#[test]
fn a_new_dwell_counts_from_when_the_condition_cleared() {
    let scene = scene();
    let longer = scene.rule("longer", INTERVAL, DWELL);
    let shorter = scene.rule("shorter", INTERVAL, DWELL);
    for rule in [&longer, &shorter] {
        scene.evaluator.evaluate(rule, "met");
    }
    scene.world.advance(INTERVAL);
    for rule in [&longer, &shorter] {
        scene.evaluator.evaluate(rule, "not_met");
    }
    scene.world.advance(100);
    scene.patch(&longer, &block(INTERVAL, 1000));
    let shown = scene.patch(&shorter, &block(INTERVAL, 50));
    let sentence = "contract 6: `armed` when `dwellSeconds` have passed since `conditionClearedAt`";
    assert_eq!(
        shown["state"], "armed",
        "{sentence}: a dwell of 50 s is over after 100 s"
    );
    scene.world.advance(899);
    assert_eq!(
        scene.bucket.show(&longer)["state"],
        "clearing",
        "{sentence}: a dwell of 1000 s after 999 s"
    );
    scene.world.advance(1);
    assert_eq!(scene.bucket.show(&longer)["state"], "armed", "{sentence}");
}

#[test]
fn an_armed_rule_is_not_disarmed_by_a_longer_dwell() {
    let scene = scene();
    let rule = scene.rule("armed again", INTERVAL, DWELL);
    scene.evaluator.evaluate(&rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.world.advance(DWELL);
    assert_eq!(
        scene.bucket.show(&rule)["state"],
        "armed",
        "contract 6: the dwell is over"
    );
    let shown = scene.patch(&rule, &block(INTERVAL, 100_000));
    assert_eq!(
        shown["state"], "armed",
        "spec: current state is preserved on update: what has cleared stays cleared"
    );
    let result = scene.evaluator.evaluate(&rule, "met");
    assert_eq!(result["triggered"], true, "contract 6: armed, it fires: {result}");
}

#[test]
fn a_new_interval_moves_when_the_rule_is_due() {
    let scene = scene();
    let rule = scene.rule("judged", 600, DWELL);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.world.advance(100);
    assert!(
        scene.evaluator.due("").is_empty(),
        "contract 6: not due before its interval"
    );
    let shown = scene.patch(&rule, &block(60, DWELL));
    assert_eq!(
        shown["nextDueAt"],
        at(60),
        "contract 10: `dueAt` is `lastEvaluatedAt` + `intervalSeconds`"
    );
    assert_eq!(
        scene.evaluator.due_rules(""),
        [&*rule],
        "contract 6: due, its interval has passed"
    );
    let shown = scene.patch(&rule, &block(86_400, DWELL));
    assert_eq!(
        shown["nextDueAt"],
        at(86_400),
        "contract 10: likewise of a longer one"
    );
    assert!(scene.evaluator.due("").is_empty(), "contract 6: not due any more");
    scene
        .evaluator
        .verdict(&rule, &json!({"outcome": "met"}))
        .expect(409, "contract 6: accepted once per due interval");
}
