//! Why a data directory does not open, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use wal::Sequence;

use super::manifest::ManifestError;
use super::segments::SegmentError;
use crate::catalog::SnapshotError;
use crate::journal::RecordError;
use crate::ledger::LedgerError;

/// Why a data directory does not open.
#[derive(Debug)]
pub enum OpenError {
    /// A backup was not restored to its end, as the file at this path says.
    Restoring(PathBuf),
    /// An older program wrote the file at this path, and it was not converted.
    Format1(PathBuf),
    /// Converting what an older program wrote.
    Convert(String),
    Manifest(ManifestError),
    /// The manifest at this path is missing though there are files that it named, or without it the log lacks its
    /// beginning.
    ManifestMissing(PathBuf, Option<wal::LogError>),
    Segment(SegmentError),
    /// A run file of the ledger.
    Ledger(LedgerError),
    /// The catalog's objects.
    Catalog(SnapshotError),
    Log(wal::LogError),
    /// The log ends before what the file at this path covers: its end is missing, and new records would be taken for
    /// old ones.
    LogBehind(PathBuf, Sequence, Sequence),
    /// A record of the log.
    Record(Sequence, RecordError),
    /// The disk's.
    Io(PathBuf, std::io::Error),
}

impl From<LedgerError> for OpenError {
    fn from(error: LedgerError) -> Self {
        OpenError::Ledger(error)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Restoring(path) => write!(
                f,
                "{} says that a restore was not finished; remove all that is beside it, and it, and restore again",
                path.display()
            ),
            OpenError::Format1(path) => write!(
                f,
                "{} was written by an older program; start a server on the directory, which converts it",
                path.display()
            ),
            OpenError::Convert(error) => write!(
                f,
                "what an older program wrote cannot be converted, and stays as it is: {error}"
            ),
            OpenError::Manifest(error) => write!(
                f,
                "{error}; restore it from a backup, or have it made anew by `tidewatch check --repair`"
            ),
            OpenError::ManifestMissing(path, error) => {
                write!(f, "{} is missing", path.display())?;
                if let Some(error) = error {
                    write!(f, " ({error})")?;
                }
                f.write_str("; restore it, or have it made anew by `tidewatch check --repair`; is the volume mounted?")
            }
            OpenError::Segment(error) => write!(
                f,
                "{error}; restore the file from a backup, or have `tidewatch check --repair` keep what is whole"
            ),
            OpenError::Ledger(error) => write!(f, "{error}; `tidewatch check` reports what is lost"),
            OpenError::Catalog(error) => error.fmt(f),
            OpenError::Log(error) => write!(f, "{error}; `tidewatch check` reports what is whole"),
            OpenError::LogBehind(path, covered, last) => write!(
                f,
                "the log ends at record {last} though {} covers records up to {covered}; `tidewatch check` reports what is whole",
                path.display()
            ),
            OpenError::Record(sequence, error) => write!(f, "record {sequence}: {error}"),
            OpenError::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}
