//! Whether a verdict is accepted, and what it writes. Pure: the actor calls it with the current rule.

use super::transition::{self, Transition, due_at_ns};
use crate::catalog::{Command, Outcome, Owing, Rule, RuleStatus, Verdict};
use crate::ids::ObjectId;

/// A verdict as an evaluator posted it.
pub struct Judgement {
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
pub struct Judged {
    /// The effect on the rule.
    pub transition: Transition,
    /// When the rule is due next, UTC nanoseconds.
    pub next_due_at_ns: i64,
    /// The command to write.
    pub command: Command,
    /// The deliveries that the command creates.
    pub owed: Vec<ObjectId>,
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

/// Decides on a verdict. `owed` makes the deliveries of a trigger at that time.
///
/// # Errors
/// Why the verdict is refused.
pub fn judge<E: From<Refusal>>(
    rule: &Rule,
    judgement: Judgement,
    now_ns: i64,
    owed: impl FnOnce(&Rule) -> Result<Owing, E>,
) -> Result<Judged, E> {
    let Some(evaluation) = &rule.settings.evaluation else {
        return Err(Refusal::Plain.into());
    };
    if rule.settings.status != RuleStatus::Active {
        return Err(Refusal::NotActive(rule.settings.status).into());
    }
    if due_at_ns(&rule.runtime, evaluation.interval_ns(), now_ns) > now_ns {
        return Err(Refusal::NotDue.into());
    }
    let transition = transition::judge(&rule.runtime, evaluation.dwell_ns(), judgement.outcome, now_ns);
    let owing = if transition.triggered {
        owed(rule)?
    } else {
        Owing::default()
    };
    let owed = owing.ids();
    let verdict = Verdict {
        id: judgement.verdict_id,
        rule_id: rule.id,
        at_ns: now_ns,
        outcome: judgement.outcome,
        evidence: judgement.evidence,
        key_id: judgement.key_id,
        previous_state: transition.previous_state,
        runtime: transition.runtime,
        trigger_id: transition.triggered.then_some(judgement.trigger_id),
        deliveries: owing.deliveries,
        fan_out: owing.fan_out,
        room: owing.room,
    };
    Ok(Judged {
        transition,
        next_due_at_ns: due_at_ns(&transition.runtime, evaluation.interval_ns(), now_ns),
        command: Command::VerdictRecorded { verdict },
        owed,
    })
}
