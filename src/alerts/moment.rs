//! What time alone brings about in a rule: the end of its dwell, and the silence of its evaluators (contract, chapter 14).
//! Pure: the time is an argument.

use super::transition::due_at_ns;
use crate::catalog::{Command, Evaluation, NewDeliveries, Rule, RuleState, RuleStatus};
use crate::clock::MINUTE_NS;
use crate::ids::ObjectId;

/// A rule is not overdue before this time after it became due, however short its interval is.
const OVERDUE_NS_MIN: i64 = 5 * MINUTE_NS;
/// Intervals after which a rule that is due is overdue.
const OVERDUE_INTERVALS: i64 = 2;

/// What time brings about. Times are UTC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The dwell is over: the rule is armed again.
    Resolved {
        /// End of the dwell.
        at_ns: i64,
        /// When the rule had fired.
        triggered_at_ns: i64,
    },
    /// No evaluator has judged the rule.
    Overdue {
        /// From when on this is too long.
        at_ns: i64,
        /// When the rule became due.
        due_at_ns: i64,
    },
}

impl Moment {
    /// When it happens, UTC nanoseconds.
    pub const fn at_ns(self) -> i64 {
        match self {
            Self::Resolved { at_ns, .. } | Self::Overdue { at_ns, .. } => at_ns,
        }
    }
}

/// Makes the deliveries of what webhooks hear of a rule beside its triggers. Times are UTC nanoseconds; `now_ns` is the time
/// of the event's record.
pub trait RuleEvents: Send {
    /// The rule had fired at `triggered_at_ns`, and is armed again since `resolved_at_ns`.
    fn resolved(&self, rule: &Rule, triggered_at_ns: i64, resolved_at_ns: i64, now_ns: i64) -> NewDeliveries;

    /// No evaluator has judged the rule, which became due at `due_at_ns`.
    fn overdue(&self, rule: &Rule, due_at_ns: i64, now_ns: i64) -> NewDeliveries;

    /// The rule, overdue since `due_at_ns`, has a verdict now.
    fn resumed(&self, rule: &Rule, due_at_ns: i64, now_ns: i64) -> NewDeliveries;
}

/// The record of a moment that has come, with the deliveries that it owes.
pub fn recorded(
    rule: &Rule,
    moment: Moment,
    now_ns: i64,
    events: &dyn RuleEvents,
) -> (Command, Vec<ObjectId>) {
    let (rule_id, at_ns) = (rule.id, now_ns);
    let told = match moment {
        Moment::Resolved {
            at_ns: resolved_at_ns,
            triggered_at_ns,
        } => events.resolved(rule, triggered_at_ns, resolved_at_ns, now_ns),
        Moment::Overdue { due_at_ns, .. } => events.overdue(rule, due_at_ns, now_ns),
    };
    let deliveries = told.ids();
    let command = match moment {
        Moment::Resolved { .. } => Command::RuleResolved { rule_id, at_ns, told },
        Moment::Overdue { due_at_ns, .. } => Command::RuleOverdue {
            rule_id,
            due_at_ns,
            at_ns,
            told,
        },
    };
    (command, deliveries)
}

/// The next moment that is not in the log yet, past or future. `None` if only a verdict or a change of the settings can
/// bring one about.
pub fn next(rule: &Rule, now_ns: i64) -> Option<Moment> {
    let evaluation = rule.settings.evaluation.as_ref()?;
    let moments = [
        resolved(rule, evaluation),
        untold_overdue(rule, evaluation, now_ns),
    ];
    moments.into_iter().flatten().min_by_key(|moment| moment.at_ns())
}

/// The moment that has come by now and is not in the log yet.
pub fn reached(rule: &Rule, now_ns: i64) -> Option<Moment> {
    next(rule, now_ns).filter(|moment| moment.at_ns() <= now_ns)
}

/// The end of the dwell of a rule that is clearing. A rule whose dwell is over is clearing in the catalog until the end
/// is in the log.
fn resolved(rule: &Rule, evaluation: &Evaluation) -> Option<Moment> {
    let runtime = &rule.runtime;
    let cleared_at_ns = runtime.condition_cleared_at_ns?;
    let resolved = Moment::Resolved {
        at_ns: cleared_at_ns.saturating_add(evaluation.dwell_ns()),
        triggered_at_ns: runtime.last_triggered_at_ns?,
    };
    (runtime.state == RuleState::Clearing).then_some(resolved)
}

fn untold_overdue(rule: &Rule, evaluation: &Evaluation, now_ns: i64) -> Option<Moment> {
    let (due_at_ns, at_ns) = overdue_from_ns(rule, evaluation, now_ns)?;
    (rule.overdue_told_ns != Some(due_at_ns)).then_some(Moment::Overdue { at_ns, due_at_ns })
}

/// When the rule became or will become due, and from when on it is overdue, if there is no verdict until then.
fn overdue_from_ns(rule: &Rule, evaluation: &Evaluation, now_ns: i64) -> Option<(i64, i64)> {
    let interval_ns = evaluation.interval_ns();
    let due_at_ns = due_at_ns(&rule.runtime, interval_ns, now_ns);
    let silence_ns = interval_ns.saturating_mul(OVERDUE_INTERVALS).max(OVERDUE_NS_MIN);
    (rule.settings.status == RuleStatus::Active).then_some((due_at_ns, due_at_ns.saturating_add(silence_ns)))
}

