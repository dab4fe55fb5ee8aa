//! Why a record was not made durable.

use std::sync::Arc;

use thiserror::Error;
use wal::LogError;

use crate::error::ServiceError;

/// The log's own error.
pub(super) type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a record was not made durable.
#[derive(Clone, Debug, Error)]
pub enum JournalError {
    /// The queue in front of the log is full.
    #[error("too many bytes wait for the log")]
    Saturated,
    /// The log has reached its size limit and waits for a checkpoint.
    #[error("the log waits for a checkpoint")]
    TailTooLong,
    /// The disk is full; nothing of the record was kept.
    #[error("{0}")]
    Full(Cause),
    /// The record is larger than a frame of the log may be; nothing of it was kept.
    #[error("{0}")]
    TooLarge(Cause),
    /// Too many files are open; nothing of the record was kept.
    #[error("{0}")]
    Descriptors(Cause),
    /// The log store cannot be reached; nothing of the record was kept.
    #[error("{0}")]
    Unavailable(Cause),
    /// The data directory was removed or replaced: anything written would be lost.
    #[error("the data directory is not there any more")]
    DirectoryGone,
    /// A write or sync failed; whether the record was kept is known only when the log is opened again.
    #[error("{0}")]
    Poisoned(Cause),
    /// Another node owns the shard; whether it has the record is not known.
    #[error("another node has taken over")]
    Lost,
    /// The journal's thread panicked; whether the record was kept is known only after a restart.
    #[error("its thread panicked; restart the server")]
    Panicked,
    /// The server is stopping.
    #[error("the log is closed")]
    Closed,
    /// A command cannot be encoded; the log is not affected.
    #[error("BUG: a command cannot be encoded: {0}")]
    Encoding(Arc<rmp_serde::encode::Error>),
}

/// Maps an error of the log to its meaning for records: whether the log can be used again.
impl From<LogError> for JournalError {
    fn from(error: LogError) -> Self {
        let cause = Arc::new(error);
        match &*cause {
            LogError::Descriptors { .. } => JournalError::Descriptors(cause),
            LogError::Full { .. } => JournalError::Full(cause),
            LogError::FrameTooLarge { .. } => JournalError::TooLarge(cause),
            LogError::Poisoned { .. }
            | LogError::Io { .. }
            | LogError::Damaged(_)
            | LogError::UnsupportedVersion { .. } => JournalError::Poisoned(cause),
        }
    }
}

impl JournalError {
    /// Short reason for unauthenticated clients: no paths, no details of the system. Those are in the server's log.
    pub(super) fn in_short(&self) -> &'static str {
        match self {
            JournalError::Saturated => "too many bytes wait for the log",
            JournalError::TailTooLong => "the log waits for a checkpoint",
            JournalError::Full(_) => "the disk is full",
            JournalError::Descriptors(_) => "too many files are open",
            JournalError::Unavailable(_) => "the log store is not available",
            JournalError::DirectoryGone => "the data directory is not there any more",
            JournalError::Poisoned(_) => "a write failed; restart the server",
            JournalError::Lost => "another node has taken over",
            JournalError::Panicked => "its thread panicked; restart the server",
            JournalError::Closed => "it is closed",
            JournalError::TooLarge(_) => "a record is too large",
            JournalError::Encoding(_) => "a command cannot be encoded",
        }
    }
}

impl From<JournalError> for ServiceError {
    fn from(error: JournalError) -> Self {
        let (message, retry_after_seconds) = match &error {
            JournalError::Saturated => ("the server is saturated; send it again in a moment", 1),
            JournalError::TailTooLong => (
                "the log is waiting for a checkpoint; send it again in a moment",
                1,
            ),
            JournalError::Full(_) => ("the disk is full: nothing can be stored until there is room", 10),
            JournalError::Descriptors(_) => (
                "the server has too many files open: nothing can be stored until some are closed",
                10,
            ),
            JournalError::Unavailable(_) => (
                "the log store is not available: nothing can be stored until it answers again",
                2,
            ),
            JournalError::Lost => ("another node is taking over; send it again in a moment", 1),
            JournalError::DirectoryGone => (
                "the data directory is not there any more: nothing can be stored until the server is restarted",
                30,
            ),
            JournalError::Poisoned(_) | JournalError::Panicked => (
                "the log failed: nothing can be stored until the server is restarted",
                30,
            ),
            JournalError::Closed => ("the server is stopping", 5),
            JournalError::Encoding(_) | JournalError::TooLarge(_) => return ServiceError::internal(error),
        };
        ServiceError::unavailable(message, retry_after_seconds).caused_by(error)
    }
}
