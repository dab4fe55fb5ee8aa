//! Why a record was not made durable.

use std::sync::Arc;

use thiserror::Error;
use wal::LogError;

use crate::error::ServiceError;

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
    Full(Arc<LogError>),
    /// The record is larger than a frame of the log may be; nothing of it was kept.
    #[error("{0}")]
    TooLarge(Arc<LogError>),
    /// Too many files are open; nothing of the record was kept.
    #[error("{0}")]
    Descriptors(Arc<LogError>),
    /// The data directory was removed or replaced: anything written would be lost.
    #[error("the data directory is not there any more")]
    DirectoryGone,
    /// A write or sync failed; whether the record was kept is known only after a restart.
    #[error("{0}")]
    Poisoned(Arc<LogError>),
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
        let error = Arc::new(error);
        match &*error {
            LogError::Descriptors { .. } => JournalError::Descriptors(error),
            LogError::Full { .. } => JournalError::Full(error),
            LogError::FrameTooLarge { .. } => JournalError::TooLarge(error),
            LogError::Poisoned { .. }
            | LogError::Io { .. }
            | LogError::Damaged(_)
            | LogError::UnsupportedVersion { .. } => JournalError::Poisoned(error),
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
            JournalError::DirectoryGone => "the data directory is not there any more",
            JournalError::Poisoned(_) => "a write failed; restart the server",
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
