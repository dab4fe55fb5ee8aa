//! Errors of backup and restore.

use std::io;
use std::path::{Path, PathBuf};

use disk::is_full;

use crate::startup::LockError;

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The data directory at this path contains no data of a server.
    #[error("{0} holds nothing of a server; name its directory with --data-dir")]
    Empty(PathBuf),
    /// The file at this path in the data directory is of format 1, and no server has converted it since.
    #[error(
        "{0} was written by an older program; start a server on the directory once, which converts it, and back it up \
         when it is ready"
    )]
    Format1(PathBuf),
    /// The data directory is damaged.
    #[error(
        "{0}; the data directory is damaged and was not backed up: `tidewatch check` reports what is lost"
    )]
    Damaged(String),
    /// Files in the data directory at this path are damaged, in these places.
    #[error(
        "{0} is damaged and was not backed up; keep the existing backups, and run `tidewatch check`; --allow-damage \
         copies it as it is{lines}",
        lines = indented(.1)
    )]
    DamagedFiles(PathBuf, Vec<String>),
    /// Files kept changing while they were collected.
    #[error("{0}, repeatedly; if the server runs, try once more, if not, run `tidewatch check`")]
    Changing(String),
    /// The target exists.
    #[error("{0} exists and is not overwritten; choose another name")]
    Exists(PathBuf),
    /// The target is within the data directory.
    #[error("{0} is within the data directory; choose a place outside, preferably on another disk")]
    Inside(PathBuf),
    /// A file that is copied cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, io::Error),
    /// A file of the target cannot be written.
    #[error("{}", unwritten(.0, .1))]
    Write(PathBuf, io::Error),
    /// The backup at this path has no manifest.
    #[error("{0} has no complete manifest: it is not a backup, or one that was never finished")]
    Unfinished(PathBuf),
    /// The backup at this path has a later format version than this program reads.
    #[error("{0} is a backup of format version {1}, which a later program wrote; restore it with that one")]
    Version(PathBuf, u32),
    /// The faults of the backup at this path, for each file.
    #[error("{0} is damaged, {count} faults; nothing is restored{lines}", count = .1.len(), lines = indented(.1))]
    Faults(PathBuf, Vec<String>),
    /// The directory to restore to contains something with this name.
    #[error("{0} holds {1:?}; restore to an empty directory, or to one that does not exist yet")]
    Occupied(PathBuf, String),
    /// The directory to restore to is in use.
    #[error(transparent)]
    Lock(LockError),
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match is_full(error) {
        true => format!("the disk is full: {path} does not fit ({error}); the incomplete file was removed"),
        false => format!("cannot write {path}: {error}"),
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}
