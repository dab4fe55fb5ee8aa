//! The clock is set back an hour and forward a day, while the server runs and while it does not: no rule is stranded,
//! none fires twice for one excursion.

use serde_json::json;

use crate::waiting::until;
use crate::world::{Scene, receiver, scene};

const INTERVAL: i64 = 60;
const DWELL: i64 = 300;
const STEPS: [(&str, i64); 2] = [("an hour back", -3600), ("a day forward", 86_400)];

/// How the clock is set: under a running server, or between two.
const WAYS: [&str; 2] = ["live", "across a restart"];

fn set_clock(scene: &mut Scene, way: &str, seconds: i64) {
    if way == "live" {
        scene.world.step(seconds);
    } else {
        scene.world.restart(seconds);
    }
}

/// The verdict must be taken within an interval of passing time from now on.
#[track_caller]
fn judge_soon(scene: &Scene, rule: &str, outcome: &str, context: &str) -> serde_json::Value {
    if scene.evaluator.due_rules("").is_empty() {
        scene.world.pass(INTERVAL);
    }
    assert_eq!(
        scene.evaluator.due_rules(""),
        [rule],
        "reliability D12: nothing is stranded: due within an interval ({context})"
    );
    scene.evaluator.judge(rule, outcome)
}

fn triggers(scene: &Scene, rule: &str) -> usize {
    scene
        .bucket
        .history(rule)
        .iter()
        .filter(|entry| entry["kind"] == "trigger")
        .count()
}

/// For each way and step: a new world with a receiver, and what the test does with it.
fn in_every_way(test: impl Fn(&mut Scene, &str, &dyn Fn(&mut Scene), &str)) {
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
                "reliability D12: alerts fire once, and are told once ({context})"
            );
        }
    }
}

#[test]
fn a_rule_never_judged_stays_due() {
    in_every_way(|scene, rule, step, context| {
        step(scene);
        let said = judge_soon(scene, rule, "met", context);
        assert_eq!(
            said["triggered"], true,
            "contract 6: a new rule is armed ({context}): {said}"
        );
    });
}

#[test]
fn a_firing_rule_is_judged_on_and_not_fired_again() {
    in_every_way(|scene, rule, step, context| {
        scene.evaluator.judge(rule, "met");
        step(scene);
        for _ in 0..3 {
            let said = judge_soon(scene, rule, "met", context);
            assert_eq!(
                (&said["previousState"], &said["triggered"]),
                (&json!("firing"), &json!(false)),
                "reliability D12: alerts fire once ({context}): {said}"
            );
            scene.world.pass(INTERVAL);
        }
        assert_eq!(
            triggers(scene, rule),
            1,
            "reliability D12: alerts fire once ({context})"
        );
    });
}

#[test]
fn a_rule_that_was_judged_before_is_due_within_its_interval() {
    in_every_way(|scene, rule, step, context| {
        for _ in 0..3 {
            judge_soon(scene, rule, "not_met", context);
            step(scene);
        }
        let said = judge_soon(scene, rule, "met", context);
        assert_eq!(
            said["triggered"], true,
            "contract 6: armed, it fires ({context}): {said}"
        );
    });
}

/// Evaluators go on judging each interval; the dwell must come to its end within its own length of passing time.
#[test]
fn a_running_dwell_comes_to_its_end() {
    in_every_way(|scene, rule, step, context| {
        scene.evaluator.judge(rule, "met");
        scene.world.pass(INTERVAL);
        scene.evaluator.judge(rule, "not_met");
        step(scene);
        // One interval at most until the next verdict, from which on the dwell runs at the latest.
        for _ in 0..=DWELL / INTERVAL {
            judge_soon(scene, rule, "not_met", context);
            scene.world.pass(INTERVAL);
        }
        assert_eq!(
            scene.bucket.shown(rule)["state"],
            "armed",
            "reliability D12: nothing is stranded: the dwell ends ({context})"
        );
        let said = judge_soon(scene, rule, "met", context);
        assert_eq!(
            said["triggered"], true,
            "contract 6: re-armed, it fires again ({context}): {said}"
        );
        assert_eq!(
            triggers(scene, rule),
            2,
            "one trigger for each excursion ({context})"
        );
    });
}

/// A dwell that begins after the step is as long as any other.
#[test]
fn a_dwell_after_the_step_is_whole() {
    in_every_way(|scene, rule, step, context| {
        scene.evaluator.judge(rule, "met");
        step(scene);
        let said = judge_soon(scene, rule, "not_met", context);
        assert_eq!(
            said["state"], "clearing",
            "contract 6: firing, then not_met ({context}): {said}"
        );
        scene.world.pass(DWELL - 1);
        assert_eq!(
            scene.bucket.shown(rule)["state"],
            "clearing",
            "contract 6: dwellSeconds ({context})"
        );
        scene.world.pass(1);
        assert_eq!(
            scene.bucket.shown(rule)["state"],
            "armed",
            "contract 6: dwellSeconds ({context})"
        );
    });
}

#[test]
fn a_verdict_counts_once_whatever_the_clock_does_right_after_it() {
    // Steps smaller than the interval: the rule was judged a moment ago, by any clock.
    for way in WAYS {
        for seconds in [-30, -1, 1, 30] {
            let mut scene = scene();
            let rule = scene.rule("judged", INTERVAL, DWELL);
            scene.evaluator.judge(&rule, "met");
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
