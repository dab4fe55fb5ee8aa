//! Evaluates one rule. Only a rejected key affects other rules.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::EvaluatorError;
use crate::api::{Api, DueInput, DueRule, Failure, Posted};
use crate::condition::{self, Condition, Verdict};
use crate::window::evaluate_input;

/// Reads the rule's windows, evaluates them and posts the verdict, all within the claim taken at `since`, because
/// another evaluator may get the rule afterwards. Reading may use half of that time, which leaves time to post a
/// failure.
///
/// # Errors
/// The service rejects the key.
pub async fn evaluate(
    api: &Api,
    due: DueRule,
    since: Instant,
    claim: Duration,
) -> Result<(), EvaluatorError> {
    let rule = due.rule_id.clone();
    let kind = due.kind.as_deref();
    let found = evaluate_inputs(api, kind, &due.parameters, due.inputs, since + claim / 2);
    let verdict = match found.await {
        Ok(verdict) => verdict,
        Err(Failure::Refused(message)) => return Err(EvaluatorError::Refused(message)),
        Err(Failure::Stopped) => {
            tracing::info!("no verdict: stopping; the rule stays due");
            return Ok(());
        }
        Err(Failure::Unreachable(cause) | Failure::Rejected(cause) | Failure::Overloaded(cause)) => {
            tracing::warn!(
                cause,
                "no verdict: the service is not reachable; the rule stays due"
            );
            return Ok(());
        }
    };
    let outcome = verdict.outcome;
    match api.verdict(&rule, &verdict, since + claim).await {
        Ok(Posted::Recorded(evaluation)) => {
            let triggered = evaluation["triggered"] == true;
            tracing::info!(%outcome, triggered, "verdict recorded");
        }
        Ok(Posted::TooLate(answer)) => tracing::info!(%outcome, answer, "verdict not needed"),
        Ok(Posted::RuleGone) => tracing::info!("verdict not needed: the rule is gone"),
        Err(Failure::Refused(message)) => return Err(EvaluatorError::Refused(message)),
        Err(failure) => tracing::error!(%outcome, ?failure, "verdict not recorded; the rule stays due"),
    }
    Ok(())
}

/// Reads the windows of all inputs and evaluates them.
///
/// # Errors
/// The key is rejected, the service is not reachable, or the evaluator was stopped.
pub async fn evaluate_inputs(
    api: &Api,
    kind: Option<&str>,
    parameters: &Map<String, Value>,
    inputs: Vec<DueInput>,
    until: Instant,
) -> Result<Verdict, Failure> {
    let condition = match Condition::parse(kind, parameters) {
        Ok(condition) => condition,
        Err(reason) => return Ok(condition::inconclusive(kind, &reason)),
    };
    let mut findings = Vec::with_capacity(inputs.len());
    for input in inputs {
        findings.push(evaluate_input(api, &condition, input, until).await?);
    }
    Ok(condition::verdict(kind, condition.inputs, &findings))
}
