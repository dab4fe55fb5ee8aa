//! The table of chapter 6, cell by cell: state × outcome, with and without a running timer.

use serde_json::{Value, json};

use crate::time::{SECOND, timestamp};
use crate::world::{START, scene};

const INTERVAL: i64 = 60;
const DWELL: i64 = 300;

/// The expected `conditionClearedAt` after a verdict.
#[derive(Clone, Copy, Debug)]
enum Cleared {
    Null,
    Now,
    /// The time of the n-th verdict, counted from 0.
    AsOf(i64),
}

struct Cell {
    /// Earlier verdicts, an interval apart.
    before: &'static [&'static str],
    outcome: &'static str,
    previous: &'static str,
    state: &'static str,
    triggered: bool,
    cleared: Cleared,
}

const fn cell(
    before: &'static [&'static str],
    outcome: &'static str,
    (previous, state): (&'static str, &'static str),
    triggered: bool,
    cleared: Cleared,
) -> Cell {
    Cell {
        before,
        outcome,
        previous,
        state,
        triggered,
        cleared,
    }
}

const TABLE: &[Cell] = &[
    cell(&[], "met", ("armed", "firing"), true, Cleared::Null),
    cell(&[], "not_met", ("armed", "armed"), false, Cleared::Now),
    cell(&[], "inconclusive", ("armed", "armed"), false, Cleared::Null),
    cell(&["not_met"], "met", ("armed", "firing"), true, Cleared::Null),
    cell(
        &["not_met"],
        "not_met",
        ("armed", "armed"),
        false,
        Cleared::AsOf(0),
    ),
    cell(
        &["not_met"],
        "inconclusive",
        ("armed", "armed"),
        false,
        Cleared::AsOf(0),
    ),
    cell(&["met"], "met", ("firing", "firing"), false, Cleared::Null),
    cell(&["met"], "not_met", ("firing", "clearing"), false, Cleared::Now),
    cell(
        &["met"],
        "inconclusive",
        ("firing", "firing"),
        false,
        Cleared::Null,
    ),
    cell(
        &["met", "not_met"],
        "met",
        ("clearing", "firing"),
        false,
        Cleared::Null,
    ),
    cell(
        &["met", "not_met"],
        "not_met",
        ("clearing", "clearing"),
        false,
        Cleared::AsOf(1),
    ),
    cell(
        &["met", "not_met"],
        "inconclusive",
        ("clearing", "clearing"),
        false,
        Cleared::AsOf(1),
    ),
    cell(
        &[
            "met",
            "not_met",
            "inconclusive",
            "inconclusive",
            "inconclusive",
            "inconclusive",
        ],
        "met",
        ("armed", "firing"),
        true,
        Cleared::Null,
    ),
    cell(
        &["met", "not_met", "not_met", "not_met", "not_met"],
        "met",
        ("clearing", "firing"),
        false,
        Cleared::Null,
    ),
    cell(
        &["met", "not_met", "not_met", "not_met", "not_met", "not_met"],
        "met",
        ("armed", "firing"),
        true,
        Cleared::Null,
    ),
];

#[test]
fn every_transition_of_the_table() {
    let scene = scene();
    for (nth, cell) in TABLE.iter().enumerate() {
        let rule = scene.rule(&format!("cell {nth}"), INTERVAL, DWELL);
        let mut at = Vec::new();
        let mut fired = 0;
        for outcome in cell.before {
            at.push(current_timestamp(&scene));
            fired += i32::from(scene.evaluator.evaluate(&rule, outcome)["triggered"] == true);
            scene.world.advance(INTERVAL);
        }
        let now = current_timestamp(&scene);
        let evaluation = scene.evaluator.evaluate(&rule, cell.outcome);
        let what = format!("contract 6, the table: {:?}, then {}", cell.before, cell.outcome);
        assert_eq!(evaluation["previousState"], cell.previous, "{what}: {evaluation}");
        assert_eq!(evaluation["state"], cell.state, "{what}: {evaluation}");
        assert_eq!(evaluation["triggered"], cell.triggered, "{what}: {evaluation}");
        let cleared = match cell.cleared {
            Cleared::Null => Value::Null,
            Cleared::Now => json!(now),
            Cleared::AsOf(verdict) => json!(at[usize::try_from(verdict).unwrap()]),
        };
        assert_eq!(evaluation["conditionClearedAt"], cleared, "{what}: {evaluation}");
        assert_eq!(
            evaluation["lastEvaluatedAt"], now,
            "contract 6: every accepted verdict sets `lastEvaluatedAt`"
        );
        let shown = scene.bucket.show(&rule);
        assert_eq!(
            shown["lastOutcome"], cell.outcome,
            "contract 6: and `lastOutcome`"
        );
        let triggers = scene.bucket.history(&rule);
        let triggers = triggers.iter().filter(|entry| entry["kind"] == "trigger").count();
        assert_eq!(
            i32::try_from(triggers).unwrap(),
            fired + i32::from(cell.triggered),
            "{what}: each firing is one trigger in the history"
        );
        if cell.triggered {
            assert_eq!(shown["lastTriggeredAt"], now, "{what}: `lastTriggeredAt`");
        }
    }
}

