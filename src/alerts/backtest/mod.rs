//! What a rule would have done in a time range (contract, chapter 14): when it would have been due, and what its dwell
//! and interval would have made of the outcomes. Pure: the rule's own past plays no part.

#[cfg(test)]
mod tests;

use super::transition::{apply, due_at_ns, settled};
use crate::catalog::{Evaluation, Outcome, RuleRuntime, RuleState};

/// The instants of a range at which a rule is due, if every verdict arrives at once. They are computed when they are
/// asked for: a range may have hundreds of millions.
#[derive(Clone, Copy, Debug)]
pub struct Cycles {
    start_ns: i64,
    end_ns: i64,
    interval_ns: i64,
}

/// An outcome at an instant in UTC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestedVerdict {
    pub at_ns: i64,
    pub outcome: Outcome,
}

/// An entry of the timeline: a verdict, or the end of a dwell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// `None` for the end of a dwell.
    pub outcome: Option<Outcome>,
    pub previous_state: RuleState,
    pub state: RuleState,
    /// Whether the rule fires.
    pub triggered: bool,
    /// False for a verdict that comes too early, which changes nothing.
    pub accepted: bool,
}

impl Cycles {
    /// Those from `start_ns` up to and including `end_ns`.
    pub fn of(evaluation: &Evaluation, start_ns: i64, end_ns: i64) -> Self {
        Self {
            start_ns,
            end_ns,
            interval_ns: evaluation.interval_ns().max(1),
        }
    }

    /// Number of cycles.
    pub fn count(self) -> u64 {
        match self.end_ns >= self.start_ns {
            true => self.end_ns.abs_diff(self.start_ns) / self.interval_ns.unsigned_abs() + 1,
            false => 0,
        }
    }

    /// The instants of at most `limit` cycles, those before `offset` left out.
    pub fn page(self, offset: u64, limit: u64) -> impl Iterator<Item = i64> {
        let end = self.count().min(offset.saturating_add(limit));
        // The product is at most the length of the range, and the sum at most its end.
        (offset..end).map(move |nth| {
            let since_start = nth.saturating_mul(self.interval_ns.unsigned_abs());
            self.start_ns.saturating_add_unsigned(since_start)
        })
    }
}

/// The states and triggers that these verdicts cause in a rule that is armed at first, ordered by time. Of verdicts at
/// one instant the first counts.
pub fn timeline(evaluation: &Evaluation, mut verdicts: Vec<TestedVerdict>) -> Vec<TimelineEntry> {
    let (interval_ns, dwell_ns) = (evaluation.interval_ns(), evaluation.dwell_ns());
    // Stable: what was sent first is first.
    verdicts.sort_by_key(|verdict| verdict.at_ns);
    let mut runtime = RuleRuntime::new(i64::MIN);
    let mut entries = Vec::with_capacity(verdicts.len());
    for TestedVerdict { at_ns, outcome } in verdicts {
        entries.extend(dwell_end(&runtime, dwell_ns).filter(|end| end.at_ns <= at_ns));
        runtime = settled(&runtime, dwell_ns, at_ns);
        let mut entry = TimelineEntry {
            at_ns,
            outcome: Some(outcome),
            previous_state: runtime.state,
            state: runtime.state,
            triggered: false,
            accepted: due_at_ns(&runtime, interval_ns, at_ns) <= at_ns,
        };
        if entry.accepted {
            let after = apply(&runtime, dwell_ns, outcome, at_ns);
            runtime = after.runtime;
            entry.state = runtime.state;
            entry.triggered = after.triggered;
        }
        entries.push(entry);
    }
    entries.extend(dwell_end(&runtime, dwell_ns));
    entries
}

/// The end of a running dwell; `None` if there is none, or if it ends behind all timestamps.
fn dwell_end(runtime: &RuleRuntime, dwell_ns: i64) -> Option<TimelineEntry> {
    let since_ns = runtime.condition_cleared_at_ns?;
    let is_running = runtime.state == RuleState::Clearing;
    is_running.then_some(TimelineEntry {
        at_ns: since_ns.checked_add(dwell_ns)?,
        outcome: None,
        previous_state: RuleState::Clearing,
        state: RuleState::Armed,
        triggered: false,
        accepted: true,
    })
}
