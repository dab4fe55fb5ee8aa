//! The interface of external evaluators: they poll for due rules and post verdicts.

use std::sync::Arc;

use super::triggers::{Facts, NewestPoint};
use super::{Caller, Service};
pub use crate::alerts::Accepted;
pub use crate::alerts::moment::overdue_since_ns;
use crate::alerts::transition::{due_at_ns, missed_intervals, state_at};
use crate::alerts::{self, Consequences, DueRule, PostedVerdict, Refusal};
pub use crate::catalog::Standing;
use crate::catalog::{Acknowledgement, Evaluation, Outcome, Role, Rule, RuleState, RuleStatus};
use crate::error::{ErrorExtra, ServiceError};
use crate::ids::ObjectId;
use crate::ingest::timestamp::FIRST_NS;

/// A rule that is due, with the queries that its evaluation needs.
pub struct DueEvaluation {
    pub rule: Arc<Rule>,
    /// Since when the rule is due, in UTC nanoseconds.
    pub due_at_ns: i64,
    /// Whole intervals that were missed, not counting the one that is due.
    pub missed_intervals: i64,
    /// One query for each input, in the order of the inputs.
    pub queries: Vec<DueQuery>,
}

/// The query for one input of a rule.
pub struct DueQuery {
    pub source_id: ObjectId,
    /// Inclusive, in UTC nanoseconds.
    pub start_ns: i64,
    /// Inclusive, in UTC nanoseconds: the time of the evaluation.
    pub end_ns: i64,
}

impl DueQuery {
    /// The queries for an evaluation of a rule at a time, one for each input, in the order of the inputs. `source_id`:
    /// the rule's own source.
    pub fn all_of(evaluation: &Evaluation, source_id: ObjectId, at_ns: i64) -> Vec<Self> {
        let inputs = evaluation.inputs.iter();
        let queries = inputs.map(|input| Self {
            source_id: input.source_id.unwrap_or(source_id),
            // A query takes no earlier time.
            start_ns: at_ns.saturating_sub(evaluation.window_ns(input)).max(FIRST_NS),
            end_ns: at_ns,
        });
        queries.collect()
    }
}

