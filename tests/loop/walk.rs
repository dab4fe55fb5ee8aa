//! A random walk over verdicts, waits, changes and restarts, compared with the chapter's table as code.

use serde_json::{Value, json};

use crate::time::{SECOND, timestamp};
use crate::world::{START, Scene, scene};

const STEPS: usize = 500;
const RULES: usize = 5;

/// The expected state of a rule; seconds since the start.
struct ExpectedRule {
    id: String,
    interval: i64,
    dwell: i64,
    state: &'static str,
    judged_at: Option<i64>,
    cleared_at: Option<i64>,
    triggered_at: Option<i64>,
    outcome: Option<&'static str>,
    verdicts: usize,
    triggers: usize,
}

impl ExpectedRule {
    fn arm_when_over(&mut self, now: i64) {
        if self.state == "clearing" && self.cleared_at.is_some_and(|since| now - since >= self.dwell) {
            self.state = "armed";
        }
    }

    fn is_due(&self, now: i64) -> bool {
        self.judged_at.is_none_or(|at| now - at >= self.interval)
    }

    /// Applies a verdict; returns whether the rule fires.
    fn evaluate(&mut self, outcome: &'static str, now: i64) -> bool {
        self.arm_when_over(now);
        self.judged_at = Some(now);
        self.outcome = Some(outcome);
        self.verdicts += 1;
        let mut fires = false;
        match (self.state, outcome) {
            (_, "inconclusive") => {}
            (state, "met") => {
                fires = state == "armed";
                self.state = "firing";
                self.cleared_at = None;
                if fires {
                    self.triggered_at = Some(now);
                    self.triggers += 1;
                }
            }
            ("armed", _) => {
                self.cleared_at.get_or_insert(now);
            }
            ("firing", _) => {
                self.state = "clearing";
                self.cleared_at = Some(now);
            }
            _ => {}
        }
        self.arm_when_over(now);
        fires
    }

    #[track_caller]
    fn check(&mut self, scene: &Scene, now: i64, context: &str) {
        self.arm_when_over(now);
        let shown = scene.bucket.show(&self.id);
        let moment = |at: Option<i64>| at.map_or(Value::Null, |at| json!(timestamp(*START + at * SECOND)));
        for (name, expected) in [
            ("state", json!(self.state)),
            ("lastOutcome", json!(self.outcome)),
            ("lastEvaluatedAt", moment(self.judged_at)),
            ("conditionClearedAt", moment(self.cleared_at)),
            ("lastTriggeredAt", moment(self.triggered_at)),
        ] {
            assert_eq!(
                shown[name], expected,
                "contract 6, the states: `{name}` ({context}): {shown}"
            );
        }
    }
}

#[test]
fn verdicts_waits_changes_and_restarts_in_any_order() {
    let seed = std::env::var("LOOP_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("LOOP_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut scene = scene();
    let mut now = 0;
    let mut rules: Vec<ExpectedRule> = (0..RULES)
        .map(|nth| {
            let (interval, dwell) = (random.i64(60..200), [0, 60, 150, 400][random.usize(..4)]);
            ExpectedRule {
                id: scene.rule(&format!("rule {nth}"), interval, dwell),
                interval,
                dwell,
                state: "armed",
                judged_at: None,
                cleared_at: None,
                triggered_at: None,
                outcome: None,
                verdicts: 0,
                triggers: 0,
            }
        })
        .collect();
    for step in 0..STEPS {
        let context = format!("step {step}, LOOP_SEED={seed}");
        let nth = random.usize(..RULES);
        match random.u8(..40) {
            0..20 => {
                let outcome = ["met", "not_met", "not_met", "inconclusive"][random.usize(..4)];
                let model = &mut rules[nth];
                let answer = scene.evaluator.verdict(&model.id, &json!({"outcome": outcome}));
                if model.is_due(now) {
                    let evaluation = answer.expect(
                        200,
                        &format!("contract 6: a due rule takes a verdict ({context})"),
                    );
                    let fires = model.evaluate(outcome, now);
                    assert_eq!(
                        evaluation["evaluation"]["triggered"], fires,
                        "contract 6: `triggered` ({context}): {evaluation}"
                    );
                } else {
                    let evaluation = answer.expect(409, &format!("contract 6: any other is 409 ({context})"));
                    assert_eq!(
                        evaluation["evaluation"]["outcome"],
                        json!(model.outcome),
                        "contract 6: the outcome already recorded ({context})"
                    );
                }
            }
            20..36 => {
                let seconds = random.i64(1..120);
                scene.world.advance(seconds);
                now += seconds;
            }
            36..38 => {
                // The block is replaced with a new dwell and interval; state and timers stay.
                let model = &mut rules[nth];
                model.arm_when_over(now);
                (model.interval, model.dwell) = (random.i64(60..200), [0, 60, 150, 400][random.usize(..4)]);
                let block = json!({
                    "intervalSeconds": model.interval, "windowSeconds": 60, "dwellSeconds": model.dwell,
                    "inputs": [{"key": "y", "field": "level"}], "parameters": {"step": step},
                });
                scene.patch(&model.id, &json!({"evaluation": block}));
            }
            38 => scene.world.restart(0),
            _ => {
                let due = scene.evaluator.due_rules("");
                let mut expected: Vec<&String> = rules
                    .iter()
                    .filter(|model| model.is_due(now))
                    .map(|model| &model.id)
                    .collect();
                let mut found: Vec<&String> = due.iter().collect();
                expected.sort();
                found.sort();
                assert_eq!(found, expected, "contract 6: what is due ({context})");
            }
        }
        rules[nth].check(&scene, now, &context);
    }
    for model in &rules {
        let history = scene.bucket.history(&model.id);
        let count = |kind: &str| history.iter().filter(|entry| entry["kind"] == kind).count();
        assert_eq!(
            (count("verdict"), count("trigger")),
            (model.verdicts, model.triggers),
            "contract 6: every accepted verdict and trigger is in the history once (LOOP_SEED={seed})"
        );
    }
    assert!(
        rules.iter().map(|model| model.triggers).sum::<usize>() > 5,
        "the walk fired now and then (LOOP_SEED={seed})"
    );
}
