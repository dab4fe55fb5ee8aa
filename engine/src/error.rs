//! What can go wrong in the engine. It does no I/O, so this is damage found in bytes, or a query that was told
//! to stop, or that asks for more than fits into its memory.

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
    /// The query would hold more memory than it may.
    OverBudget {
        /// What it may hold, in bytes.
        bytes_max: usize,
    },
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
            EngineError::OverBudget { bytes_max } => {
                write!(f, "the query would hold more than {bytes_max} bytes of memory")
            }
        }
    }
}

impl std::error::Error for EngineError {}
