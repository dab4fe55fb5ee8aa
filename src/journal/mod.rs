//! The write-ahead log of each shard: typed records, group commit, one total order of all changes. A server on one machine
//! has one shard, whose log is a directory.
//!
//! A record is made durable, then its completion callback runs on the journal's thread, in log order. The completion
//! either applies the change (a command to the catalog) or forwards it to the owner of the state (an ingest to its
//! bucket's actor). Nothing is acknowledged earlier. Each completion runs exactly once: a record that is refused when it
//! is submitted completes at once, on the caller's thread. Called by the service for commands and by the buckets' intakes
//! for ingests; knows neither HTTP nor the engine.

mod completion;
mod error;
mod local;
mod log;
mod queue;
mod record;
mod replay;
mod shard_queue;
mod stored;
mod sweeper;
mod writer;

use std::sync::Arc;
use std::time::Instant;

use crate::catalog::{CatalogHandle, Command};
use crate::error::ServiceError;

pub use completion::{Committed, Completion};
pub use error::JournalError;
pub use local::{LocalLog, LocalShard};
pub use log::{Group, LogSizes, NodeLog, THE_SHARD, Tail};
pub use record::{
    Answer, AnswerView, IdempotencyView, IngestRecord, IngestView, Record, RecordError, RecordSeries,
};
pub use replay::{Each, ReplayError, Replayed, ShardLog};
pub use stored::{StoredLog, StoredShard};
pub use writer::{Journal, JournalOptions, JournalStats, JournalWriter};

use queue::Queue;
use shard_queue::{Opening, TailSize};

/// Submits records to be made durable.
#[derive(Clone)]
pub struct JournalHandle {
    queue: Arc<Queue>,
    opening: Opening,
    tail: Arc<TailSize>,
    catalog: CatalogHandle,
}

impl JournalHandle {
    /// Makes the command durable, applies it to the catalog in log order, then returns.
    ///
    /// # Errors
    /// 503 when the log is poisoned, full or saturated.
    pub async fn commit(&self, command: Command) -> Result<(), ServiceError> {
        self.commit_then(command, || ()).await
    }

    /// Queues the command before the future is first polled. Once the command is durable and applied, `then` runs on
    /// the journal's thread, even if the caller no longer waits; what it owns, a lock guard for example, is kept until
    /// the command is applied or refused.
    ///
    /// # Errors
    /// 503 when the log is poisoned, full or saturated; `then` does not run.
    pub fn commit_then<T: Send + 'static>(
        &self,
        command: Command,
        then: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, ServiceError>> + Send + 'static {
        let (done, committed) = tokio::sync::oneshot::channel();
        self.submit_command(command, move |outcome| {
            // The caller may no longer wait; the command remains in effect.
            let _ = done.send(outcome.map(|()| then()));
        });
        async move {
            // The completion ends without an answer only if it panics.
            let outcome = committed.await.unwrap_or(Err(JournalError::Panicked));
            outcome.map_err(ServiceError::from)
        }
    }

    /// Queues a command. `then` runs exactly once: when the command is durable and applied, or when it is refused.
    pub fn submit_command(
        &self,
        command: Command,
        then: impl FnOnce(Result<(), JournalError>) + Send + 'static,
    ) {
        let record = match record::encode_command(&command) {
            Ok(record) => record,
            Err(error) => return then(Err(JournalError::Encoding(Arc::new(error)))),
        };
        let catalog = self.catalog.clone();
        self.queue.push(
            self.opening,
            record,
            Box::new(move |outcome| then(outcome.map(|_| catalog.apply(&command)))),
        );
    }

    /// Queues an ingest. `then` runs exactly once: when the ingest is durable, or when it is refused.
    pub fn submit_ingest(&self, record: IngestRecord, then: Completion) {
        self.queue.push(self.opening, record.bytes, then);
    }

    /// Whether the log is below its size limit. The writer may still refuse a record.
    ///
    /// # Errors
    /// 503 while the log waits for a checkpoint.
    pub fn admit(&self) -> Result<(), ServiceError> {
        Ok(self.tail.admit()?)
    }

    /// The data directory was removed or replaced: refuses all records until the server is restarted.
    pub fn directory_is_gone(&self) {
        self.queue.fail(self.opening, &JournalError::DirectoryGone);
    }

    /// Reports that requests are being refused because of overload. For a moment the journal prefers throughput over
    /// latency and waits for larger groups.
    pub fn note_overload(&self) {
        self.queue.note_overload(Instant::now());
    }

    /// Whether writes are accepted.
    ///
    /// # Errors
    /// The reason why they are not.
    pub fn readiness(&self) -> Result<(), String> {
        self.queue.readiness(self.opening)
    }

    /// Why the shard's log takes no more records until the shard is opened again: what became of a record is not known, or
    /// the shard has another owner.
    pub fn failure(&self) -> Option<JournalError> {
        self.queue.failure(self.opening)
    }

    /// Statistics of the log.
    pub fn stats(&self) -> JournalStats {
        self.queue.stats(self.opening)
    }
}

#[cfg(test)]
mod tests;
