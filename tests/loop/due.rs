//! When a rule is due: intervals, order, missed intervals; and claims, which end by elapsed time, not by the clock.

use serde_json::{Value, json};

use crate::time::{DAY, SECOND, timestamp};
use crate::world::{START, Scene, scene};

fn at(seconds: i64) -> String {
    timestamp(*START + seconds * SECOND)
}

#[test]
fn a_rule_is_due_once_an_interval() {
    let scene = scene();
    let rule = scene.rule("minutely", 60, 0);
    let mut judged_at = None;
    let mut now = 0;
    for (passed, missed) in [(0, 0), (60, 0), (119, 0), (120, 1), (299, 3)] {
        scene.world.advance(passed);
        now += passed;
        let due = scene.evaluator.due("");
        assert_eq!(
            due.len(),
            1,
            "contract 6: due when `intervalSeconds` have passed ({passed} s)"
        );
        let due_at = judged_at.map_or(0, |judged_at: i64| judged_at + 60);
        assert_eq!(
            due[0]["dueAt"],
            at(due_at),
            "contract 10: `dueAt` is `lastEvaluatedAt` + `intervalSeconds`"
        );
        assert_eq!(
            due[0]["missedIntervals"], missed,
            "contract 6: whole intervals passed beyond the one that is due ({passed} s)"
        );
        let result = scene.evaluator.evaluate(&rule, "not_met");
        judged_at = Some(now);
        assert_eq!(
            result["nextDueAt"],
            at(now + 60),
            "contract 6: `nextDueAt` of an accepted verdict"
        );
        assert!(
            scene.evaluator.due("").is_empty(),
            "contract 6: once per due interval"
        );
        scene
            .evaluator
            .verdict(&rule, &json!({"outcome": "met"}))
            .expect(409, "contract 6: accepted once per due interval");
    }
    scene.world.advance(59);
    assert!(
        scene.evaluator.due("").is_empty(),
        "spec: its interval has elapsed, decided by the service"
    );
    let early = scene.evaluator.verdict(&rule, &json!({"outcome": "met"}));
    early.expect(
        409,
        "contract 6: any other is 409, also shortly before the next interval",
    );
    scene.world.advance(1);
    scene.evaluator.evaluate(&rule, "met");
}

#[test]
fn the_most_overdue_is_listed_first_then_the_oldest() {
    let scene = scene();
    let rules: Vec<String> = [300, 60, 60, 120, 600, 60]
        .iter()
        .map(|interval| scene.rule(&format!("every {interval}"), *interval, 0))
        .collect();
    // All were created at the same time: equally overdue, so ordered by creation.
    assert_eq!(
        scene.evaluator.due_rules(""),
        rules,
        "contract 6: most overdue first, then oldest rule"
    );
    // Evaluated ten seconds apart, in another order.
    for nth in [4, 2, 0, 5, 3, 1] {
        scene.evaluator.evaluate(&rules[nth], "inconclusive");
        scene.world.advance(10);
    }
    scene.world.advance(600);
    // Due since: 4 at 600, 2 at 70, 0 at 320, 5 at 90, 3 at 160, 1 at 110.
    let expected: Vec<&String> = [2, 5, 1, 3, 0, 4].iter().map(|nth| &rules[*nth]).collect();
    let due = scene.evaluator.due_rules("");
    assert_eq!(
        due.iter().collect::<Vec<_>>(),
        expected,
        "contract 6: most overdue first"
    );
    assert_eq!(
        scene.evaluator.due_rules("?limit=2"),
        due[..2],
        "contract 6: `limit`"
    );
}

