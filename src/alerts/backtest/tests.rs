//! The timeline and the cycles by tables, and against models that know nothing of transitions.

use super::*;
use crate::clock::SECOND_NS;

use Outcome::{Inconclusive, Met, NotMet};
use RuleState::{Armed, Clearing, Firing};

fn evaluation(interval_seconds: f64, dwell_seconds: f64) -> Evaluation {
    Evaluation {
        kind: None,
        interval_seconds,
        window_seconds: 60.0,
        inputs: Vec::new(),
        parameters: Vec::new(),
        dwell_seconds,
    }
}

/// An entry with its time in seconds: time, outcome, states before and after, fired, accepted.
type Row = (i64, Option<Outcome>, RuleState, RuleState, bool, bool);

fn rows(interval: f64, dwell: f64, verdicts: &[(i64, Outcome)]) -> Vec<Row> {
    let verdicts = verdicts.iter().map(|(second, outcome)| TestedVerdict {
        at_ns: second * SECOND_NS,
        outcome: *outcome,
    });
    let entries = timeline(&evaluation(interval, dwell), verdicts.collect());
    let rows = entries.into_iter().map(|entry| {
        assert_eq!(entry.at_ns % SECOND_NS, 0);
        (
            entry.at_ns / SECOND_NS,
            entry.outcome,
            entry.previous_state,
            entry.state,
            entry.triggered,
            entry.accepted,
        )
    });
    rows.collect()
}

#[test]
fn a_rule_fires_clears_and_is_armed_behind_the_last_verdict() {
    let verdicts = [
        (0, NotMet),
        (60, Met),
        (120, Met),
        (180, NotMet),
        (240, Inconclusive),
    ];
    let expected = [
        (0, Some(NotMet), Armed, Armed, false, true),
        (60, Some(Met), Armed, Firing, true, true),
        (120, Some(Met), Firing, Firing, false, true),
        (180, Some(NotMet), Firing, Clearing, false, true),
        (240, Some(Inconclusive), Clearing, Clearing, false, true),
        (480, None, Clearing, Armed, false, true),
    ];
    assert_eq!(rows(60.0, 300.0, &verdicts), expected);
}

#[test]
fn verdicts_are_ordered_by_time_and_the_first_sent_of_one_instant_counts() {
    let verdicts = [
        (120, NotMet),
        (0, Met),
        (60, Inconclusive),
        (60, Met),
        (0, NotMet),
    ];
    let expected = [
        (0, Some(Met), Armed, Firing, true, true),
        (0, Some(NotMet), Firing, Firing, false, false),
        (60, Some(Inconclusive), Firing, Firing, false, true),
        (60, Some(Met), Firing, Firing, false, false),
        (120, Some(NotMet), Firing, Armed, false, true),
    ];
    assert_eq!(rows(60.0, 0.0, &verdicts), expected);
}

#[test]
fn a_verdict_within_an_interval_of_the_last_accepted_one_changes_nothing() {
    let verdicts = [(0, Met), (59, NotMet), (60, Met), (119, NotMet), (120, NotMet)];
    let accepted: Vec<bool> = rows(60.0, 60.0, &verdicts).iter().map(|row| row.5).collect();
    assert_eq!(accepted, [true, false, true, false, true, true]);
    // What was refused does not postpone the next one.
    let verdicts: Vec<(i64, Outcome)> = (0..7).map(|nth| (nth * 20, Met)).collect();
    let accepted: Vec<bool> = rows(60.0, 60.0, &verdicts).iter().map(|row| row.5).collect();
    assert_eq!(accepted, [true, false, false, true, false, false, true]);
}

#[test]
fn a_dwell_that_ends_at_the_instant_of_a_verdict_has_ended_before_it() {
    let fired_again = [
        (0, Some(Met), Armed, Firing, true, true),
        (60, Some(NotMet), Firing, Clearing, false, true),
        (180, None, Clearing, Armed, false, true),
        (180, Some(Met), Armed, Firing, true, true),
    ];
    assert_eq!(
        rows(60.0, 120.0, &[(0, Met), (60, NotMet), (180, Met)]),
        fired_again
    );
    let still_firing = [
        (0, Some(Met), Armed, Firing, true, true),
        (60, Some(NotMet), Firing, Clearing, false, true),
        (179, Some(Met), Clearing, Firing, false, true),
    ];
    assert_eq!(
        rows(60.0, 120.0, &[(0, Met), (60, NotMet), (179, Met)]),
        still_firing
    );
    // Before a verdict that is not accepted, too.
    let refused = rows(60.0, 30.0, &[(0, Met), (60, NotMet), (90, Met)]);
    let expected = [
        (90, None, Clearing, Armed, false, true),
        (90, Some(Met), Armed, Armed, false, false),
    ];
    assert_eq!(refused[2..], expected);
}

#[test]
fn a_dwell_beyond_all_timestamps_does_not_end() {
    let verdicts = [(0, Met), (60, NotMet), (9_000_000_000, Met)];
    let expected = [
        (0, Some(Met), Armed, Firing, true, true),
        (60, Some(NotMet), Firing, Clearing, false, true),
        (9_000_000_000, Some(Met), Clearing, Firing, false, true),
    ];
    assert_eq!(rows(60.0, 1e300, &verdicts), expected);
    assert_eq!(rows(60.0, 1e300, &verdicts[..2]), expected[..2]);
}

