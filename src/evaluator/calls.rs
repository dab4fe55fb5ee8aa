//! The three endpoints an evaluator uses, each asked until the service has answered or patience ends.

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

/// The service itself gives up after 30 seconds.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);

/// Asks the service, patiently.
pub struct Calls {
    client: Client,
    pace: Pace,
    stop: Stop,
}

/// Why a call has no answer that could be used.
#[derive(Debug)]
pub enum Failure {
    /// The key does not open the endpoint: no call will go better.
    Refused(String),
    /// The service says no to this very request, and would again.
    Rejected(String),
    /// The service is there, but did not manage the request in all that time.
    Overloaded(String),
    /// The service could not be reached in all that time.
    Unreachable(String),
    /// The evaluator was told to stop while it waited to try again.
    Stopped,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueRule {
    pub rule_id: ObjectId,
    /// Its name, for the log.
    #[serde(default)]
    pub name: String,
    /// What kind of condition.
    pub kind: Option<String>,
    /// What the condition says.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// What it looks at.
    pub inputs: Vec<DueInput>,
}

/// One input of a rule that is due.
#[derive(Debug, Deserialize)]
pub struct DueInput {
    pub key: String,
    /// The field to read.
    pub field: String,
    /// The body to post, kept byte for byte.
    pub query: Box<RawValue>,
}

/// What became of a verdict.
#[derive(Debug)]
pub enum Posted {
    /// It is recorded; what the service says about it, null when that was lost.
    Recorded(Value),
    /// Another one was recorded before it.
    TooLate(String),
    RuleGone,
}

impl Calls {
    /// Calls by this client, which wait as `pace` says and cut their waits when told to stop.
    pub fn new(client: Client, pace: Pace, stop: Stop) -> Self {
        Self { client, pace, stop }
    }

    /// The rules that are due, claimed for so long. An entry that cannot be read is left to others.
    ///
    /// # Errors
    /// As [`Failure`] says.
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

    /// The answer to a query's body.
    ///
    /// # Errors
    /// As [`Failure`] says.
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

    /// Posts the one verdict of a rule. A repetition is safe: the service takes one, and says of a second what it
    /// holds already.
    ///
    /// # Errors
    /// As [`Failure`] says.
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
                // Ours, whose answer was lost; or another's that says the same.
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

    /// The answer, and whether the request was sent more than once for it. Tried again is what may go better: no
    /// connection, no answer, 429 and 5xx; `until` is when patience ends.
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
                // An attempt cut short by the end of patience says less than the one before.
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
            // Without random numbers everybody waits the longest time.
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
