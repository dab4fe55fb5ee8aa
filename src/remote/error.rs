//! Why a checkpoint cannot be published or restored.

use std::io;
use std::path::PathBuf;

use objects::{ObjectError, UrlError};

use crate::backup::BackupError;
use crate::checked_file::CheckedFileError;
use crate::random::NoRandomness;

/// Why a checkpoint cannot be published or restored.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The URL names no object store.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The object store failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The operating system returns no random bytes.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// A file of the data directory cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, io::Error),
    /// A file of the data directory cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, io::Error),
    /// A small file of the data directory cannot be read or written.
    #[error(transparent)]
    File(#[from] CheckedFileError),
    /// Files of the data directory are damaged, in these places.
    #[error("{} is damaged and was not published; run `tidewatch check`", .0.join(", "))]
    DamagedFiles(Vec<String>),
    /// The root does not encode.
    #[error("the root of the checkpoint does not encode: {0}")]
    Encode(#[from] rmp_serde::encode::Error),
    /// The root is larger than programs read.
    #[error("the root of the checkpoint has {0} bytes, more than {max}", max = super::root::ROOT_BYTES_MAX)]
    RootTooLarge(u64),
    /// The epoch was given by the caller, and another writer uses it.
    #[error("{0} exists, though epoch {1} is this writer's own")]
    EpochInUse(String, u64),
    /// No epoch could be taken, because others kept taking them.
    #[error("no epoch could be taken: {0} in a row were taken by others")]
    Epochs(u32),
    /// The server stops.
    #[error("the server stops")]
    Stopped,
    /// There is no checkpoint at the URL.
    #[error("{0} has no checkpoints")]
    Empty(String),
    /// No checkpoint is as asked for.
    #[error("{0} has no checkpoint {1}; --list prints those that there are")]
    NoSuchCheckpoint(String, String),
    /// The root is damaged.
    #[error("the checkpoint {0} is damaged: {1}; choose another with --checkpoint")]
    DamagedRoot(String, String),
    /// The root is of a later version.
    #[error("the checkpoint {0} is of format version {1}, which a later program wrote; use that one")]
    Version(String, u32),
    /// The faults of objects of the checkpoint.
    #[error("the checkpoint {0} is damaged, {count} faults; nothing is restored{lines}", count = .1.len(), lines = indented(.1))]
    Faults(String, Vec<String>),
    /// The directory to restore to is in use, or is not empty.
    #[error(transparent)]
    Directory(#[from] BackupError),
    /// The log cannot be created.
    #[error("cannot begin the log: {0}")]
    Log(String),
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

impl RemoteError {
    /// Whether another writer has taken a name that this one wanted.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, RemoteError::Object(ObjectError::Exists(_)))
    }
}
