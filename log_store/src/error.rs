//! Errors of a log store.

use thiserror::Error;

use crate::{Sequence, Shard};

/// An error of the database, or of the way to it.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

/// An error with its causes: that of the database says only of what kind it is.
pub(crate) fn explained(error: &dyn std::error::Error) -> Source {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text.into()
}

/// Why an operation failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The database cannot be reached, does not answer, or refuses for now.
    #[error("the log store is not available: {0}")]
    Unavailable(Source),
    /// The database reports an error that waiting does not mend.
    #[error("the log store failed: {0}")]
    Failed(Source),
    /// The tables are absent, or were made by a newer program.
    #[error("{0}")]
    Tables(String),
}

/// Why groups were not appended.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The database cannot be reached; nothing was written.
    #[error("the log store is not available: {0}")]
    Unavailable(Source),
    /// The database has no space; nothing was written.
    #[error("the log store is full: {0}")]
    Full(Source),
    /// A group is larger than a row may be; nothing was written.
    #[error("a group of {bytes} bytes is larger than the log store takes ({bytes_max} bytes)")]
    TooLarge {
        /// Size of the group.
        bytes: u64,
        /// Largest size.
        bytes_max: u64,
    },
    /// The database refuses the statement; nothing was written.
    #[error("the log store failed: {0}")]
    Failed(Source),
    /// The answer to a commit was lost, and could not be found out in time.
    #[error("whether the log store has the records is not known: {0}")]
    Unknown(Source),
}

/// Why a replay ended early.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The shard is not owned under the epoch of the claim.
    #[error("shard {shard} has another owner")]
    Lost {
        /// The shard.
        shard: Shard,
    },
    /// The log does not continue where it must.
    #[error("the log of shard {shard} has no record {expected}; the next one is {found}")]
    Gap {
        /// The shard.
        shard: Shard,
        /// Sequence that is missing.
        expected: Sequence,
        /// Sequence that was found in its place.
        found: Sequence,
    },
    /// A row's content does not match its checksum.
    #[error("the row at record {first} of the log of shard {shard} is damaged")]
    Damaged {
        /// The shard.
        shard: Shard,
        /// Sequence of the row's first record.
        first: Sequence,
    },
    /// The receiver of the records failed.
    #[error("record {sequence}: {source}")]
    Record {
        /// Sequence of the record.
        sequence: Sequence,
        /// Why.
        source: Source,
    },
}