#[test]
fn a_claim_ends_by_passing_time() {
    let mut scene = scene();
    let rule = scene.rule("claimed", 60, 0);
    let due = |scene: &Scene| !scene.evaluator.due("").is_empty();
    let claim = |scene: &Scene, seconds: i64| {
        let listed = scene.evaluator.due_rules(&format!("?claim={seconds}"));
        assert_eq!(
            listed,
            [&*rule],
            "contract 6: with `?claim=SECONDS` the listed rules are claimed"
        );
    };
    claim(&scene, 30);
    scene.world.advance(29);
    assert!(
        !due(&scene),
        "contract 6: polls leave them out until the claim ends"
    );
    scene.world.advance(1);
    assert!(due(&scene), "contract 6: one that dies holds nothing up");
    claim(&scene, 30);
    for step in [DAY / SECOND, -2 * DAY / SECOND, DAY / SECOND] {
        scene.world.step(step);
        assert!(
            !due(&scene),
            "reliability R14: timers monotonic: no step of the clock ends a claim"
        );
    }
    scene.world.step(-DAY / SECOND);
    scene.world.advance(30);
    scene.world.step(DAY / SECOND);
    assert!(
        due(&scene),
        "reliability R14: timers monotonic: nor does it prolong a claim"
    );
    claim(&scene, 3600);
    scene.patch(&rule, &json!({"name": "renamed"}));
    assert!(
        !due(&scene),
        "contract 6: until the claim ends or the verdict comes: a change ends no claim"
    );
    scene.evaluator.evaluate(&rule, "not_met");
    scene.world.advance(60);
    assert!(
        due(&scene),
        "contract 6: until the claim ends or the verdict comes: the next interval is free"
    );
    claim(&scene, 3600);
    scene.world.restart(0);
    assert!(due(&scene), "contract 10: a restart releases claims");
}

#[test]
fn a_claimed_rule_can_be_deleted() {
    let scene = scene();
    let (first, second) = (scene.rule("first", 60, 0), scene.rule("second", 60, 0));
    assert_eq!(
        scene.evaluator.due_rules("?claim=30&limit=1"),
        [&*first],
        "contract 6: claimed"
    );
    let path = format!("/api/alerts/{first}");
    let answer = scene.world.client.delete(&path).key(&scene.account.admin).send();
    answer.expect(200, "contract 6: DELETE /api/alerts/:id");
    scene.world.advance(3600);
    assert_eq!(
        scene.evaluator.due_rules(""),
        [second],
        "a deleted rule does not come back when its claim ends"
    );
}

#[test]
fn pausing_changes_nothing_in_due_at() {
    let scene = scene();
    let rule = scene.rule("paused", 60, 0);
    scene.evaluator.evaluate(&rule, "not_met");
    scene.patch(&rule, &json!({"status": "paused"}));
    scene.world.advance(200);
    assert!(
        scene.evaluator.due("").is_empty(),
        "contract 6: due when it is `active`"
    );
    let shown = scene.patch(&rule, &json!({"status": "active"}));
    assert_eq!(
        shown["nextDueAt"],
        at(60),
        "contract 10: pausing changes nothing in `dueAt`"
    );
    let due = scene.evaluator.due("");
    assert_eq!(
        due[0]["dueAt"],
        at(60),
        "contract 10: pausing changes nothing in `dueAt`"
    );
    assert_eq!(due[0]["missedIntervals"], 2, "contract 6: `missedIntervals`");
}

#[test]
fn the_window_ends_at_the_poll() {
    let scene = scene();
    scene.rule("windowed", 60, 0);
    let mut now = 0;
    for passed in [0, 7, 5000] {
        scene.world.advance(passed);
        now += passed;
        let due = scene.evaluator.due("").remove(0);
        let filters = &due["inputs"][0]["query"]["filters"];
        assert_eq!(
            (&filters["startTime"], &filters["endTime"]),
            (&json!(at(now - 300)), &json!(at(now))),
            "contract 6: absolute `startTime`/`endTime`, the window ends at the poll: {due}"
        );
    }
}

#[test]
fn a_block_is_due_when_it_was_added() {
    let scene = scene();
    let rule = scene.bucket.rule(&json!({
        "dataSourceId": scene.source, "name": "late", "naturalLanguageQuery": "level is above 5",
    }));
    scene.world.advance(1000);
    assert!(
        scene.evaluator.due("").is_empty(),
        "spec: a plain rule is never returned as due"
    );
    scene.patch(&rule, &json!({"evaluation": crate::watch::evaluation("level")}));
    scene.world.advance(30);
    let due = scene.evaluator.due("");
    assert_eq!(
        due[0]["dueAt"],
        at(1000),
        "contract 10: `dueAt` is when the block was added"
    );
    assert_eq!(due[0]["missedIntervals"], 0, "contract 6: `missedIntervals`");
    scene.evaluator.evaluate(&rule, "met");
    let shown = scene.patch(&rule, &json!({"evaluation": Value::Null}));
    assert_eq!(
        shown["state"], "unevaluated",
        "contract 6: plain rules show `state: \"unevaluated\"`"
    );
}
