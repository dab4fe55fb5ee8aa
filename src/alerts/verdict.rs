//! Whether a verdict is accepted, and what it writes. Pure: the actor calls it with the current rule.

use super::Decision;
use super::transition::{self, Transition, due_at_ns};
use crate::catalog::{Command, NewDeliveries, Outcome, Rule, RuleStatus, Verdict};
use crate::ids::ObjectId;

/// A verdict as an evaluator posted it.
pub struct PostedVerdict {
    /// The evaluator's result.
    pub outcome: Outcome,
    /// A JSON object, as received.
    pub evidence: Option<Box<str>>,
    /// The API key or user that sent it.
    pub key_id: ObjectId,
    /// Id of its entry in the history.
    pub verdict_id: ObjectId,
    /// Id of the trigger's entry, if the rule fires.
    pub trigger_id: ObjectId,
}

/// An accepted verdict.
#[derive(Debug)]
pub struct AcceptedVerdict {
    /// The effect on the rule.
    pub transition: Transition,
    /// When the rule is due next, UTC nanoseconds.
    pub next_due_at_ns: i64,
    /// What the verdict writes.
    pub decision: Decision,
}

/// Why a verdict is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The rule has no evaluation block.
    Plain,
    /// The rule is paused or inactive.
    NotActive(RuleStatus),
    /// The rule is not due: the current interval already has a verdict.
    NotDue,
}

/// Applies a posted verdict to the rule. `owed` makes the deliveries, if the rule fires.
///
/// # Errors
/// Why the verdict is refused.
pub fn accept<E: From<Refusal>>(
    rule: &Rule,
    posted: PostedVerdict,
    now_ns: i64,
    owed: impl FnOnce(&Rule) -> Result<NewDeliveries, E>,
) -> Result<AcceptedVerdict, E> {
    let Some(evaluation) = &rule.settings.evaluation else {
        return Err(Refusal::Plain.into());
    };
    if rule.settings.status != RuleStatus::Active {
        return Err(Refusal::NotActive(rule.settings.status).into());
    }
    if due_at_ns(&rule.runtime, evaluation.interval_ns(), now_ns) > now_ns {
        return Err(Refusal::NotDue.into());
    }
    let transition = transition::apply(&rule.runtime, evaluation.dwell_ns(), posted.outcome, now_ns);
    let owing = if transition.triggered {
        owed(rule)?
    } else {
        NewDeliveries::default()
    };
    let deliveries = owing.ids();
    let verdict = Verdict {
        id: posted.verdict_id,
        rule_id: rule.id,
        at_ns: now_ns,
        outcome: posted.outcome,
        evidence: posted.evidence,
        key_id: posted.key_id,
        previous_state: transition.previous_state,
        runtime: transition.runtime,
        trigger_id: transition.triggered.then_some(posted.trigger_id),
        deliveries: owing.deliveries,
        fan_out: owing.fan_out,
        room: owing.room,
    };
    Ok(AcceptedVerdict {
        transition,
        next_due_at_ns: due_at_ns(&transition.runtime, evaluation.interval_ns(), now_ns),
        decision: Decision {
            command: Some(Command::VerdictRecorded { verdict }),
            deliveries,
        },
    })
}
