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
    /// A block of a segment file that does not read, or what its footer says of it.
    Damaged(Box<DamagedBlock>),
    /// The caller's `stop` function said so (deadline passed or client gone).
    Stopped,
    /// The query would hold more memory than it may.
    OverBudget {
        /// What it may hold, in bytes.
        bytes_max: usize,
    },
}

/// Where a damaged block lies, for people who have to repair the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedBlock {
    /// The number that the segment was opened under.
    pub segment: u64,
    /// Where the block begins in the file; where its entry does, if that is damaged.
    pub offset: u64,
    /// Ordinal of the bucket; `None` where the file does not tell any more.
    pub bucket: Option<u32>,
    /// Ordinal of the source within the bucket; `None` where its entry is damaged.
    pub source: Option<u32>,
    /// What is wrong, with the offset within the block or the footer.
    pub fault: EngineError,
}

impl fmt::Display for DamagedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DamagedBlock {
            segment,
            offset,
            fault,
            ..
        } = self;
        write!(f, "segment {segment}, offset {offset}: {fault}")
    }
}

impl EngineError {
    /// What is wrong, without where the block lies.
    #[must_use]
    pub fn fault(self) -> EngineError {
        match self {
            EngineError::Damaged(damaged) => damaged.fault,
            other => other,
        }
    }
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
            EngineError::Damaged(damaged) => damaged.fmt(f),
            EngineError::Stopped => f.write_str("the query was stopped before it ended"),
            EngineError::OverBudget { bytes_max } => {
                write!(f, "the query would hold more than {bytes_max} bytes of memory")
            }
        }
    }
}

impl std::error::Error for EngineError {}
