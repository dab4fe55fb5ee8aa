//! Errors of the ledger.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a run file cannot be read or written.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// An I/O error of a file or directory.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// A part of the file does not match its checksum or the format.
    #[error("{path} is damaged at offset {offset}: expected {expected}")]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// Offset of the damaged part.
        offset: u64,
        /// What should be there.
        expected: &'static str,
    },
    /// Entries in memory cannot be decompressed.
    #[error("entries in memory cannot be decompressed")]
    Packed(#[source] io::Error),
    /// An entry that matches its checksum cannot be decoded: written by a newer program, or a bug of this one.
    #[error("an entry of the series of bucket {0} cannot be decoded")]
    Series(u32),
}

impl From<LedgerError> for io::Error {
    fn from(error: LedgerError) -> Self {
        Self::other(error)
    }
}
