//! The endpoints that an evaluator uses. Each request is retried until the service answers or a deadline passes.

use std::fmt;
use std::time::Duration;

use awc::http::{Method, StatusCode};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::client::{Client, NoReply, Reply};
use crate::condition::{Outcome, Verdict};

/// The service's own request timeout is 30 seconds.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);

/// Calls the service, with retries.
pub struct Api {
    client: Client,
    backoff: Backoff,
    stop: CancellationToken,
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

/// An id of 24 lowercase hex digits. Anything else is refused, because the id becomes part of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct RuleId(String);

impl TryFrom<String> for RuleId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == 24 && text.bytes().all(is_hex);
        is_id
            .then_some(Self(text))
            .ok_or("must be an id of 24 lowercase hex characters")
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueRule {
    pub rule_id: RuleId,
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

impl Api {
    /// Calls through this client. `backoff` determines the delays between retries; `stop` ends them early.
    pub fn new(client: Client, backoff: Backoff, stop: CancellationToken) -> Self {
        Self {
            client,
            backoff,
            stop,
        }
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
        let path = format!("/api/evaluations/due?limit={limit}&claim={}", claim.as_secs());
        let (reply, _) = self.send(Method::GET, path, None, until).await?;
        if reply.status != StatusCode::OK {
            return Err(Failure::Rejected(reply.describe()));
        }
        let list: List = serde_json::from_slice(&reply.body)
            .map_err(|cause| Failure::Rejected(format!("the list of due rules cannot be read: {cause}")))?;
        let parse = |entry: Box<RawValue>| {
            serde_json::from_str(entry.get())
                .inspect_err(|error| tracing::error!(%error, "an entry of the due list cannot be read"))
                .ok()
        };
        Ok(list.evaluations.into_iter().filter_map(parse).collect())
    }

    /// Posts a query and returns the answer.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn query(&self, body: String, until: Instant) -> Result<Bytes, Failure> {
        self.post("/api/data/query".to_owned(), body, until).await
    }

    /// Posts a request that may be repeated, and returns the answer.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn post(&self, path: String, body: String, until: Instant) -> Result<Bytes, Failure> {
        let (reply, _) = self.send(Method::POST, path, Some(body), Some(until)).await?;
        if reply.status != StatusCode::OK {
            return Err(Failure::Rejected(reply.describe()));
        }
        Ok(reply.body)
    }

    /// Posts the verdict of a rule. Retries are safe: the service accepts one verdict, and answers a second one with
    /// what it has recorded.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn verdict(&self, rule: &RuleId, verdict: &Verdict, until: Instant) -> Result<Posted, Failure> {
        let path = format!("/api/evaluations/{rule}/verdict");
        let body = json!({"outcome": verdict.outcome, "evidence": verdict.evidence}).to_string();
        let (reply, retried) = self.send(Method::POST, path, Some(body), Some(until)).await?;
        match reply.status {
            StatusCode::OK => Ok(Posted::Recorded(reply.json()["evaluation"].take())),
            StatusCode::CONFLICT => {
                let recorded = Outcome::deserialize(&reply.json()["evaluation"]["outcome"]).ok();
                // Either ours, whose answer was lost, or another evaluator's with the same outcome.
                if retried && recorded == Some(verdict.outcome) {
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
    async fn send(
        &self,
        method: Method,
        path: String,
        body: Option<String>,
        until: Option<Instant>,
    ) -> Result<(Reply, bool), Failure> {
        let body = body.map(Bytes::from);
        let mut failures = 0;
        let mut last = None;
        loop {
            let left = until.map_or(EXCHANGE_MAX, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Err(last.unwrap_or_else(|| Failure::Overloaded("the time for it is over".to_owned())));
            }
            let within = left.min(EXCHANGE_MAX);
            let exchange = self.client.exchange(&method, &path, body.clone(), within);
            let (failure, retry_after) = match exchange.await {
                Ok(reply) => match reply.status.as_u16() {
                    401 | 403 => return Err(Failure::Refused(reply.describe())),
                    429 | 500..=599 => (Failure::Overloaded(reply.describe()), reply.retry_after),
                    _ => return Ok((reply, failures > 0)),
                },
                Err(error @ NoReply::TooLarge) => {
                    return Err(Failure::Rejected(format!(
                        "{error}: query groups, or a shorter window"
                    )));
                }
                Err(error @ NoReply::Slow(_)) => match last.take() {
                    // An attempt cut short by the deadline is less informative than the failure before it.
                    Some(before) if within < EXCHANGE_MAX => return Err(before),
                    _ => (Failure::Overloaded(error.to_string()), None),
                },
                Err(NoReply::Unreachable(cause)) => (Failure::Unreachable(cause), None),
            };
            failures += 1;
            let wait = self.backoff.delay(failures, retry_after, fastrand::f64());
            if until.is_some_and(|until| Instant::now() + wait >= until) {
                return Err(failure);
            }
            tracing::warn!(path, ?failure, failures, ?wait, "trying again");
            last = Some(failure);
            let sleep = tokio::time::sleep(wait);
            if self.stop.run_until_cancelled(sleep).await.is_none() {
                return Err(Failure::Stopped);
            }
        }
    }
}