impl Service {
    /// Returns the unclaimed rules of the organization that are due. Claims them for `claim_seconds`, if given.
    ///
    /// # Errors
    /// 403 when a viewer claims, which keeps rules from evaluators; 503 when the server is overloaded.
    pub async fn due_evaluations(
        &self,
        caller: &Caller,
        limit: u64,
        claim_seconds: Option<u64>,
    ) -> Result<Vec<DueEvaluation>, ServiceError> {
        if claim_seconds.is_some() {
            caller.check_role(Role::Editor)?;
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let claim = claim_seconds.and_then(|seconds| u32::try_from(seconds).ok());
        let (now_ns, due) = self.alerts.due(caller.organization_id, limit, claim).await?;
        let with_queries = |DueRule { rule, due_at_ns }| {
            let evaluation = rule.settings.evaluation.as_ref()?;
            Some(DueEvaluation {
                due_at_ns,
                missed_intervals: missed_intervals(due_at_ns, evaluation.interval_ns(), now_ns),
                queries: DueQuery::all_of(evaluation, rule.source_id, now_ns),
                rule: Arc::clone(&rule),
            })
        };
        Ok(due.into_iter().filter_map(with_queries).collect())
    }

    /// Records a verdict. If the answer says that the rule fired, the trigger and its deliveries are durable; under a
    /// silence it has none.
    ///
    /// # Errors
    /// 404; 400 for a plain rule; 409 for a rule that is not active or not due; the 409 carries the rule's state.
    pub async fn record_verdict(
        &self,
        caller: &Caller,
        rule_id: ObjectId,
        outcome: Outcome,
        evidence: Option<Box<str>>,
    ) -> Result<Accepted, ServiceError> {
        let rule = self.rule(caller, rule_id)?;
        let facts = Arc::new(Facts::of(evidence.as_deref()));
        let mut fires = would_fire(&rule, outcome, self.now_ns());
        loop {
            let newest = if fires && facts.need_point() {
                Some(self.newest_point(caller, &rule).await?)
            } else {
                None
            };
            let posted = PostedVerdict {
                outcome,
                evidence: evidence.clone(),
                key_id: caller.actor_id(),
                verdict_id: self.next_id(),
                trigger_id: self.next_id(),
            };
            if let Some(accepted) = self
                .decide_verdict(rule_id, posted, Arc::clone(&facts), newest)
                .await?
            {
                return Ok(accepted);
            }
            fires = true;
        }
    }

    /// Decides a verdict with exclusive access to the rule. `None` if the rule would fire and `newest` is missing.
    async fn decide_verdict(
        &self,
        rule_id: ObjectId,
        posted: PostedVerdict,
        facts: Arc<Facts>,
        newest: Option<Option<NewestPoint>>,
    ) -> Result<Option<Accepted>, ServiceError> {
        let events = self.events();
        let decide = move |rule: Option<&Arc<Rule>>, now_ns: i64| {
            let rule = rule.ok_or_else(|| ServiceError::not_found("alert rule"))?;
            let consequences = |rule: &Rule| {
                if let Some(silence_id) = events.silence_of(rule, now_ns) {
                    return Some(Consequences {
                        silence_id: Some(silence_id),
                        ..Consequences::default()
                    });
                }
                if newest.is_none() && facts.need_point() {
                    return None;
                }
                let newest = newest.flatten();
                Some(Consequences {
                    deliveries: events.of_trigger(rule, &facts, newest.as_ref(), now_ns),
                    silence_id: None,
                })
            };
            let accepted = alerts::accept(rule, posted, now_ns, consequences, &events)
                .map_err(|refusal| refused(rule, refusal, now_ns))?;
            let with_answer = accepted.map(|(decision, accepted)| (decision, Some(accepted)));
            Ok(with_answer.unwrap_or_default())
        };
        self.alerts.change(rule_id, decide).await
    }
}

/// Whether a verdict would fire the rule in its current state. This is only a forecast: the rules' actor decides.
fn would_fire(rule: &Rule, outcome: Outcome, now_ns: i64) -> bool {
    let dwell_ns = rule.settings.evaluation.as_ref().map(Evaluation::dwell_ns);
    outcome == Outcome::Met
        && dwell_ns.is_some_and(|dwell_ns| state_at(&rule.runtime, dwell_ns, now_ns) == RuleState::Armed)
}

fn refused(rule: &Rule, refusal: Refusal, now_ns: i64) -> ServiceError {
    let conflict = |message: String| {
        ServiceError::conflict(message)
            .with_extra(standing_of(rule, now_ns).map(|it| ErrorExtra::Standing(Box::new(it))))
    };
    match refusal {
        Refusal::Plain => {
            ServiceError::validation("the rule has no evaluation block, so it takes no verdict")
        }
        Refusal::NotActive(status) => conflict(format!("the rule is {}, not active", status.name())),
        Refusal::NotDue => {
            conflict("the rule is not due: the verdict of this interval is recorded already".to_owned())
        }
    }
}

/// Who knows that the rule has fired; `None` since it was armed again.
pub fn acknowledgement_of(rule: &Rule, now_ns: i64) -> Option<&Acknowledgement> {
    let acknowledgement = rule.acknowledgement.as_ref()?;
    let is_armed = standing_of(rule, now_ns)?.state == RuleState::Armed;
    let is_of_this_trigger = Some(acknowledgement.at_ns) >= rule.runtime.last_triggered_at_ns;
    (!is_armed && is_of_this_trigger).then_some(acknowledgement)
}

/// Returns the current state of a rule with an evaluation block.
pub fn standing_of(rule: &Rule, now_ns: i64) -> Option<Standing> {
    let evaluation = rule.settings.evaluation.as_ref()?;
    Some(Standing {
        rule_id: rule.id,
        outcome: rule.runtime.last_outcome,
        state: state_at(&rule.runtime, evaluation.dwell_ns(), now_ns),
        runtime: rule.runtime,
        next_due_at_ns: (rule.settings.status == RuleStatus::Active)
            .then(|| due_at_ns(&rule.runtime, evaluation.interval_ns(), now_ns)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::fixture::rule;
    use crate::catalog::RuleRuntime;
    use crate::clock::SECOND_NS;

    #[test]
    fn an_acknowledgement_counts_until_the_rule_is_armed_again() {
        let fired = RuleRuntime {
            state: RuleState::Firing,
            last_triggered_at_ns: Some(100 * SECOND_NS),
            ..RuleRuntime::new(0)
        };
        let mut rule = rule(60.0, 300.0, fired);
        let is_acknowledged =
            |rule: &Rule, second: i64| acknowledgement_of(rule, second * SECOND_NS).is_some();
        assert!(!is_acknowledged(&rule, 110));
        rule.acknowledgement = Some(Acknowledgement {
            at_ns: 120 * SECOND_NS,
            by: rule.id,
            note: None,
        });
        assert!(is_acknowledged(&rule, 130), "while it fires");
        rule.runtime.state = RuleState::Clearing;
        rule.runtime.condition_cleared_at_ns = Some(200 * SECOND_NS);
        assert!(is_acknowledged(&rule, 499), "while it clears");
        assert!(!is_acknowledged(&rule, 500), "it is armed again");
        rule.runtime.state = RuleState::Firing;
        rule.runtime.condition_cleared_at_ns = None;
        rule.runtime.last_triggered_at_ns = Some(600 * SECOND_NS);
        assert!(!is_acknowledged(&rule, 601), "the next trigger is another one");
    }
}
