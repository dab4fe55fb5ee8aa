//! What time alone brings about: the end of a dwell, and evaluators that are silent. Webhooks hear of each once.

use serde_json::{Value, json};
use tidewatch::clock::Clock;

use crate::receiver::Receiver;
use crate::time::{SECOND, timestamp};
use crate::world::{Scene, receiver, scene};

const INTERVAL: i64 = 60;
const DWELL: i64 = 300;
const EVENTS: [&str; 4] = [
    "alert.triggered",
    "alert.resolved",
    "evaluation.overdue",
    "evaluation.resumed",
];

/// A scene whose webhook receives these events.
pub fn scene_with(events: &[&str]) -> (Scene, Receiver) {
    let (scene, receiver) = (scene(), receiver());
    scene
        .account
        .webhook(&json!({"url": receiver.url("/"), "events": events}));
    (scene, receiver)
}

pub fn now(scene: &Scene, offset: i64) -> String {
    timestamp(scene.world.clock.now_ns() + offset * SECOND)
}

/// The bodies that were received, with names of events and data.
pub fn told(receiver: &Receiver) -> Vec<(String, Value)> {
    let received = receiver.received("/");
    let bodies = received.iter().map(|request| request.json());
    bodies
        .map(|body| (body["event"].as_str().unwrap().to_owned(), body["data"].clone()))
        .collect()
}

/// Waits for this many bodies, and returns the last one.
fn last(receiver: &Receiver, count: usize, event: &str) -> Value {
    receiver.wait("/", count);
    let (name, data) = told(receiver).pop().unwrap();
    assert_eq!(name, event, "event {count}");
    data
}

fn state(scene: &Scene, rule: &str) -> Value {
    scene.bucket.show(rule)["state"].clone()
}

