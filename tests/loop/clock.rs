//! The clock is set back an hour and forward a day, with the server running and stopped: every rule becomes due again,
//! and none fires twice for one excursion.

use serde_json::json;

use crate::waiting::until;
use crate::world::{Scene, receiver, scene};

const INTERVAL: i64 = 60;
const DWELL: i64 = 300;
const STEPS: [(&str, i64); 2] = [("an hour back", -3600), ("a day forward", 86_400)];

/// When the clock is set: while the server runs, or between two runs.
const WAYS: [&str; 2] = ["live", "across a restart"];

fn set_clock(scene: &mut Scene, way: &str, seconds: i64) {
    if way == "live" {
        scene.world.step(seconds);
    } else {
        scene.world.restart(seconds);
    }
}

/// Asserts that a verdict is accepted within an interval of elapsed time.
#[track_caller]
fn evaluate_soon(scene: &Scene, rule: &str, outcome: &str, context: &str) -> serde_json::Value {
    if scene.evaluator.due_rules("").is_empty() {
        scene.world.advance(INTERVAL);
    }
    assert_eq!(
        scene.evaluator.due_rules(""),
        [rule],
        "reliability D12: nothing is stranded: due within an interval ({context})"
    );
    scene.evaluator.evaluate(rule, outcome)
}

fn triggers(scene: &Scene, rule: &str) -> usize {
    scene
        .bucket
        .history(rule)
        .iter()
        .filter(|entry| entry["kind"] == "trigger")
        .count()
}

/// Runs the test for each way and step, with a new world and a receiver.
fn for_each_way_and_step(test: impl Fn(&mut Scene, &str, &dyn Fn(&mut Scene), &str)) {
    for way in WAYS {
        for (name, seconds) in STEPS {
            let mut scene = scene();
            let receiver = receiver();
            let hook = json!({"url": receiver.url("/"), "events": ["alert.triggered"]});
            scene.account.webhook(&hook);
            let rule = scene.rule("judged", INTERVAL, DWELL);
            let context = format!("{name}, {way}");
            test(
                &mut scene,
                &rule,
                &|scene| set_clock(scene, way, seconds),
                &context,
            );
            let fired = triggers(&scene, &rule);
            receiver.wait("/", fired);
            until("every delivery has ended", || {
                let hooks = scene
                    .call("GET", "/api/webhooks", &serde_json::Value::Null)
                    .json();
                (hooks["webhooks"][0]["successfulDeliveries"] == fired).then_some(())
            });
            assert_eq!(
                receiver.received("/").len(),
                fired,
                "reliability D12: alerts fire once and are notified once ({context})"
            );
        }
    }
}

#[test]
fn a_rule_never_evaluated_stays_due() {
    for_each_way_and_step(|scene, rule, step, context| {
        step(scene);
        let evaluation = evaluate_soon(scene, rule, "met", context);
        assert_eq!(
            evaluation["triggered"], true,
            "contract 6: a new rule is armed ({context}): {evaluation}"
        );
    });
}

#[test]
fn a_firing_rule_is_evaluated_further_and_not_fired_again() {
    for_each_way_and_step(|scene, rule, step, context| {
        scene.evaluator.evaluate(rule, "met");
        step(scene);
        for _ in 0..3 {
            let evaluation = evaluate_soon(scene, rule, "met", context);
            assert_eq!(
                (&evaluation["previousState"], &evaluation["triggered"]),
                (&json!("firing"), &json!(false)),
                "reliability D12: alerts fire once ({context}): {evaluation}"
            );
            scene.world.advance(INTERVAL);
        }
        assert_eq!(
            triggers(scene, rule),
            1,
            "reliability D12: alerts fire once ({context})"
        );
    });
}

#[test]
fn a_rule_evaluated_before_is_due_within_its_interval() {
    for_each_way_and_step(|scene, rule, step, context| {
        for _ in 0..3 {
            evaluate_soon(scene, rule, "not_met", context);
            step(scene);
        }
        let evaluation = evaluate_soon(scene, rule, "met", context);
        assert_eq!(
            evaluation["triggered"], true,
            "contract 6: armed, it fires ({context}): {evaluation}"
        );
    });
}

/// Verdicts are posted each interval; the dwell must end after its own length of elapsed time.
#[test]
fn a_running_dwell_ends_despite_a_clock_step() {
    for_each_way_and_step(|scene, rule, step, context| {
        scene.evaluator.evaluate(rule, "met");
        scene.world.advance(INTERVAL);
        scene.evaluator.evaluate(rule, "not_met");
        step(scene);
        // At most one interval until the next verdict, when the dwell begins at the latest.
        for _ in 0..=DWELL / INTERVAL {
            evaluate_soon(scene, rule, "not_met", context);
            scene.world.advance(INTERVAL);
        }
        assert_eq!(
            scene.bucket.show(rule)["state"],
            "armed",
            "reliability D12: nothing is stranded: the dwell ends ({context})"
        );
        let evaluation = evaluate_soon(scene, rule, "met", context);
        assert_eq!(
            evaluation["triggered"], true,
            "contract 6: re-armed, it fires again ({context}): {evaluation}"
        );
        assert_eq!(
            triggers(scene, rule),
            2,
            "one trigger for each excursion ({context})"
        );
    });
}

/// A dwell that begins after the step has the usual length.
#[test]
fn a_dwell_after_the_step_has_its_full_length() {
    for_each_way_and_step(|scene, rule, step, context| {
        scene.evaluator.evaluate(rule, "met");
        step(scene);
        let evaluation = evaluate_soon(scene, rule, "not_met", context);
        assert_eq!(
            evaluation["state"], "clearing",
            "contract 6: firing, then not_met ({context}): {evaluation}"
        );
        scene.world.advance(DWELL - 1);
        assert_eq!(
            scene.bucket.show(rule)["state"],
            "clearing",
            "contract 6: dwellSeconds ({context})"
        );
        scene.world.advance(1);
        assert_eq!(
            scene.bucket.show(rule)["state"],
            "armed",
            "contract 6: dwellSeconds ({context})"
        );
    });
}

#[test]
fn a_verdict_counts_once_despite_a_clock_step_right_after_it() {
    // Steps smaller than the interval: by any clock, the rule was evaluated recently.
    for way in WAYS {
        for seconds in [-30, -1, 1, 30] {
            let mut scene = scene();
            let rule = scene.rule("judged", INTERVAL, DWELL);
            scene.evaluator.evaluate(&rule, "met");
            set_clock(&mut scene, way, seconds);
            scene
                .evaluator
                .verdict(&rule, &json!({"outcome": "not_met"}))
                .expect(
                    409,
                    &format!("contract 6: a verdict is accepted once per due interval ({seconds} s, {way})"),
                );
        }
    }
}
