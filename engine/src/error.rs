//! What can go wrong in the engine. It does no I/O, so this is damage found in bytes, or a query that was told to stop.

use std::fmt;

/// An engine failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// Bytes that should have come from this engine do not read as such.
    Corrupt {
        /// What was being read: a block, a footer, the rows of a log record.
        what: &'static str,
        /// Offset within `what`, in bytes.
        offset: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// The caller's `stop` function said so (deadline passed or client gone).
    Stopped,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineError::Corrupt {
                what,
                offset,
                expected,
            } => {
                write!(f, "corrupt {what} at offset {offset}: expected {expected}")
            }
            EngineError::Stopped => f.write_str("the query was stopped before it ended"),
        }
    }
}

impl std::error::Error for EngineError {}
