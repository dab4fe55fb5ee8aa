//! Why a checkpoint, a merge or a deletion failed.

use std::path::Path;

use engine::MergeError;

use crate::checked_file::CheckedFileError;
use crate::journal::JournalError;
use crate::ledger::LedgerError;

/// Why a checkpoint failed. No data is lost: the log keeps the records that it would have covered.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A disk error.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Writing or reading the manifest failed.
    #[error(transparent)]
    File(#[from] CheckedFileError),
    /// A segment that was just written does not read.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// Merging segments failed.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A run file of the ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The log failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The actor of the bucket with this ordinal has panicked. A restart replays its rows.
    #[error("bucket {0} failed; its points are in the log, and are there again after a restart")]
    ActorGone(u32),
    /// The checkpoint is not stored elsewhere, where it must be.
    #[error("the checkpoint could not be published: {0}")]
    Publish(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Too many ranges of dead blocks are not merged away yet.
    #[error(
        "earlier deletions have left more than {0} gaps in the segments, which merges have to close first"
    )]
    TooManyDead(usize),
    /// The data directory was removed or replaced. The directory now at its path is not ours to write to.
    #[error("the data directory is not there any more")]
    DirectoryGone,
    /// The checkpointer has ended.
    #[error("the checkpointer has ended")]
    Ended,
}

impl CheckpointError {
    /// Adds the path to a disk error.
    pub(super) fn at(self, path: &Path) -> Self {
        match self {
            CheckpointError::Io(error) | CheckpointError::Merge(MergeError::Io(error)) => {
                let message = format!("{}: {error}", path.display());
                CheckpointError::Io(std::io::Error::new(error.kind(), message))
            }
            other => other,
        }
    }
}