fn current_timestamp(scene: &crate::world::Scene) -> String {
    use tidewatch::clock::Clock;
    timestamp(scene.world.clock.now_ns())
}

#[test]
fn without_a_dwell_a_rule_is_armed_at_once() {
    let scene = scene();
    let rule = scene.rule("dwell 0", INTERVAL, 0);
    let sentence = "contract 6: `clearing` becomes `armed` when `dwellSeconds` have passed (0: at once)";
    for round in 0..3 {
        let evaluation = scene.evaluator.evaluate(&rule, "met");
        assert_eq!(
            (&evaluation["previousState"], &evaluation["triggered"]),
            (&json!("armed"), &json!(true)),
            "{sentence}, round {round}: {evaluation}"
        );
        scene.world.advance(INTERVAL);
        assert_eq!(
            scene.evaluator.evaluate(&rule, "not_met")["state"],
            "armed",
            "{sentence}"
        );
        assert_eq!(scene.bucket.show(&rule)["state"], "armed", "{sentence}");
        scene.world.advance(INTERVAL);
    }
}

/// A dwell ends without a further verdict.
#[test]
fn a_dwell_ends_without_a_verdict_to_the_second() {
    let mut scene = scene();
    let rule = scene.rule("dwell", INTERVAL, DWELL);
    scene.evaluator.evaluate(&rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    let sentence =
        "contract 6: `clearing` becomes `armed` when `dwellSeconds` have passed since `conditionClearedAt`";
    for (passed, state) in [
        (0, "clearing"),
        (DWELL - 1, "clearing"),
        (1, "armed"),
        (1000, "armed"),
    ] {
        scene.world.advance(passed);
        assert_eq!(scene.bucket.show(&rule)["state"], state, "{sentence}");
        let listed = scene
            .bucket
            .client
            .get(&format!("/api/buckets/{}/alerts", scene.bucket.id));
        let listed = listed.key(&scene.bucket.admin).send().json();
        assert_eq!(
            listed["alertRules"][0]["state"], state,
            "{sentence}, in the list too"
        );
        scene.world.restart(0);
        assert_eq!(
            scene.bucket.show(&rule)["state"],
            state,
            "contract 6: timers survive restarts"
        );
    }
    let evaluation = scene.evaluator.evaluate(&rule, "met");
    assert_eq!(
        evaluation["triggered"], true,
        "contract 6: re-armed, it fires again: {evaluation}"
    );
}

#[test]
fn the_default_dwell_is_the_window() {
    let scene = scene();
    let rule = scene.bucket.evaluated_rule("default", &scene.source);
    assert_eq!(
        scene.bucket.show(&rule)["createdAt"],
        timestamp(*START / SECOND * SECOND),
        "the clock stands still"
    );
    scene.evaluator.evaluate(&rule, "met");
    scene.world.advance(INTERVAL);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.world.advance(299);
    assert_eq!(
        scene.bucket.show(&rule)["state"],
        "clearing",
        "spec: dwellSeconds default equals windowSeconds"
    );
    scene.world.advance(1);
    assert_eq!(
        scene.bucket.show(&rule)["state"],
        "armed",
        "spec: dwellSeconds default equals windowSeconds"
    );
}
