//! Errors of the engine. It does no I/O, so an error is damage in its input, input that cannot be had now, or a query
//! that was stopped or exceeded its memory budget.

use std::fmt;

use thiserror::Error;

/// An error of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The input is not a valid encoding.
    #[error("corrupt {what} at offset {offset}: expected {expected}")]
    Corrupt {
        /// What was being read: a block, a footer, the rows of a log record.
        what: &'static str,
        /// Offset within `what`, in bytes.
        offset: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// A block of a segment file, or its footer entry, cannot be read.
    #[error("{0}")]
    Damaged(Box<DamagedBlock>),
    /// Bytes that are not on this machine cannot be had now. A later attempt may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The caller's `stop` function returned true (deadline passed or client disconnected).
    #[error("the query was stopped before it ended")]
    Stopped,
    /// The query would exceed its memory budget.
    #[error("the query would hold more than {bytes_max} bytes of memory")]
    OverBudget {
        /// The budget in bytes.
        bytes_max: usize,
    },
}

/// Location of a damaged block, for the people who have to repair the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedBlock {
    /// Id under which the segment was opened.
    pub segment: u64,
    /// Offset of the block in the file, or that of its footer entry, if the entry is damaged.
    pub offset: u64,
    /// Ordinal of the bucket; `None` if it cannot be determined.
    pub bucket: Option<u32>,
    /// Ordinal of the source within the bucket; `None` if the footer entry is damaged.
    pub source: Option<u32>,
    /// The error, with its offset within the block or the footer.
    pub fault: EngineError,
}

impl fmt::Display for DamagedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "segment {}, offset {}: {}",
            self.segment, self.offset, self.fault
        )
    }
}

impl EngineError {
    pub(crate) fn corrupt(what: &'static str, offset: usize, expected: &'static str) -> Self {
        EngineError::Corrupt {
            what,
            offset,
            expected,
        }
    }

    /// The error without the location of the block.
    #[must_use]
    pub fn fault(self) -> EngineError {
        match self {
            EngineError::Damaged(damaged) => damaged.fault,
            other => other,
        }
    }
}
