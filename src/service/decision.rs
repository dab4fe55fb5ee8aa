//! Decisions: checks made under a lock, together with the commit of their result.
//!
//! A request may be dropped (the client disconnects, a timeout) while its command still waits for the log. So the lock
//! belongs to the decision and is held until the command is applied or refused; the next decision on the same subject
//! waits for that. Nothing else in `service` has access to the journal, so a command can only be committed by a
//! decision, or as something counted or observed, which needs no check.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use actix::System;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::catalog::Command;
use crate::error::ServiceError;
use crate::journal::{JournalError, JournalHandle, JournalStats};

/// Enough that two busy organizations rarely share a stripe; each takes a few dozen bytes.
const STRIPES: usize = 64;

/// Serializes decisions: changes of one organization, or of one email address, are decided one at a time.
pub(super) struct Decisions {
    /// Async mutexes, because they are held across an await of the journal. Never lock two.
    stripes: [Arc<Mutex<()>>; STRIPES],
    hasher: RandomState,
    journal: JournalHandle,
}

/// The exclusive right to decide, held until the decision is durable or refused.
#[must_use = "what is decided without one may be decided twice"]
pub(super) struct Decision {
    guard: OwnedMutexGuard<()>,
    journal: JournalHandle,
}

/// The decision is applied, and no later one has been made yet. Hold it to read the result.
#[must_use = "what is read after it is dropped may be the work of somebody else"]
pub(super) struct Settled {
    _guard: Arc<OwnedMutexGuard<()>>,
}

impl Decisions {
    pub fn new(journal: JournalHandle) -> Self {
        Self {
            stripes: std::array::from_fn(|_| Arc::default()),
            hasher: RandomState::new(),
            journal,
        }
    }

    /// Waits for all earlier decisions about this subject.
    pub async fn begin(&self, subject: impl Hash) -> Decision {
        let stripe = &self.stripes[self.hasher.hash_one(subject) as usize % STRIPES];
        Decision {
            guard: Arc::clone(stripe).lock_owned().await,
            journal: self.journal.clone(),
        }
    }

    /// Makes what was counted or observed durable, which needs no check.
    pub async fn commit_observed(&self, command: Command) -> Result<(), ServiceError> {
        self.journal.commit(command).await
    }

    /// Whether the log accepts writes; otherwise the reason.
    pub fn readiness(&self) -> Result<(), String> {
        self.journal.readiness()
    }

    /// Stops all decisions, because the data directory was removed or replaced.
    pub fn directory_is_gone(&self) {
        self.journal.directory_is_gone();
    }

    /// Why the log takes no more records until the shard is opened again.
    pub fn log_failure(&self) -> Option<JournalError> {
        self.journal.failure()
    }

    /// Statistics of the log.
    pub fn journal_stats(&self) -> JournalStats {
        self.journal.stats()
    }
}

impl Decision {
    /// Makes the decision durable.
    ///
    /// # Errors
    /// 503 if the log refuses writes.
    pub async fn commit(self, command: Command) -> Result<Settled, ServiceError> {
        self.commit_all(vec![command]).await
    }

    /// Commits several commands that do not depend on each other. All are submitted before the first await, so a
    /// request that is dropped in between does not leave a partial result.
    ///
    /// # Errors
    /// 503 if the log refuses one of them. The others may be in the log.
    pub async fn commit_all(self, commands: Vec<Command>) -> Result<Settled, ServiceError> {
        let guard = Arc::new(self.guard);
        let submitted: Vec<_> = commands
            .into_iter()
            .map(|command| {
                let held = Arc::clone(&guard);
                self.journal.commit_then(command, move || drop(held))
            })
            .collect();
        for durable in submitted {
            durable.await?;
        }
        Ok(Settled { _guard: guard })
    }

    /// Like [`Decision::commit`]. `then` runs as soon as the command is durable, even if the caller is gone.
    ///
    /// # Errors
    /// 503 if the log refuses writes; `then` does not run.
    pub async fn commit_then(
        self,
        command: Command,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<Settled, ServiceError> {
        let guard = Arc::new(self.guard);
        let committed = self.journal.commit_then(command, move || {
            then();
            Settled { _guard: guard }
        });
        committed.await
    }

    /// Runs work in another module that commits the decision, and returns the right to decide afterwards. The work runs
    /// to completion even if the caller is gone, on the main arbiter, which stops last.
    ///
    /// # Errors
    /// The error of the work; 503 if the server stops.
    pub async fn carry_out<T: Send + 'static>(
        self,
        work: impl Future<Output = Result<T, ServiceError>> + Send + 'static,
    ) -> Result<(T, Decision), ServiceError> {
        let (done, carried_out) = oneshot::channel();
        System::current().arbiter().spawn(async move {
            let outcome = work.await;
            // The caller may be gone.
            let _ = done.send(outcome.map(|carried_out| (carried_out, self)));
        });
        carried_out
            .await
            .unwrap_or_else(|_| Err(JournalError::Closed.into()))
    }
}
