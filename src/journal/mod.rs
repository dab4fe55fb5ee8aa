//! The one log of the server: typed records over `wal`, group commit, one order for everything that changes.
//!
//! A record is made durable, then its completion runs on the journal's thread, in log order: a completion applies
//! (a command to the catalog) or hands on to who applies (an ingest to its bucket's actor). Nothing is acknowledged
//! earlier. Called by the service for commands and by bucket actors for ingests; knows neither HTTP nor the engine.

mod error;
mod policy;
mod queue;
mod record;
mod writer;

use std::sync::Arc;
use std::time::Instant;

use crate::catalog::{CatalogHandle, Command};
use crate::error::ServiceError;

pub use error::JournalError;
pub use policy::RelaxedDisk;
pub use queue::{Committed, Completion};
pub use record::{Answer, AnswerView, IdempotencyView, IngestRecord, IngestView, Record, RecordError};
pub use writer::{JournalOptions, JournalStats, JournalWriter};

use queue::Queue;

/// Takes records and makes them durable.
#[derive(Clone)]
pub struct JournalHandle {
    queue: Arc<Queue>,
    catalog: CatalogHandle,
}

impl JournalHandle {
    /// Makes the command durable, has it applied to the catalog in log order, then returns.
    ///
    /// # Errors
    /// 503 when the log is poisoned, full or saturated.
    pub async fn commit(&self, command: Command) -> Result<(), ServiceError> {
        self.submit_holding(command, ())?.await
    }

    /// Queues the command with what must be held until it is applied or refused, a lock for example: that stays with
    /// the record, whether or not the asker still waits, and comes back to one who does.
    ///
    /// # Errors
    /// 503 when the log is poisoned, full or saturated.
    pub fn submit_holding<H: Send + 'static>(
        &self,
        command: Command,
        held: H,
    ) -> Result<impl Future<Output = Result<H, ServiceError>> + Send + 'static, ServiceError> {
        let (done, committed) = tokio::sync::oneshot::channel();
        self.submit_command(command, move |outcome| {
            // Whoever asked may have gone; the command stands all the same.
            let _ = done.send(outcome.map(|()| held));
        })?;
        Ok(async move {
            match committed.await {
                Ok(outcome) => Ok(outcome?),
                // The completion ends without an answer only by a panic.
                Err(_) => Err(JournalError::Panicked.into()),
            }
        })
    }

    /// The same for callers that order commands against their own records: `then` runs on the journal's thread once
    /// the command is durable and applied.
    ///
    /// # Errors
    /// 503 when the log is poisoned, full or saturated; `then` does not run.
    pub fn submit_command(
        &self,
        command: Command,
        then: impl FnOnce(Result<(), JournalError>) + Send + 'static,
    ) -> Result<(), ServiceError> {
        let record = record::encode_command(&command).map_err(ServiceError::internal)?;
        let catalog = self.catalog.clone();
        let completion: Completion = Box::new(move |outcome| {
            then(outcome.map(|_| catalog.apply(&command)));
        });
        Ok(self.queue.push(record, completion)?)
    }

    /// Queues an ingest; `then` runs on the journal's thread.
    ///
    /// # Errors
    /// When the log is poisoned, closed or saturated; `then` does not run.
    pub fn submit_ingest(&self, record: IngestRecord, then: Completion) -> Result<(), JournalError> {
        self.queue.push(record.into_bytes(), then)
    }

    /// Whether the log is short enough for more; its writer may refuse all the same.
    ///
    /// # Errors
    /// 503 while it waits for a checkpoint.
    pub fn admit(&self) -> Result<(), ServiceError> {
        Ok(self.queue.admit()?)
    }

    /// The data directory was removed or replaced: nothing is taken any more, until the server is started again.
    pub fn directory_is_gone(&self) {
        self.queue.fail(&JournalError::DirectoryGone);
    }

    /// Requests are being refused for want of room: for a moment, that much is made durable at a time counts for more than
    /// that it is soon.
    pub fn press(&self) {
        self.queue.press(Instant::now());
    }

    /// Whether writes can be taken.
    ///
    /// # Errors
    /// Why not.
    pub fn readiness(&self) -> Result<(), String> {
        if self.queue.begin_probe() {
            // Who is not ready is sent no writes, and would never find out by them that there is room again.
            let queue = Arc::clone(&self.queue);
            let probe = move |log: &mut wal::Log| queue.probed(log.rotate().is_ok());
            // Refused only when the journal has ended, which the answer below tells.
            let _ = self.queue.control(Box::new(probe));
        }
        self.queue.readiness()
    }

    /// Counters and sizes of the log.
    pub fn stats(&self) -> JournalStats {
        self.queue.stats()
    }
}

#[cfg(test)]
mod tests;
