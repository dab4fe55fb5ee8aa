//! Why a data directory does not open, and what the operator can do.

use std::path::PathBuf;

use wal::Sequence;

use super::manifest::ManifestError;
use super::segments::SegmentError;
use crate::catalog::SnapshotError;
use crate::journal::RecordError;
use crate::ledger::LedgerError;

/// Why a data directory does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A restore was not completed: the marker file at this path exists.
    #[error("{0} marks an unfinished restore; empty this directory, the marker included, and restore again")]
    Restoring(PathBuf),
    /// The contents were imported into a cluster: the marker file at this path exists.
    #[error(
        "{0} says that the contents of this directory are a shard of a cluster, where they go on; to go back to what they \
         were at the import, remove it"
    )]
    Moved(PathBuf),
    /// The file at this path is of format 1 and was not converted.
    #[error("{0} was written by an older program; start a server on the directory, which converts it")]
    Format1(PathBuf),
    /// Converting from format 1 failed.
    #[error("data of an older program cannot be converted, and was left unchanged: {0}")]
    Convert(String),
    #[error("{0}; restore it from a backup, or rebuild it with `tidewatch check --repair`")]
    Manifest(#[from] ManifestError),
    /// The manifest at this path is missing, although there are files that only it could have named, or the log lacks
    /// its beginning.
    #[error(
        "{0} is missing{cause}; restore it, or rebuild it with `tidewatch check --repair`; is the volume mounted?",
        cause = .1.as_ref().map(|error| format!(" ({error})")).unwrap_or_default()
    )]
    ManifestMissing(PathBuf, Option<wal::LogError>),
    #[error("{0}; restore the file from a backup, or salvage it with `tidewatch check --repair`")]
    Segment(#[from] SegmentError),
    /// A run file of the ledger does not read.
    #[error("{0}; `tidewatch check` reports what is lost")]
    Ledger(#[from] LedgerError),
    /// The catalog's objects do not read.
    #[error(transparent)]
    Catalog(#[from] SnapshotError),
    #[error("{0}; `tidewatch check` reports what can be read")]
    Log(wal::LogError),
    /// The log in the log store cannot be read.
    #[error(transparent)]
    LogStore(log_store::ReplayError),
    /// The log ends before the record that the file at this path covers. Its end is missing; new records would be taken
    /// for old ones.
    #[error(
        "the log ends at record {2} though {0} covers records up to {1}; `tidewatch check` reports what can be read"
    )]
    LogBehind(PathBuf, Sequence, Sequence),
    /// This record of the log does not apply.
    #[error("record {0}: {1}")]
    Record(Sequence, RecordError),
    /// A disk error.
    #[error("{0}: {1}")]
    Io(PathBuf, std::io::Error),
}