/// Since when the rule has been due, if it is overdue.
pub fn overdue_since_ns(rule: &Rule, now_ns: i64) -> Option<i64> {
    let evaluation = rule.settings.evaluation.as_ref()?;
    let (due_at_ns, from_ns) = overdue_from_ns(rule, evaluation, now_ns)?;
    (from_ns <= now_ns).then_some(due_at_ns)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::alerts::fixture::rule;
    use crate::catalog::{RuleRuntime, RuleSettings};
    use crate::clock::SECOND_NS;

    /// After the first verdict and a trigger, in seconds.
    const TRIGGERED: i64 = 1_000;

    fn runtime(state: RuleState, cleared: Option<i64>) -> RuleRuntime {
        RuleRuntime {
            state,
            last_evaluated_at_ns: Some(TRIGGERED * SECOND_NS),
            condition_cleared_at_ns: cleared.map(|at| at * SECOND_NS),
            last_triggered_at_ns: Some(TRIGGERED * SECOND_NS),
            ..RuleRuntime::new(0)
        }
    }

    fn next_at(rule: &Rule, now: i64) -> Option<i64> {
        next(rule, now * SECOND_NS).map(|moment| moment.at_ns() / SECOND_NS)
    }

    #[test]
    fn the_end_of_a_dwell_comes_once() {
        let mut clearing = rule(600.0, 90.0, runtime(RuleState::Clearing, Some(1_010)));
        let resolved = Moment::Resolved {
            at_ns: 1_100 * SECOND_NS,
            triggered_at_ns: TRIGGERED * SECOND_NS,
        };
        for now in [0, 1_099, 1_100, 5_000] {
            assert_eq!(next(&clearing, now * SECOND_NS), Some(resolved), "at {now}");
        }
        clearing.runtime.state = RuleState::Armed;
        assert_eq!(
            next_at(&clearing, 1_100),
            Some(1_600 + 1_200),
            "overdue is what is left"
        );
        let firing = rule(600.0, 90.0, runtime(RuleState::Firing, None));
        assert_eq!(next_at(&firing, 5_000), Some(2_800));
    }

    #[test]
    fn a_paused_rule_resolves_and_is_not_overdue() {
        let mut paused = rule(60.0, 90.0, runtime(RuleState::Clearing, Some(1_010)));
        let settings = RuleSettings {
            status: RuleStatus::Paused,
            ..RuleSettings::clone(&paused.settings)
        };
        paused.settings = Arc::new(settings);
        assert_eq!(next_at(&paused, 9_000), Some(1_100));
        assert_eq!(overdue_since_ns(&paused, 9_000 * SECOND_NS), None);
        paused.runtime.state = RuleState::Armed;
        assert_eq!(next_at(&paused, 9_000), None);
    }

    /// Interval and silence in seconds.
    #[test]
    fn a_rule_is_overdue_after_two_intervals_but_not_within_five_minutes() {
        for (interval, silence) in [(60, 300), (150, 300), (151, 302), (3_600, 7_200)] {
            let mut rule = rule(interval as f64, 0.0, runtime(RuleState::Armed, None));
            let due = TRIGGERED + interval;
            let due_at_ns = due * SECOND_NS;
            let from_ns = (due + silence) * SECOND_NS;
            let overdue = Moment::Overdue {
                at_ns: from_ns,
                due_at_ns,
            };
            let found = next(&rule, TRIGGERED * SECOND_NS);
            assert_eq!(found, Some(overdue), "every {interval} s");
            let since = |rule: &Rule, at: i64| overdue_since_ns(rule, at);
            assert_eq!(since(&rule, from_ns - 1), None);
            assert_eq!(since(&rule, from_ns), Some(due_at_ns));
            rule.overdue_told_ns = Some(due_at_ns);
            assert_eq!(next(&rule, i64::MAX), None, "told once");
            assert_eq!(
                since(&rule, i64::MAX),
                Some(due_at_ns),
                "and shown as long as it lasts"
            );
            rule.runtime.last_evaluated_at_ns = Some(9_000 * SECOND_NS);
            let again = 9_000 + interval + silence;
            assert_eq!(next_at(&rule, 9_000), Some(again), "the next one is another");
        }
    }

    #[test]
    fn a_rule_that_nobody_ever_judged_is_overdue_too_and_a_plain_rule_never() {
        let mut rule = rule(60.0, 0.0, RuleRuntime::new(7 * SECOND_NS));
        assert_eq!(next_at(&rule, 8), Some(307));
        let settings = RuleSettings {
            evaluation: None,
            ..RuleSettings::clone(&rule.settings)
        };
        rule.settings = Arc::new(settings);
        assert_eq!(next(&rule, i64::MAX), None);
        assert_eq!(overdue_since_ns(&rule, i64::MAX), None);
    }
}
