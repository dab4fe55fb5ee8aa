//! What keeps the ledger from answering.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a run file does not read.
#[derive(Debug)]
pub enum LedgerError {
    /// The disk's.
    Io(PathBuf, io::Error),
    /// A part of the file is not what was written.
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where the part begins.
        offset: u64,
        /// What should be there.
        expected: &'static str,
    },
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Damaged {
                path,
                offset,
                expected,
            } => write!(
                f,
                "{} is damaged at offset {offset}: expected {expected}",
                path.display()
            ),
        }
    }
}

impl From<LedgerError> for io::Error {
    fn from(error: LedgerError) -> Self {
        Self::other(error)
    }
}

impl std::error::Error for LedgerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            Self::Damaged { .. } => None,
        }
    }
}
