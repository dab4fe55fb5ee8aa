//! Whether a verdict is accepted, and what it writes. Pure: the actor calls it with the current rule.

use super::Decision;
use super::moment::{RuleEvents, overdue_since_ns};
use super::transition::{self, due_at_ns};
use crate::catalog::{Command, NewDeliveries, Outcome, Rule, RuleState, RuleStatus, Standing, Verdict};
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
pub struct Accepted {
    /// The rule's state after the verdict.
    pub standing: Standing,
    /// The rule's state before the verdict.
    pub previous_state: RuleState,
    /// Whether the rule fired.
    pub triggered: bool,
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

/// What a trigger causes.
#[derive(Default)]
pub struct Consequences {
    pub deliveries: NewDeliveries,
    /// The silence that mutes the trigger; there are no deliveries then.
    pub silence_id: Option<ObjectId>,
}

/// Applies a posted verdict to the rule. If the rule fires, `consequences` makes the deliveries or finds the silence; if
/// it cannot yet, nothing is accepted (`None`). `events` makes the deliveries of what else webhooks hear of the rule.
///
/// # Errors
/// Why the verdict is refused.
pub fn accept(
    rule: &Rule,
    posted: PostedVerdict,
    now_ns: i64,
    consequences: impl FnOnce(&Rule) -> Option<Consequences>,
    events: &impl RuleEvents,
) -> Result<Option<(Decision, Accepted)>, Refusal> {
    let Some(evaluation) = &rule.settings.evaluation else {
        return Err(Refusal::Plain);
    };
    if rule.settings.status != RuleStatus::Active {
        return Err(Refusal::NotActive(rule.settings.status));
    }
    if due_at_ns(&rule.runtime, evaluation.interval_ns(), now_ns) > now_ns {
        return Err(Refusal::NotDue);
    }
    let after = transition::apply(&rule.runtime, evaluation.dwell_ns(), posted.outcome, now_ns);
    let caused = if after.triggered {
        consequences(rule)
    } else {
        Some(Consequences::default())
    };
    let Some(Consequences {
        deliveries: new,
        silence_id,
    }) = caused
    else {
        return Ok(None);
    };
    let mut told = Vec::new();
    if let Some(due_at_ns) = overdue_since_ns(rule, now_ns) {
        told.push(events.resumed(rule, due_at_ns, now_ns));
    }
    // Without a dwell the rule is armed at once.
    if (after.previous_state, after.runtime.state) == (RuleState::Firing, RuleState::Armed)
        && let Some(triggered_at_ns) = rule.runtime.last_triggered_at_ns
    {
        told.push(events.resolved(rule, triggered_at_ns, now_ns, now_ns));
    }
    let deliveries = told.iter().chain([&new]).flat_map(NewDeliveries::ids).collect();
    let verdict = Verdict {
        id: posted.verdict_id,
        rule_id: rule.id,
        at_ns: now_ns,
        outcome: posted.outcome,
        evidence: posted.evidence,
        key_id: posted.key_id,
        previous_state: after.previous_state,
        runtime: after.runtime,
        trigger_id: after.triggered.then_some(posted.trigger_id),
        silence_id,
        deliveries: new.deliveries,
        fan_out: new.fan_out,
        room: new.room,
        told,
    };
    let standing = Standing {
        rule_id: rule.id,
        outcome: Some(posted.outcome),
        state: after.runtime.state,
        runtime: after.runtime,
        next_due_at_ns: Some(due_at_ns(&after.runtime, evaluation.interval_ns(), now_ns)),
    };
    let accepted = Accepted {
        standing,
        previous_state: after.previous_state,
        triggered: after.triggered,
    };
    let command = Some(Command::VerdictRecorded { verdict });
    Ok(Some((Decision { command, deliveries }, accepted)))
}
