//! Evaluates one due rule. Only a rejected key affects other rules.

use std::time::Duration;

use tokio::time::Instant;

use super::calls::{Calls, DueRule, Failure, Posted};
use super::judge::{self, Condition, Verdict};
use super::window::{Interruption, judge_input};

/// The service rejected the key.
#[derive(Debug)]
pub struct Refused(pub String);

/// Reads the rule's windows, evaluates them and posts the verdict, all within the claim taken at `since`, because
/// another evaluator may get the rule afterwards. Reading may use half of that time, which leaves time to post a
/// failure.
///
/// # Errors
/// The service rejects the key.
pub async fn evaluate(calls: &Calls, due: DueRule, since: Instant, claim: Duration) -> Result<(), Refused> {
    let rule = due.rule_id;
    let verdict = match find(calls, due, since + claim / 2).await {
        Ok(verdict) => verdict,
        Err(Interruption::Refused(message)) => return Err(Refused(message)),
        Err(Interruption::Unreachable(cause)) => {
            tracing::warn!(
                cause,
                "no verdict: the service is not reachable; the rule stays due"
            );
            return Ok(());
        }
        Err(Interruption::Stopped) => {
            tracing::info!("no verdict: stopping; the rule stays due");
            return Ok(());
        }
    };
    let outcome = verdict.outcome;
    match calls.verdict(rule, &verdict, since + claim).await {
        Ok(Posted::Recorded(evaluation)) => {
            let triggered = evaluation["triggered"] == true;
            tracing::info!(%outcome, triggered, "verdict recorded");
        }
        Ok(Posted::TooLate(answer)) => tracing::info!(%outcome, answer, "verdict not needed"),
        Ok(Posted::RuleGone) => tracing::info!("verdict not needed: the rule is gone"),
        Err(Failure::Refused(message)) => return Err(Refused(message)),
        Err(failure) => tracing::error!(%outcome, ?failure, "verdict not recorded; the rule stays due"),
    }
    Ok(())
}

async fn find(calls: &Calls, due: DueRule, until: Instant) -> Result<Verdict, Interruption> {
    let kind = due.kind.as_deref();
    let condition = match Condition::read(kind, &due.parameters) {
        Ok(condition) => condition,
        Err(reason) => return Ok(judge::inconclusive(kind, &reason)),
    };
    let mut findings = Vec::with_capacity(due.inputs.len());
    for input in due.inputs {
        findings.push(judge_input(calls, &condition, input, until).await?);
    }
    Ok(judge::verdict(kind, condition.inputs, &findings))
}
