//! Alert rules: parsing conditions, scheduling evaluations, and applying verdicts.
//!
//! Rules are evaluated by external evaluators, not here; this module keeps their state. Every change of a rule
//! (creation, patch, verdict, deletion) goes through one actor. It decides the change against the current rule, writes
//! it to the log, and accepts the next change of that rule once it is durable. Of two concurrent verdicts, one wins. The
//! actor also records what time alone brings about: the end of a dwell, and that nobody judges a rule.
//! Called by the service; knows neither HTTP nor how deliveries are made.

mod actor;
pub mod backtest;
pub mod condition;
#[cfg(test)]
pub mod fixture;
pub mod moment;
pub mod moments;
mod schedule;
pub mod transition;
mod verdict;

use std::sync::Arc;

use actix::{Actor, Addr, ArbiterHandle};
use tokio::sync::{Semaphore, oneshot};

use crate::catalog::{CatalogHandle, Command, Rule};
use crate::clock::Clock;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::JournalHandle;

use actor::{Done, Reply, RuleActor, RuleMessage};

pub use verdict::{Accepted, Consequences, PostedVerdict, Refusal, accept};

/// Maximum number of queued changes and polls. Above it, requests are answered with 503.
const WAITING_MAX: usize = 2_048;
/// Limit for the texts of the rules in one list of due rules, in bytes. The rule that exceeds it is the last one.
const DUE_BYTES_MAX: usize = 4 << 20;

/// The other modules that the actor uses.
pub struct Dependencies {
    /// Holds the rules.
    pub catalog: CatalogHandle,
    /// Makes changes durable.
    pub journal: JournalHandle,
    /// Wall clock and monotonic clock.
    pub clock: Arc<dyn Clock>,
    /// Called with the deliveries that a change owes, once they are durable.
    pub owed: Box<dyn Fn(Vec<ObjectId>) + Send>,
    /// Makes the deliveries of what time brings about.
    pub events: Box<dyn moment::RuleEvents>,
}

/// What a change writes, and the deliveries it causes. The default changes nothing.
#[derive(Debug, Default)]
pub struct Decision {
    /// `None` if the rule does not change.
    pub command: Option<Command>,
    /// The deliveries that the command creates.
    pub deliveries: Vec<ObjectId>,
}

pub struct DueRule {
    /// The rule in its current state.
    pub rule: Arc<Rule>,
    /// When it became due, UTC nanoseconds.
    pub due_at_ns: i64,
}

/// Handle of the rule actor, which ends with its last handle. Cheap to clone.
#[derive(Clone)]
pub struct Alerts(Arc<Inner>);

struct Inner {
    address: Addr<RuleActor>,
    waiting: Arc<Semaphore>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The actor has a timer, so that it would not end for lack of addresses.
        self.address.do_send(RuleMessage::End);
    }
}

impl Alerts {
    /// Starts the actor on this thread with the rules of the catalog.
    pub fn start(dependencies: Dependencies, thread: &ArbiterHandle) -> Self {
        let address = RuleActor::start_in_arbiter(thread, |_| RuleActor::new(dependencies));
        Self(Arc::new(Inner {
            address,
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        }))
    }

    /// Changes one rule, serialized with all other changes of it. `decide` gets the current rule (`None` if there is
    /// none) and the time. When this returns, the decision is durable and applied.
    ///
    /// # Errors
    /// The error of `decide`; 503 if the log refuses writes or the queue is full.
    pub async fn change<T: Send + 'static>(
        &self,
        rule_id: ObjectId,
        decide: impl FnOnce(Option<&Arc<Rule>>, i64) -> Result<(Decision, T), ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        self.request(|(reply, permit)| {
            let decide = move |rule: Option<&Arc<Rule>>, now_ns: i64| {
                // Its place in the queue is free once it is decided.
                let _permit = permit;
                let (decision, answer) = match decide(rule, now_ns) {
                    Ok((decision, answer)) => (decision, Ok(answer)),
                    Err(refusal) => (Decision::default(), Err(refusal)),
                };
                // If the caller is gone, the decision still takes effect.
                let done: Done = Box::new(move |outcome| {
                    let _ = reply.send(outcome.and(answer));
                });
                (decision, done)
            };
            let decide = Box::new(decide);
            RuleMessage::Change { rule_id, decide }
        })
        .await?
    }

    /// The unclaimed rules of an organization that are due, most overdue first. Claims them for `claim_seconds`, if
    /// given.
    ///
    /// # Errors
    /// 503 if the queue is full.
    pub async fn due(
        &self,
        organization_id: ObjectId,
        limit: usize,
        claim_seconds: Option<u32>,
    ) -> Result<(i64, Vec<DueRule>), ServiceError> {
        self.request(|reply| RuleMessage::Due {
            organization_id,
            limit,
            claim_seconds,
            reply,
        })
        .await
    }

    /// Number of rules that are due and unclaimed, over all organizations. The cost is linear in that number.
    ///
    /// # Errors
    /// 503 if the queue is full.
    pub async fn due_count(&self) -> Result<usize, ServiceError> {
        self.request(RuleMessage::CountDue).await
    }

    /// Number of queued changes and polls, and the limit.
    pub fn waiting(&self) -> (usize, usize) {
        (WAITING_MAX - self.0.waiting.available_permits(), WAITING_MAX)
    }

    /// Sends a message to the actor and waits for the reply. The message holds the permit until it is handled.
    async fn request<T>(&self, message: impl FnOnce(Reply<T>) -> RuleMessage) -> Result<T, ServiceError> {
        let permit = Arc::clone(&self.0.waiting).try_acquire_owned().map_err(|_| {
            ServiceError::unavailable("the server is saturated; send it again in a moment", 1)
        })?;
        let (reply, answer) = oneshot::channel();
        self.0.address.do_send(message((reply, permit)));
        answer
            .await
            .map_err(|_| ServiceError::unavailable("the server is stopping", 5))
    }
}
