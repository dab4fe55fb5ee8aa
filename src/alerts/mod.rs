//! Alert rules: what their conditions say, which are due, and what a verdict does.
//!
//! No rule is judged here: external evaluators do. The room keeps their state. Every change of a rule (creation,
//! patch, verdict, deletion) goes through one actor, which decides it against the rule as it is, has it logged, and
//! lets the next one in when it is durable: two verdicts meet in its mailbox, and one of them wins. Called by the
//! service; knows neither HTTP nor how a delivery is made.

mod actor;
pub mod condition;
mod schedule;
pub mod transition;
mod verdict;

use std::sync::Arc;

use actix::{Actor, Addr, Arbiter};
use tokio::sync::{Semaphore, oneshot};

use crate::catalog::{CatalogHandle, Command, Rule};
use crate::clock::Clock;
use crate::error::ServiceError;
use crate::ids::ObjectId;
use crate::journal::JournalHandle;

use actor::{Change, CountDue, Due, RuleActor, Step};

pub use verdict::{Judged, Judgement, Refusal, judge};

/// Changes and polls that may wait at once: more than that are answered 503.
const WAITING_MAX: usize = 2_048;
/// Bytes of the texts of rules that are listed as due at once: the rule that goes past it is the last one.
const DUE_BYTES_MAX: usize = 4 << 20;

/// The rooms that the actor works with.
pub struct Neighbours {
    /// What exists.
    pub catalog: CatalogHandle,
    /// Makes changes durable.
    pub journal: JournalHandle,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Told the deliveries that a change owes, once they are durable.
    pub owed: Box<dyn Fn(Vec<ObjectId>) + Send>,
}

/// What a change is to write, and whom it owes something.
pub struct Decision {
    /// Nothing to write when the rule is as it should be already.
    pub command: Option<Command>,
    /// Deliveries of the command.
    pub deliveries: Vec<ObjectId>,
}

impl Decision {
    /// The rule stays as it is.
    pub const fn nothing() -> Self {
        Self {
            command: None,
            deliveries: Vec::new(),
        }
    }
}

pub struct DueRule {
    /// As it stands.
    pub rule: Arc<Rule>,
    /// Since when, in UTC nanoseconds.
    pub due_at_ns: i64,
}

/// The actor's handle.
#[derive(Clone)]
pub struct Alerts {
    address: Addr<RuleActor>,
    waiting: Arc<Semaphore>,
}

impl Alerts {
    /// Starts the actor on a thread of its own with the rules of the catalog. Must be called within an actix system.
    pub fn start(neighbours: Neighbours) -> Self {
        let address = RuleActor::start_in_arbiter(&Arbiter::new().handle(), |_| RuleActor::new(neighbours));
        Self {
            address,
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }

    /// Changes one rule, in order with all other changes of it: `decide` sees the rule as it is then (`None` when there
    /// is none) and the moment, and what it decided is durable and applied when this returns.
    ///
    /// # Errors
    /// What `decide` refuses with; 503 when the log takes no writes or too much waits.
    pub async fn change<T: Send + 'static>(
        &self,
        rule_id: ObjectId,
        decide: impl FnOnce(Option<&Arc<Rule>>, i64) -> Result<(Decision, T), ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let waits = self.wait()?;
        let (reply, answer) = oneshot::channel();
        // Whoever asked may have gone; what was decided stands all the same.
        let decide = move |rule: Option<&Arc<Rule>>, now_ns: i64| match decide(rule, now_ns) {
            Ok((decision, answer)) => Step {
                decision,
                done: Box::new(move |outcome: Result<(), ServiceError>| {
                    let _ = reply.send(outcome.map(|()| answer));
                }),
            },
            Err(refusal) => Step {
                decision: Decision::nothing(),
                done: Box::new(move |_| {
                    let _ = reply.send(Err(refusal));
                }),
            },
        };
        self.address.do_send(Change {
            rule_id,
            decide: Box::new(decide),
            _waits: waits,
        });
        answer.await.map_err(|_| stopping())?
    }

    /// The rules of an organization that are due and free, most overdue first; claimed for so many seconds, if any.
    ///
    /// # Errors
    /// 503 when too much waits.
    pub async fn due(
        &self,
        organization_id: ObjectId,
        limit: usize,
        claim_seconds: Option<u32>,
    ) -> Result<(i64, Vec<DueRule>), ServiceError> {
        let waits = self.wait()?;
        let (reply, answer) = oneshot::channel();
        self.address.do_send(Due {
            organization_id,
            limit,
            claim_seconds,
            reply,
            _waits: waits,
        });
        answer.await.map_err(|_| stopping())
    }

    /// How many rules are due and free, over all organizations; the cost grows with them.
    ///
    /// # Errors
    /// 503 when too much waits.
    pub async fn due_count(&self) -> Result<usize, ServiceError> {
        let waits = self.wait()?;
        let (reply, answer) = oneshot::channel();
        self.address.do_send(CountDue { reply, _waits: waits });
        answer.await.map_err(|_| stopping())
    }

    /// Changes and polls that wait, and how many may.
    pub fn waiting(&self) -> (usize, usize) {
        (WAITING_MAX - self.waiting.available_permits(), WAITING_MAX)
    }

    fn wait(&self) -> Result<tokio::sync::OwnedSemaphorePermit, ServiceError> {
        Arc::clone(&self.waiting)
            .try_acquire_owned()
            .map_err(|_| ServiceError::unavailable("the server is saturated; send it again in a moment", 1))
    }
}

fn stopping() -> ServiceError {
    ServiceError::unavailable("the server is stopping", 5)
}
