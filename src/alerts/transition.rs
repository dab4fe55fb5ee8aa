//! How a verdict changes the state of a rule (contract, chapter 6). Pure: the time is an argument.
//!
//! The clock may be set back. If the last evaluation is then more than an interval ahead of the clock, the rule is due
//! at once; if the start of a dwell is in the future, the dwell restarts with the next `not_met`. So a clock step
//! delays a rule by at most its own interval and dwell, and a small step back does not admit a second verdict.

use crate::catalog::{Outcome, RuleRuntime, RuleState};

/// The effect of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state at that time, before the verdict.
    pub previous_state: RuleState,
    /// The state after the verdict.
    pub runtime: RuleRuntime,
    /// Whether the rule fired.
    pub triggered: bool,
}

/// The state of a rule at a time. A clearing rule is armed once the dwell is over.
pub fn state_at(runtime: &RuleRuntime, dwell_ns: i64, now_ns: i64) -> RuleState {
    let cleared_ns = runtime.condition_cleared_at_ns;
    let over = |since_ns: i64| now_ns.saturating_sub(since_ns) >= dwell_ns;
    match runtime.state {
        RuleState::Clearing if cleared_ns.is_none_or(over) => RuleState::Armed,
        state => state,
    }
}

/// Applies the dwell up to now. Used before a change of the dwell, which must not undo it.
pub fn settled(runtime: &RuleRuntime, dwell_ns: i64, now_ns: i64) -> RuleRuntime {
    RuleRuntime {
        state: state_at(runtime, dwell_ns, now_ns),
        ..*runtime
    }
}

/// When the rule became or will become due.
pub fn due_at_ns(runtime: &RuleRuntime, interval_ns: i64, now_ns: i64) -> i64 {
    match runtime.last_evaluated_at_ns {
        None => runtime.due_from_ns.min(now_ns),
        // The clock was set back past the interval.
        Some(last_ns) if last_ns.saturating_sub(interval_ns) > now_ns => now_ns,
        Some(last_ns) => last_ns.saturating_add(interval_ns),
    }
}

/// Applies the verdict on a rule that is due.
pub fn apply(runtime: &RuleRuntime, dwell_ns: i64, outcome: Outcome, now_ns: i64) -> Transition {
    let previous_state = state_at(runtime, dwell_ns, now_ns);
    let mut after = RuleRuntime {
        state: previous_state,
        last_evaluated_at_ns: Some(now_ns),
        last_outcome: Some(outcome),
        ..*runtime
    };
    let triggered = outcome == Outcome::Met && previous_state == RuleState::Armed;
    match outcome {
        Outcome::Inconclusive => {}
        Outcome::Met => {
            after.state = RuleState::Firing;
            after.condition_cleared_at_ns = None;
            if triggered {
                after.last_triggered_at_ns = Some(now_ns);
            }
        }
        Outcome::NotMet => {
            let since_ns = runtime
                .condition_cleared_at_ns
                .map_or(now_ns, |since_ns| since_ns.min(now_ns));
            after.condition_cleared_at_ns = Some(since_ns);
            if previous_state == RuleState::Firing {
                after.state = RuleState::Clearing;
                after.condition_cleared_at_ns = Some(now_ns);
                // Without a dwell the rule is armed at once.
                after.state = state_at(&after, dwell_ns, now_ns);
            }
        }
    }
    Transition {
        previous_state,
        runtime: after,
        triggered,
    }
}

