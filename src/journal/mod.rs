//! The server's single write-ahead log: typed records on top of `wal`, group commit, one total order of all changes.
//!
//! A record is made durable, then its completion callback runs on the journal's thread, in log order. The completion
//! either applies the change (a command to the catalog) or forwards it to the owner of the state (an ingest to its
//! bucket's actor). Nothing is acknowledged earlier. Called by the service for commands and by bucket actors for
//! ingests; knows neither HTTP nor the engine.

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

/// Submits records to be made durable.
#[derive(Clone)]
pub struct JournalHandle {
    queue: Arc<Queue>,
    catalog: CatalogHandle,
}

impl JournalHandle {
    /// Makes the command durable, applies it to the catalog in log order, then returns.
    ///
    /// # Errors
    /// 503 when the log is poisoned, full or saturated.
    pub async fn commit(&self, command: Command) -> Result<(), ServiceError> {
        self.submit_holding(command, ())?.await
    }

    /// Queues the command together with `held`, a lock guard for example, which must be held until the command is
    /// applied or refused. It stays with the record even if the caller stops waiting, and is returned to a caller that
    /// waits.
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
            // The caller may no longer wait; the command remains in effect.
            let _ = done.send(outcome.map(|()| held));
        })?;
        Ok(async move {
            match committed.await {
                Ok(outcome) => Ok(outcome?),
                // The completion ends without an answer only if it panics.
                Err(_) => Err(JournalError::Panicked.into()),
            }
        })
    }

    /// Like [`JournalHandle::commit`], for callers that order commands against their own records: `then` runs on the
    /// journal's thread once the command is durable and applied.
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
    /// If the log is poisoned, closed or saturated; `then` does not run.
    pub fn submit_ingest(&self, record: IngestRecord, then: Completion) -> Result<(), JournalError> {
        self.queue.push(record.into_bytes(), then)
    }

    /// Whether the log is below its size limit. The writer may still refuse a record.
    ///
    /// # Errors
    /// 503 while the log waits for a checkpoint.
    pub fn admit(&self) -> Result<(), ServiceError> {
        Ok(self.queue.admit()?)
    }

    /// The data directory was removed or replaced: refuses all records until the server is restarted.
    pub fn directory_is_gone(&self) {
        self.queue.fail(&JournalError::DirectoryGone);
    }

    /// Reports that requests are being refused because of overload. For a moment the journal prefers throughput over
    /// latency and waits for larger groups.
    pub fn press(&self) {
        self.queue.press(Instant::now());
    }

    /// Whether writes are accepted.
    ///
    /// # Errors
    /// The reason why they are not.
    pub fn readiness(&self) -> Result<(), String> {
        if self.queue.begin_probe() {
            // A server that is not ready receives no writes, so no write would discover that there is space again.
            let queue = Arc::clone(&self.queue);
            let probe = move |log: &mut wal::Log| queue.probed(log.rotate().is_ok());
            // Fails only if the journal has ended, which the readiness below reports.
            let _ = self.queue.control(Box::new(probe));
        }
        self.queue.readiness()
    }

    /// Statistics of the log.
    pub fn stats(&self) -> JournalStats {
        self.queue.stats()
    }
}

#[cfg(test)]
mod tests;
