//! Decisions: what is checked under a lock and then made durable.
//!
//! A request may be gone (its client hung up, its time is over) while the command it decided still waits for the log.
//! Its lock therefore belongs to the decision and travels with the command: whoever decides the same next waits until
//! the command is applied or refused. Nothing else in `service` holds the journal, so a command can be committed only
//! by a decision, or as a count that nothing was checked for.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use actix::System;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::catalog::Command;
use crate::error::ServiceError;
use crate::journal::{JournalError, JournalHandle, JournalStats};

/// Enough that two busy organizations rarely share one; each stripe costs a few dozen bytes.
const STRIPES: usize = 64;

/// Where decisions begin: changes of one organization, or of one email address, are decided one at a time.
pub(super) struct Decisions {
    /// Held over an await of the journal: hence async mutexes. Never take two.
    stripes: [Arc<Mutex<()>>; STRIPES],
    hasher: RandomState,
    journal: JournalHandle,
}

/// The right to decide, until what was decided is durable or refused.
#[must_use = "what is decided without one may be decided twice"]
pub(super) struct Decision {
    guard: OwnedMutexGuard<()>,
    journal: JournalHandle,
}

/// What was decided is applied, and nobody has decided anything since: for reading what came of it.
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

    /// Waits for all that was decided about this subject before.
    pub async fn begin(&self, subject: impl Hash) -> Decision {
        let stripe = &self.stripes[self.hasher.hash_one(subject) as usize % STRIPES];
        Decision {
            guard: Arc::clone(stripe).lock_owned().await,
            journal: self.journal.clone(),
        }
    }

    /// Makes a count durable, which nothing was checked for.
    pub async fn commit_count(&self, command: Command) -> Result<(), ServiceError> {
        self.journal.commit(command).await
    }

    /// Whether the log takes writes; else why not.
    pub fn readiness(&self) -> Result<(), String> {
        self.journal.readiness()
    }

    /// The data directory was removed or replaced: nothing is decided any more.
    pub fn directory_is_gone(&self) {
        self.journal.directory_is_gone();
    }

    /// Counters and sizes of the log.
    pub fn journal_stats(&self) -> JournalStats {
        self.journal.stats()
    }
}

impl Decision {
    /// Makes what was decided durable.
    ///
    /// # Errors
    /// 503 when the log takes no writes.
    pub async fn commit(self, command: Command) -> Result<Settled, ServiceError> {
        self.commit_all(vec![command]).await
    }

    /// The same for several commands. All are in the log's queue before the first wait, so that going away in between
    /// leaves nothing half done.
    ///
    /// # Errors
    /// 503 when the log takes no writes: it has the commands up to the first that it refused.
    pub async fn commit_all(self, commands: Vec<Command>) -> Result<Settled, ServiceError> {
        let mut settled = Arc::new(self.guard);
        let submitted: Result<Vec<_>, _> = commands
            .into_iter()
            .map(|command| self.journal.submit_holding(command, Arc::clone(&settled)))
            .collect();
        for durable in submitted? {
            settled = durable.await?;
        }
        Ok(Settled { _guard: settled })
    }

    /// The same with something to do as soon as the command is durable, whether or not the asker still waits.
    ///
    /// # Errors
    /// 503 when the log takes no writes; `then` does not run.
    pub async fn commit_then(
        self,
        command: Command,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<Settled, ServiceError> {
        let (done, committed) = oneshot::channel();
        let guard = Arc::new(self.guard);
        self.journal.submit_command(command, move |outcome| {
            let outcome = outcome.map(|()| {
                then();
                Settled { _guard: guard }
            });
            // Whoever asked may have gone.
            let _ = done.send(outcome);
        })?;
        match committed.await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(JournalError::Panicked.into()),
        }
    }

    /// Has another room commit what was decided, and gives the right to decide back behind it. The work goes on to its
    /// end whether or not the asker still waits: on the thread that ends last.
    ///
    /// # Errors
    /// What the work fails with; 503 when the server stops.
    pub async fn carry_out<T: Send + 'static>(
        self,
        work: impl Future<Output = Result<T, ServiceError>> + Send + 'static,
    ) -> Result<(T, Decision), ServiceError> {
        let (done, carried_out) = oneshot::channel();
        System::current().arbiter().spawn(async move {
            let outcome = work.await;
            // Whoever asked may have gone.
            let _ = done.send(outcome.map(|carried_out| (carried_out, self)));
        });
        carried_out
            .await
            .unwrap_or_else(|_| Err(JournalError::Closed.into()))
    }
}
