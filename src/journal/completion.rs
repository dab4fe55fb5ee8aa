//! What is called when a record is durable, or refused.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wal::Sequence;

use super::error::JournalError;

/// A durable record.
pub struct Committed {
    /// Sequence of the record in the log.
    pub sequence: Sequence,
    /// The record's bytes, as submitted.
    pub record: Vec<u8>,
}

/// Runs on the journal's thread, in log order; a refused record's runs on the submitter's thread. It must not block or
/// panic.
pub type Completion = Box<dyn FnOnce(Result<Committed, JournalError>) + Send>;

/// Runs a completion. A panic in it is logged and does not affect the others. Returns whether it did not panic.
pub(super) fn complete(completion: Completion, outcome: Result<Committed, JournalError>) -> bool {
    let completed = catch_unwind(AssertUnwindSafe(|| completion(outcome)));
    if completed.is_err() {
        tracing::error!("BUG: a record's completion panicked");
    }
    completed.is_ok()
}
