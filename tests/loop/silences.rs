//! Silences over time: each event is judged at its own moment (small print 14.23).

use serde_json::{Value, json};

use crate::given::text;
use crate::moments::{now, scene_with, told};
use crate::receiver::Receiver;
use crate::world::Scene;

const INTERVAL: i64 = 60;
const DWELL: i64 = 300;
const EVENTS: [&str; 2] = ["alert.triggered", "alert.resolved"];

/// Silences a rule for so many seconds; returns the id of the silence.
fn silence(scene: &Scene, rule: &str, seconds: i64) -> String {
    let body = json!({"alertIds": [rule], "until": now(scene, seconds), "reason": "maintenance"});
    let created = scene.call("POST", "/api/silences", &body);
    text(
        &created.expect(201, "contract 14: POST /api/silences"),
        "/silence/_id",
    )
}

/// The rule fires and is clearing, a minute later.
fn fire_and_clear(scene: &Scene, rule: &str) {
    scene.evaluator.evaluate(rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(rule, "not_met");
}

fn names(receiver: &Receiver, rule: &str) -> Vec<String> {
    let mut events = told(receiver);
    events.retain(|(_, data)| data["alertId"] == rule);
    events.into_iter().map(|(name, _)| name).collect()
}

fn silence_of_trigger(scene: &Scene, rule: &str) -> Value {
    let history = scene.bucket.history(rule);
    let trigger = history.iter().find(|entry| entry["kind"] == "trigger");
    trigger.unwrap_or_else(|| panic!("it has fired: {history:?}"))["silenceId"].clone()
}

#[test]
fn a_rule_is_resolved_aloud_although_its_trigger_was_muted() {
    let (scene, receiver) = scene_with(&EVENTS);
    let rule = scene.rule("high", INTERVAL, DWELL);
    let muted = silence(&scene, &rule, INTERVAL);
    fire_and_clear(&scene, &rule);
    scene.world.advance(DWELL);
    receiver.wait("/", 1);
    scene.assert_told_of_rules(&receiver, 1);
    assert_eq!(names(&receiver, &rule), ["alert.resolved"]);
    assert_eq!(silence_of_trigger(&scene, &rule), json!(muted));
}

#[test]
fn a_silence_that_ends_at_the_end_of_the_dwell_does_not_mute_it() {
    let (scene, receiver) = scene_with(&EVENTS);
    let rules = ["until", "beyond"].map(|name| scene.rule(name, INTERVAL, DWELL));
    for rule in &rules {
        scene.evaluator.evaluate(rule, "met");
    }
    receiver.wait("/", 2);
    scene.world.advance(INTERVAL);
    for (rule, seconds) in rules.iter().zip([DWELL, DWELL + 1]) {
        scene.evaluator.evaluate(rule, "not_met");
        silence(&scene, rule, seconds);
    }
    scene.world.advance(DWELL);
    receiver.wait("/", 3);
    scene.assert_told_of_rules(&receiver, 3);
    assert_eq!(names(&receiver, &rules[0]), EVENTS);
    assert_eq!(names(&receiver, &rules[1]), EVENTS[..1], "it is in force then");
}

#[test]
fn without_a_dwell_the_verdict_that_resolves_is_muted() {
    let (scene, receiver) = scene_with(&EVENTS);
    let rule = scene.rule("high", INTERVAL, 0);
    scene.evaluator.evaluate(&rule, "met");
    receiver.wait("/", 1);
    silence(&scene, &rule, 3_600);
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.assert_told_of_rules(&receiver, 1);
}

#[test]
fn what_happened_during_a_silence_is_muted_when_it_is_recorded_after_its_end() {
    let (mut scene, receiver) = scene_with(&EVENTS);
    let rule = scene.rule("high", INTERVAL, DWELL);
    fire_and_clear(&scene, &rule);
    receiver.wait("/", 1);
    silence(&scene, &rule, DWELL + 10);
    scene.world.restart(DWELL + 3_000);
    scene.assert_told_of_rules(&receiver, 1);
    assert_eq!(scene.bucket.show(&rule)["state"], "armed");
    assert_eq!(silence_of_trigger(&scene, &rule), Value::Null);
}