/// Number of whole intervals that have passed since the one that is due.
pub fn missed_intervals(due_at_ns: i64, interval_ns: i64, now_ns: i64) -> i64 {
    (now_ns.saturating_sub(due_at_ns).max(0)) / interval_ns.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;

    const NOW: i64 = 1_000_000 * SECOND_NS;
    const DWELL: i64 = 300 * SECOND_NS;
    const INTERVAL: i64 = 60 * SECOND_NS;

    fn runtime_of(state: RuleState, cleared_ago: Option<i64>) -> RuleRuntime {
        RuleRuntime {
            state,
            due_from_ns: 0,
            last_evaluated_at_ns: Some(NOW - INTERVAL),
            condition_cleared_at_ns: cleared_ago.map(|ago| NOW - ago),
            last_outcome: None,
            last_triggered_at_ns: Some(7),
        }
    }

    /// The contract's table row by row: every state × outcome × position of the timer.
    #[test]
    fn every_state_outcome_and_timer_follows_the_contract() {
        use Outcome::{Inconclusive, Met, NotMet};
        use RuleState::{Armed, Clearing, Firing};
        // state, cleared ago, dwell, outcome → previous state, state, cleared ago, fired
        let table = [
            (Armed, None, DWELL, Met, Armed, Firing, None, true),
            (Armed, Some(9), DWELL, Met, Armed, Firing, None, true),
            (Armed, None, DWELL, NotMet, Armed, Armed, Some(0), false),
            (Armed, Some(9), DWELL, NotMet, Armed, Armed, Some(9), false),
            (
                Armed,
                Some(DWELL),
                DWELL,
                NotMet,
                Armed,
                Armed,
                Some(DWELL),
                false,
            ),
            (Armed, None, DWELL, Inconclusive, Armed, Armed, None, false),
            (Armed, Some(9), DWELL, Inconclusive, Armed, Armed, Some(9), false),
            (Firing, None, DWELL, Met, Firing, Firing, None, false),
            (Firing, None, DWELL, NotMet, Firing, Clearing, Some(0), false),
            (Firing, None, 0, NotMet, Firing, Armed, Some(0), false),
            (Firing, None, DWELL, Inconclusive, Firing, Firing, None, false),
            (Clearing, Some(0), DWELL, Met, Clearing, Firing, None, false),
            (
                Clearing,
                Some(DWELL - 1),
                DWELL,
                Met,
                Clearing,
                Firing,
                None,
                false,
            ),
            (Clearing, Some(DWELL), DWELL, Met, Armed, Firing, None, true),
            (Clearing, Some(DWELL + 1), DWELL, Met, Armed, Firing, None, true),
            (Clearing, Some(0), 0, Met, Armed, Firing, None, true),
            (
                Clearing,
                Some(9),
                DWELL,
                NotMet,
                Clearing,
                Clearing,
                Some(9),
                false,
            ),
            (
                Clearing,
                Some(DWELL),
                DWELL,
                NotMet,
                Armed,
                Armed,
                Some(DWELL),
                false,
            ),
            (
                Clearing,
                Some(9),
                DWELL,
                Inconclusive,
                Clearing,
                Clearing,
                Some(9),
                false,
            ),
            (
                Clearing,
                Some(DWELL),
                DWELL,
                Inconclusive,
                Armed,
                Armed,
                Some(DWELL),
                false,
            ),
        ];
        for (state, cleared, dwell, outcome, previous_state, after, cleared_after, triggered) in table {
            let before = runtime_of(state, cleared);
            let expected = Transition {
                previous_state,
                runtime: RuleRuntime {
                    state: after,
                    last_evaluated_at_ns: Some(NOW),
                    last_outcome: Some(outcome),
                    condition_cleared_at_ns: cleared_after.map(|ago| NOW - ago),
                    last_triggered_at_ns: Some(if triggered { NOW } else { 7 }),
                    ..before
                },
                triggered,
            };
            assert_eq!(
                apply(&before, dwell, outcome, NOW),
                expected,
                "{state:?} cleared {cleared:?} ago, dwell {dwell}, {outcome:?}"
            );
        }
        // The table covers every state with every outcome.
        for state in RuleState::ALL {
            for outcome in Outcome::ALL {
                assert!(table.iter().any(|row| row.0 == state && row.3 == outcome));
            }
        }
    }

    /// An independent, step-by-step model of the contract's rules over a whole sequence of verdicts.
    struct Model {
        fired: Vec<i64>,
        firing: bool,
        /// Since when a rule that has fired is no longer met.
        clear_since: Option<i64>,
    }

    impl Model {
        fn apply(&mut self, outcome: Outcome, dwell_ns: i64, now_ns: i64) {
            if self.clear_since.is_some_and(|since| now_ns - since >= dwell_ns) {
                self.firing = false;
                self.clear_since = None;
            }
            match outcome {
                Outcome::Met => {
                    if !self.firing {
                        self.fired.push(now_ns);
                    }
                    self.firing = true;
                    self.clear_since = None;
                }
                Outcome::NotMet if self.firing => {
                    self.clear_since.get_or_insert(now_ns);
                }
                Outcome::NotMet | Outcome::Inconclusive => {}
            }
        }
    }

    #[test]
    fn random_verdicts_fire_exactly_when_the_model_says() {
        let mut seed = fastrand::u64(..);
        for _ in 0..2_000 {
            seed = seed.wrapping_add(1);
            let mut random = fastrand::Rng::with_seed(seed);
            let dwell_ns = random.i64(0..5) * INTERVAL * random.i64(0..3);
            let mut model = Model {
                fired: Vec::new(),
                firing: false,
                clear_since: None,
            };
            let mut runtime = RuleRuntime::new(0);
            let (mut now_ns, mut fired) = (0, Vec::new());
            for _ in 0..40 {
                now_ns += INTERVAL + random.i64(0..INTERVAL * 3);
                assert!(due_at_ns(&runtime, INTERVAL, now_ns) <= now_ns, "seed {seed}");
                let outcome = Outcome::ALL[random.usize(0..3)];
                model.apply(outcome, dwell_ns, now_ns);
                let transition = apply(&runtime, dwell_ns, outcome, now_ns);
                runtime = transition.runtime;
                if transition.triggered {
                    fired.push(now_ns);
                }
                assert_eq!(
                    runtime.condition_cleared_at_ns.is_none(),
                    outcome == Outcome::Met || {
                        outcome == Outcome::Inconclusive && runtime.condition_cleared_at_ns.is_none()
                    }
                );
            }
            assert_eq!(fired, model.fired, "seed {seed}");
        }
    }

    #[test]
    fn a_rule_is_due_an_interval_after_its_verdict_and_a_new_one_at_once() {
        let new = RuleRuntime::new(NOW);
        assert_eq!(due_at_ns(&new, INTERVAL, NOW), NOW);
        assert_eq!(due_at_ns(&new, INTERVAL, NOW + 5), NOW, "since it was added");
        assert!(
            due_at_ns(&new, INTERVAL, NOW - 5) <= NOW - 5,
            "also when the clock was set back"
        );
        let evaluated = apply(&new, DWELL, Outcome::NotMet, NOW).runtime;
        assert_eq!(due_at_ns(&evaluated, INTERVAL, NOW), NOW + INTERVAL);
        assert_eq!(missed_intervals(NOW, INTERVAL, NOW + INTERVAL - 1), 0);
        assert_eq!(missed_intervals(NOW, INTERVAL, NOW + 3 * INTERVAL), 3);
        assert_eq!(missed_intervals(NOW, INTERVAL, NOW - 1), 0);
    }

    #[test]
    fn a_clock_set_back_repeats_no_verdict_and_strands_no_rule() {
        let evaluated = apply(&RuleRuntime::new(0), DWELL, Outcome::Met, NOW).runtime;
        for back in [1, SECOND_NS, INTERVAL] {
            let now = NOW - back;
            assert!(
                due_at_ns(&evaluated, INTERVAL, now) > now,
                "{back} back: not due again"
            );
        }
        let hour_back = NOW - 3600 * SECOND_NS;
        assert_eq!(
            due_at_ns(&evaluated, INTERVAL, hour_back),
            hour_back,
            "due at once"
        );

        // Clearing since a time that is now in the future: the dwell counts from the next verdict.
        let clearing = apply(&evaluated, DWELL, Outcome::NotMet, NOW).runtime;
        let again = apply(&clearing, DWELL, Outcome::NotMet, hour_back);
        assert_eq!(again.runtime.condition_cleared_at_ns, Some(hour_back));
        assert_eq!(
            state_at(&again.runtime, DWELL, hour_back + DWELL),
            RuleState::Armed
        );
    }

    #[test]
    fn a_longer_dwell_does_not_disarm_an_armed_rule() {
        let clearing = runtime_of(RuleState::Clearing, Some(DWELL));
        let settled = settled(&clearing, DWELL, NOW);
        assert_eq!(state_at(&settled, 10 * DWELL, NOW), RuleState::Armed);
        assert_eq!(settled.condition_cleared_at_ns, clearing.condition_cleared_at_ns);
    }

    #[test]
    fn a_dwell_that_overflows_time_never_ends() {
        let clearing = runtime_of(RuleState::Clearing, Some(0));
        assert_eq!(state_at(&clearing, i64::MAX, i64::MAX), RuleState::Clearing);
    }
}