/// A rule that is watched second by second.
fn watched(interval: i64, dwell: i64, verdicts: &[(i64, Outcome)]) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut is_firing, mut seconds_to_armed, mut seconds_to_due) = (false, None, 0);
    let last = verdicts.iter().map(|(second, _)| *second).max().unwrap_or(0);
    for second in 0..=last + dwell {
        if seconds_to_armed == Some(0) {
            rows.push((second, None, Clearing, Armed, false, true));
            (is_firing, seconds_to_armed) = (false, None);
        }
        for (_, outcome) in verdicts.iter().filter(|(at, _)| *at == second) {
            let state_of =
                |is_firing: bool, seconds_to_armed: Option<i64>| match (is_firing, seconds_to_armed) {
                    (false, _) => Armed,
                    (true, None) => Firing,
                    (true, Some(_)) => Clearing,
                };
            let before = state_of(is_firing, seconds_to_armed);
            let is_accepted = seconds_to_due <= 0;
            let mut has_fired = false;
            if is_accepted {
                seconds_to_due = interval;
                match outcome {
                    Met => {
                        has_fired = !is_firing;
                        (is_firing, seconds_to_armed) = (true, None);
                    }
                    NotMet if before == Firing && dwell == 0 => is_firing = false,
                    NotMet if before == Firing => seconds_to_armed = Some(dwell),
                    NotMet | Inconclusive => {}
                }
            }
            let after = state_of(is_firing, seconds_to_armed);
            rows.push((second, Some(*outcome), before, after, has_fired, is_accepted));
        }
        seconds_to_armed = seconds_to_armed.map(|seconds| seconds - 1);
        seconds_to_due -= 1;
    }
    rows
}

#[test]
fn random_verdicts_agree_with_a_rule_that_is_watched_every_second() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..2_000 {
        let (interval, dwell) = (random.i64(1..20), random.i64(0..40));
        let verdicts: Vec<(i64, Outcome)> = (0..random.usize(1..60))
            .map(|_| (random.i64(0..300), Outcome::ALL[random.usize(0..3)]))
            .collect();
        let found = rows(interval as f64, dwell as f64, &verdicts);
        let expected = watched(interval, dwell, &verdicts);
        assert_eq!(
            found, expected,
            "seed {seed}: {interval} s, {dwell} s, {verdicts:?}"
        );
    }
}

#[test]
fn cycles_reach_up_to_and_including_the_end() {
    let cycles = |interval: f64, start: i64, end: i64| {
        let cycles = Cycles::of(&evaluation(interval, 0.0), start, end);
        let all: Vec<i64> = cycles.page(0, u64::MAX).collect();
        assert_eq!(all.len() as u64, cycles.count());
        all
    };
    let minute = 60 * SECOND_NS;
    assert_eq!(cycles(60.0, 5, 5 + 2 * minute), [5, 5 + minute, 5 + 2 * minute]);
    assert_eq!(cycles(60.0, 5, 4 + 2 * minute), [5, 5 + minute]);
    assert_eq!(cycles(60.0, 5, 6), [5]);
    assert_eq!(
        cycles(60.5, -1, 61 * SECOND_NS),
        [-1, 60 * SECOND_NS + SECOND_NS / 2 - 1]
    );
    assert_eq!(cycles(60.0, 6, 5), [0; 0]);
}

#[test]
fn random_pages_are_parts_of_the_walk_over_all_cycles() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..2_000 {
        let start = random.i64(-1_000..1_000) * SECOND_NS;
        let end = start + random.i64(1..5_000 * SECOND_NS);
        let evaluation = evaluation(random.f64() * 100.0 + 1.0, 0.0);
        let step = usize::try_from(evaluation.interval_ns()).unwrap();
        let all: Vec<i64> = (start..=end).step_by(step).collect();
        let (offset, limit) = (random.usize(0..100), random.usize(1..100));
        let cycles = Cycles::of(&evaluation, start, end);
        let expected: Vec<i64> = all.iter().copied().skip(offset).take(limit).collect();
        let found: Vec<i64> = cycles.page(offset as u64, limit as u64).collect();
        assert_eq!(found, expected, "seed {seed}");
        assert_eq!(cycles.count(), all.len() as u64, "seed {seed}");
    }
}

/// The longest range of the most frequent rule: nothing overflows, and the last page is reached without a walk.
#[test]
fn the_longest_range_is_counted_and_paged() {
    let cycles = Cycles::of(&evaluation(60.0, 0.0), i64::MIN, i64::MAX);
    let count = u64::MAX / (60 * SECOND_NS as u64) + 1;
    assert_eq!(cycles.count(), count);
    let last: Vec<i64> = cycles.page(count - 1, 1_000).collect();
    assert_eq!(last.len(), 1);
    assert!(i64::MAX - last[0] < 60 * SECOND_NS);
    assert_eq!(cycles.page(count, 1_000).count(), 0);
    assert_eq!(cycles.page(u64::MAX, u64::MAX).count(), 0);
}