#[test]
fn a_rule_that_had_fired_is_resolved_when_its_dwell_ends_without_any_request() {
    let (scene, receiver) = scene_with(&["alert.resolved"]);
    let rule = scene.rule("high", INTERVAL, DWELL);
    let triggered = now(&scene, 0);
    scene.evaluator.evaluate(&rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    let cleared = now(&scene, 0);
    assert_eq!(scene.bucket.show(&rule)["conditionClearedAt"], json!(cleared));
    let resolved = now(&scene, DWELL);
    // Some seconds late: what is told is the end of the dwell.
    scene.world.advance(DWELL + 7);
    assert_eq!(
        last(&receiver, 1, "alert.resolved"),
        json!({
            "alertId": rule, "alertName": "high", "condition": "level is above 5",
            "dataSourceId": scene.source, "dataSourceName": "gauge",
            "triggeredAt": triggered, "resolvedAt": resolved,
        }),
        "small print 14.5, 14.6"
    );
    assert_eq!(state(&scene, &rule), "armed");
    let history = scene.bucket.history(&rule);
    assert_eq!(
        history.len(),
        3,
        "14.9: the end of a dwell is no entry: {history:?}"
    );
}

#[test]
fn without_a_dwell_the_verdict_resolves() {
    let (scene, receiver) = scene_with(&["alert.resolved"]);
    let rule = scene.rule("high", INTERVAL, 0);
    let triggered = now(&scene, 0);
    scene.evaluator.evaluate(&rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    let data = last(&receiver, 1, "alert.resolved");
    assert_eq!(data["triggeredAt"], json!(triggered));
    assert_eq!(data["resolvedAt"], json!(now(&scene, 0)));
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.assert_told_of_rules(&receiver, 1);
}

#[test]
fn a_dwell_that_ended_while_the_server_was_down_is_told_after_its_start_and_once() {
    let (mut scene, receiver) = scene_with(&["alert.resolved"]);
    let rule = scene.rule("high", INTERVAL, DWELL);
    scene.evaluator.evaluate(&rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    let resolved = now(&scene, DWELL);
    scene.world.restart(DWELL + 3_000);
    assert_eq!(
        last(&receiver, 1, "alert.resolved")["resolvedAt"],
        json!(resolved)
    );
    scene.world.restart(10);
    scene.assert_told_of_rules(&receiver, 1);
}

#[test]
fn a_verdict_right_at_the_end_of_a_dwell_resolves_first_and_then_fires() {
    let (scene, receiver) = scene_with(&EVENTS[..2]);
    let rule = scene.rule("high", INTERVAL, DWELL);
    scene.evaluator.evaluate(&rule, "met");
    receiver.wait("/", 1);
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.world.advance(DWELL);
    let evaluation = scene.evaluator.evaluate(&rule, "met");
    assert_eq!(evaluation["previousState"], "armed");
    assert_eq!(evaluation["triggered"], true);
    receiver.wait("/", 3);
    let mut names: Vec<String> = told(&receiver).into_iter().map(|(name, _)| name).collect();
    names[1..].sort();
    assert_eq!(names, ["alert.triggered", "alert.resolved", "alert.triggered"]);
}

#[test]
fn a_paused_rule_resolves_one_that_loses_its_evaluation_does_not() {
    let (scene, receiver) = scene_with(&["alert.resolved"]);
    let rules = ["paused", "stripped", "deleted"].map(|name| scene.rule(name, INTERVAL, DWELL));
    for outcome in ["met", "not_met"] {
        for rule in &rules {
            scene.evaluator.evaluate(rule, outcome);
        }
        scene.world.advance(INTERVAL);
    }
    scene.patch(&rules[0], &json!({"status": "paused"}));
    scene.patch(&rules[1], &json!({"evaluation": null}));
    let path = format!("/api/alerts/{}", rules[2]);
    scene.call("DELETE", &path, &Value::Null).expect(200, "delete");
    scene.world.advance(DWELL);
    assert_eq!(last(&receiver, 1, "alert.resolved")["alertId"], json!(rules[0]));
    scene.patch(
        &rules[1],
        &json!({"evaluation": {
            "intervalSeconds": INTERVAL, "windowSeconds": 300, "dwellSeconds": 0,
            "inputs": [{"key": "x", "field": "level"}], "parameters": {},
        }}),
    );
    assert_eq!(state(&scene, &rules[1]), "armed");
    scene.assert_told_of_rules(&receiver, 1);
}

#[test]
fn evaluators_that_are_silent_are_told_of_once_and_again_when_they_resume() {
    let (scene, receiver) = scene_with(&EVENTS[2..]);
    let rule = scene.rule("watched", INTERVAL, 0);
    scene.evaluator.evaluate(&rule, "not_met");
    let (evaluated, due) = (now(&scene, 0), now(&scene, INTERVAL));
    scene.world.advance(INTERVAL + 299);
    assert_eq!(
        scene.bucket.show(&rule)["overdue"],
        false,
        "14.15: five minutes at least"
    );
    scene.world.advance(1);
    assert_eq!(scene.bucket.show(&rule)["overdue"], true, "14.15");
    let base = json!({
        "alertId": rule, "alertName": "watched", "dataSourceId": scene.source, "dataSourceName": "gauge",
        "dueAt": due, "lastEvaluatedAt": evaluated,
    });
    assert_eq!(last(&receiver, 1, "evaluation.overdue"), base, "14.18");
    // A poll does not end it, and a pause tells nothing.
    assert_eq!(scene.evaluator.due_rules(""), [rule.as_str()]);
    scene.patch(&rule, &json!({"status": "paused"}));
    assert_eq!(scene.bucket.show(&rule)["overdue"], false, "14.16");
    scene.patch(&rule, &json!({"status": "active"}));
    assert_eq!(scene.bucket.show(&rule)["overdue"], true);
    scene.world.advance(5_000);
    scene.evaluator.evaluate(&rule, "inconclusive");
    let mut resumed = base;
    resumed["resumedAt"] = json!(now(&scene, 0));
    assert_eq!(
        last(&receiver, 2, "evaluation.resumed"),
        resumed,
        "14.16 to 14.18"
    );
    assert_eq!(scene.bucket.show(&rule)["overdue"], false);
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "met");
    scene.assert_told_of_rules(&receiver, 2);
}

#[test]
fn a_restart_after_a_long_time_tells_of_every_rule_that_is_overdue() {
    let (mut scene, receiver) = scene_with(&EVENTS[2..]);
    let rules: Vec<String> = (0..20)
        .map(|number| scene.rule(&number.to_string(), INTERVAL, 0))
        .collect();
    scene.world.restart(4_000);
    receiver.wait("/", rules.len());
    let mut alerts: Vec<String> = told(&receiver)
        .iter()
        .map(|(_, data)| data["alertId"].as_str().unwrap().to_owned())
        .collect();
    alerts.sort();
    let mut expected = rules.clone();
    expected.sort();
    assert_eq!(alerts, expected, "14.19");
    scene.world.restart(10);
    scene.assert_told_of_rules(&receiver, rules.len());
}

impl Scene {
    /// Asserts that this many events were told, when what time has brought about by now is recorded: the end of another
    /// rule's dwell is recorded after it.
    #[track_caller]
    pub fn assert_told_of_rules(&self, receiver: &Receiver, count: usize) {
        self.account
            .webhook(&json!({"url": receiver.url("/end"), "events": ["alert.resolved"]}));
        let end = self.rule("the end", INTERVAL, 1);
        self.evaluator.evaluate(&end, "met");
        self.world.advance(INTERVAL);
        self.evaluator.evaluate(&end, "not_met");
        self.world.advance(1);
        receiver.wait("/end", 1);
        let mut told = told(receiver);
        told.retain(|(_, data)| data["alertId"] != end.as_str());
        assert_eq!(told.len(), count, "{told:?}");
    }
}
