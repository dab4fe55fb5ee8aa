//! Why a record is not durable.

use std::fmt;
use std::sync::Arc;

use wal::LogError;

use crate::error::ServiceError;

/// Why a record is not durable.
#[derive(Clone, Debug)]
pub enum JournalError {
    /// More bytes wait for the log than it may keep.
    Saturated,
    /// The log is as long as it may get before a checkpoint.
    TailTooLong,
    /// The disk is full; nothing of the record was kept.
    Full(Arc<LogError>),
    /// Too many files are open; nothing of the record was kept.
    Descriptors(Arc<LogError>),
    /// The data directory was removed or replaced: what would be written is lost.
    DirectoryGone,
    /// A write or sync failed: whether the record was kept shows after a restart.
    Poisoned(Arc<LogError>),
    /// The journal's thread ended by a bug: whether the record was kept shows after a restart.
    Panicked,
    /// The server is stopping.
    Closed,
}

impl JournalError {
    /// What a failure of the log means for records: whether it may be used again.
    pub(super) fn of(error: Arc<LogError>) -> Self {
        match &*error {
            LogError::Descriptors { .. } => JournalError::Descriptors(error),
            LogError::Full { .. } | LogError::FrameTooLarge { .. } => JournalError::Full(error),
            LogError::Poisoned { .. }
            | LogError::Io { .. }
            | LogError::Damaged(_)
            | LogError::UnsupportedVersion { .. } => JournalError::Poisoned(error),
        }
    }
}

impl JournalError {
    /// Why, for anybody who asks: no path, nothing of the system. The log tells those.
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
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Saturated => f.write_str("too many bytes wait for the log"),
            JournalError::TailTooLong => f.write_str("the log waits for a checkpoint"),
            JournalError::Full(cause) | JournalError::Descriptors(cause) | JournalError::Poisoned(cause) => {
                cause.fmt(f)
            }
            JournalError::DirectoryGone => f.write_str("the data directory is not there any more"),
            JournalError::Panicked => f.write_str("its thread panicked; restart the server"),
            JournalError::Closed => f.write_str("the log is closed"),
        }
    }
}

impl std::error::Error for JournalError {}

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
        };
        ServiceError::unavailable(message, retry_after_seconds).caused_by(error)
    }
}
