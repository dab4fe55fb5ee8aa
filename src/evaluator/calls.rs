//! The three endpoints that an evaluator uses. Each call is retried until the service answers or a deadline passes.

use std::time::Duration;

use actix_web::web::Bytes;
use awc::http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::client::{Client, NoReply, Reply, Request};
use super::judge::{Outcome, Verdict};
use super::pace::Pace;
use super::stop::Stop;
use crate::ids::ObjectId;
use crate::random;

/// The service's own request timeout is 30 seconds.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);

/// Calls the service, with retries.
pub struct Calls {
    client: Client,
    pace: Pace,
    stop: Stop,
}

/// Why a call got no usable answer.
#[derive(Debug)]
pub enum Failure {
    /// The key gives no access to the endpoint; every other call would fail too.
    Refused(String),
    /// The service rejected this request; a retry would be rejected too.
    Rejected(String),
    /// The service was reachable but did not serve the request before the deadline.
    Overloaded(String),
    /// The service was not reachable before the deadline.
    Unreachable(String),
    /// The evaluator was stopped while it waited for a retry.
    Stopped,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueRule {
    pub rule_id: ObjectId,
    /// Name of the rule, for the log.
    #[serde(default)]
    pub name: String,
    /// The kind of condition.
    pub kind: Option<String>,
    /// The parameters of the condition.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The fields to evaluate.
    pub inputs: Vec<DueInput>,
}

/// One input of a rule that is due.
#[derive(Debug, Deserialize)]
pub struct DueInput {
    pub key: String,
    /// The field to evaluate.
    pub field: String,
    /// The query body to post, kept byte for byte.
    pub query: Box<RawValue>,
}

/// The result of posting a verdict.
#[derive(Debug)]
pub enum Posted {
    /// Recorded, with the service's answer; null if that answer was lost.
    Recorded(Value),
    /// Another verdict was recorded first.
    TooLate(String),
    RuleGone,
}

impl Calls {
    /// Calls through this client. `pace` determines the waits between retries; `stop` ends them early.
    pub fn new(client: Client, pace: Pace, stop: Stop) -> Self {
        Self { client, pace, stop }
    }

    /// The rules that are due, claimed for `claim`. An entry that cannot be parsed is skipped.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn due(
        &self,
        limit: usize,
        claim: Duration,
        until: Option<Instant>,
    ) -> Result<Vec<DueRule>, Failure> {
        #[derive(Deserialize)]
        struct List {
            evaluations: Vec<Box<RawValue>>,
        }
        let request = Request {
            method: Method::GET,
            path: format!("/api/evaluations/due?limit={limit}&claim={}", claim.as_secs()),
            body: None,
        };
        let (reply, _) = self.persist(&request, until).await?;
        if reply.status != StatusCode::OK {
            return Err(Failure::Rejected(reply.describe()));
        }
        let list: List = serde_json::from_slice(&reply.body)
            .map_err(|cause| Failure::Rejected(format!("the list of due rules cannot be read: {cause}")))?;
        let read = |entry: Box<RawValue>| match serde_json::from_str(entry.get()) {
            Ok(rule) => Some(rule),
            Err(error) => {
                tracing::error!(%error, "an entry of the due list cannot be read");
                None
            }
        };
        Ok(list.evaluations.into_iter().filter_map(read).collect())
    }

    /// Posts a query and returns the answer.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn query(&self, body: String, until: Instant) -> Result<Bytes, Failure> {
        let request = Request {
            method: Method::POST,
            path: "/api/data/query".to_owned(),
            body: Some(body.into()),
        };
        let (reply, _) = self.persist(&request, Some(until)).await?;
        if reply.status == StatusCode::OK {
            Ok(reply.body)
        } else {
            Err(Failure::Rejected(reply.describe()))
        }
    }

    /// Posts the verdict of a rule. Retries are safe: the service accepts one verdict, and answers a second one with
    /// what it has recorded.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn verdict(
        &self,
        rule: ObjectId,
        verdict: &Verdict,
        until: Instant,
    ) -> Result<Posted, Failure> {
        let body = json!({"outcome": verdict.outcome, "evidence": verdict.evidence});
        let request = Request {
            method: Method::POST,
            path: format!("/api/evaluations/{rule}/verdict"),
            body: Some(body.to_string().into()),
        };
        let (reply, repeated) = self.persist(&request, Some(until)).await?;
        match reply.status {
            StatusCode::OK => Ok(Posted::Recorded(reply.json()["evaluation"].take())),
            StatusCode::CONFLICT => {
                let recorded = Outcome::deserialize(&reply.json()["evaluation"]["outcome"]).ok();
                // Either ours, whose answer was lost, or another evaluator's with the same outcome.
                if repeated && recorded == Some(verdict.outcome) {
                    Ok(Posted::Recorded(Value::Null))
                } else {
                    Ok(Posted::TooLate(reply.describe()))
                }
            }
            StatusCode::NOT_FOUND => Ok(Posted::RuleGone),
            _ => Err(Failure::Rejected(reply.describe())),
        }
    }

    /// Returns the answer, and whether the request was sent more than once. Retries if there is no connection, no
    /// answer, or a status of 429 or 5xx, until the deadline `until`.
    async fn persist(&self, request: &Request, until: Option<Instant>) -> Result<(Reply, bool), Failure> {
        let mut failures = 0;
        let mut last = None;
        loop {
            let left = until.map_or(EXCHANGE_MAX, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Err(last.unwrap_or_else(|| Failure::Overloaded("the time for it is over".to_owned())));
            }
            let (failure, retry_after) = match self.client.exchange(request, left.min(EXCHANGE_MAX)).await {
                Ok(reply) => match reply.status.as_u16() {
                    401 | 403 => return Err(Failure::Refused(reply.describe())),
                    429 | 500..=599 => (Failure::Overloaded(reply.describe()), reply.retry_after),
                    _ => return Ok((reply, failures > 0)),
                },
                Err(NoReply::TooLarge) => {
                    return Err(Failure::Rejected(
                        "the answer is larger than 64 MiB: query groups, or a shorter window".to_owned(),
                    ));
                }
                // An attempt cut short by the deadline is less informative than the failure before it.
                Err(NoReply::Slow(within)) => match last.take() {
                    Some(before) if within < EXCHANGE_MAX => return Err(before),
                    _ => (
                        Failure::Overloaded(format!("no answer within {within:.1?}")),
                        None,
                    ),
                },
                Err(NoReply::Unreachable(cause)) => (Failure::Unreachable(cause), None),
            };
            failures += 1;
            // Without random numbers, use the longest wait.
            let chance = random::bytes().map_or(u64::MAX, u64::from_le_bytes);
            let wait = self.pace.wait(failures, retry_after, chance);
            if until.is_some_and(|until| Instant::now() + wait >= until) {
                return Err(failure);
            }
            tracing::warn!(path = %request.path, ?failure, failures, ?wait, "trying again");
            last = Some(failure);
            if self.stop.told_within(wait).await {
                return Err(Failure::Stopped);
            }
        }
    }
}
