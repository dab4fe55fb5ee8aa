//! Why a question has no answer, as Prometheus's API tells it.

use std::fmt;

/// The member `errorType` of an answer, and the HTTP status that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The question itself is wrong: 400.
    BadData,
    /// The question cannot be answered from these series, or not within its budget: 422.
    Execution,
    /// The question took too long: 503.
    Timeout,
    /// The storage failed: 500.
    Internal,
}

impl ErrorKind {
    /// The name in `errorType`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::BadData => "bad_data",
            ErrorKind::Execution => "execution",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Internal => "internal",
        }
    }

    /// The HTTP status of the answer.
    pub fn status(self) -> u16 {
        match self {
            ErrorKind::BadData => 400,
            ErrorKind::Execution => 422,
            ErrorKind::Timeout => 503,
            ErrorKind::Internal => 500,
        }
    }
}

/// What keeps a question from being answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// What to change.
    pub message: String,
}

impl Error {
    /// A question that is wrong in itself.
    pub fn bad_data(message: impl Into<String>) -> Error {
        Error {
            kind: ErrorKind::BadData,
            message: message.into(),
        }
    }

    /// A question that these series, or the budget, do not answer.
    pub fn execution(message: impl Into<String>) -> Error {
        Error {
            kind: ErrorKind::Execution,
            message: message.into(),
        }
    }

    /// A storage that failed.
    pub fn internal(message: impl Into<String>) -> Error {
        Error {
            kind: ErrorKind::Internal,
            message: message.into(),
        }
    }

    pub(crate) fn interrupted() -> Error {
        Error {
            kind: ErrorKind::Timeout,
            message:
                "the query took too long: narrow its time range, its ranges in brackets or its selectors"
                    .into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind.name(), self.message)
    }
}

impl std::error::Error for Error {}
