//! Fifty concurrent evaluators over several intervals: exactly one verdict counts for each rule and interval.

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use crate::world::{receiver, scene};

const EVALUATORS: usize = 50;
const RULES: usize = 6;
const INTERVALS: [&[&str]; 5] = [
    &["met"],
    &["met", "inconclusive"],
    &["not_met"],
    &["met", "not_met", "inconclusive"],
    &["met"],
];

/// An answer to a verdict: rule, status, body.
type VerdictAnswer = (usize, u16, Value);

#[test]
fn one_verdict_counts_for_each_rule_and_interval() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let scene = scene();
    let receiver = receiver();
    scene
        .account
        .webhook(&json!({"url": receiver.url("/"), "events": ["alert.triggered"]}));
    let rules: Vec<String> = (0..RULES)
        .map(|nth| scene.rule(&format!("rule {nth}"), 60, 0))
        .collect();
    let mut triggered = 0;
    for (interval, outcomes) in INTERVALS.into_iter().enumerate() {
        let plan = || -> Vec<(usize, &str)> {
            let mut order: Vec<usize> = (0..RULES).collect();
            random.shuffle(&mut order);
            order
                .into_iter()
                .map(|rule| (rule, outcomes[random.usize(..outcomes.len())]))
                .collect()
        };
        let plans: Vec<_> = std::iter::repeat_with(plan).take(EVALUATORS).collect();
        let together = Barrier::new(EVALUATORS);
        let post = |plan: &[(usize, &str)]| -> Vec<VerdictAnswer> {
            together.wait();
            let judge = |&(rule, outcome): &(usize, &str)| {
                let answer = scene
                    .evaluator
                    .verdict(&rules[rule], &json!({"outcome": outcome}));
                (rule, answer.status, answer.json())
            };
            plan.iter().map(judge).collect()
        };
        let answers: Vec<VerdictAnswer> = thread::scope(|scope| {
            let posting: Vec<_> = plans.iter().map(|plan| scope.spawn(|| post(plan))).collect();
            posting
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        let context = format!("interval {interval}, seed {seed}");
        for (nth, rule) in rules.iter().enumerate() {
            triggered += assert_one_counts(&answers, nth, &context);
            let verdicts = scene.bucket.history(rule);
            let verdicts = verdicts.iter().filter(|entry| entry["kind"] == "verdict").count();
            assert_eq!(
                verdicts,
                interval + 1,
                "contract 6: no verdict is counted twice ({context})"
            );
        }
        scene.world.advance(60);
    }
    let received = receiver.wait("/", triggered);
    let mut ids: Vec<String> = received
        .iter()
        .map(|request| request.json()["webhookId"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(
        (received.len(), ids.len()),
        (triggered, triggered),
        "contract 7: each trigger is notified under a unique id (seed {seed})"
    );
}

/// Asserts that one verdict on this rule counts; returns the number of triggers.
#[track_caller]
fn assert_one_counts(answers: &[VerdictAnswer], rule: usize, context: &str) -> usize {
    let of_rule: Vec<_> = answers.iter().filter(|(of, ..)| *of == rule).collect();
    let accepted: Vec<&Value> = of_rule
        .iter()
        .filter(|(_, status, _)| *status == 200)
        .map(|(.., body)| &body["evaluation"])
        .collect();
    assert_eq!(
        accepted.len(),
        1,
        "contract 6: a verdict is accepted once per due interval; exactly one wins ({context})"
    );
    for (_, status, body) in of_rule.iter().filter(|(_, status, _)| *status != 200) {
        assert_eq!(*status, 409, "contract 6: any other is 409 ({context}): {body}");
        for name in ["outcome", "state", "lastEvaluatedAt", "nextDueAt"] {
            assert_eq!(
                body["evaluation"][name], accepted[0][name],
                "contract 6: 409 carries `evaluation` with the outcome already recorded ({context}): {body}"
            );
        }
    }
    usize::from(accepted[0]["triggered"] == true)
}
