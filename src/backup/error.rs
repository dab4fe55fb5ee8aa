//! Why there is no backup, or nothing was restored.

use std::fmt;
use std::io;
use std::path::PathBuf;

use wal::disk::is_full;

use crate::startup::LockError;

/// See the room's opening.
#[derive(Debug)]
pub enum BackupError {
    /// The data directory at this path holds nothing of a server.
    Empty(PathBuf),
    /// An older program wrote the file at this path of the data directory, and no server has converted it since.
    Format1(PathBuf),
    /// The data directory is not what was written.
    Damaged(String),
    /// Files in the data directory at this path are not what was written, in these places.
    Rotten(PathBuf, Vec<String>),
    /// Files went as fast as they were looked for.
    Moving(String),
    /// The target is there.
    Exists(PathBuf),
    /// The target lies within the data directory.
    Inside(PathBuf),
    /// A file that is copied.
    Read(PathBuf, io::Error),
    /// A file that is written.
    Write(PathBuf, io::Error),
    /// The backup at this path has no manifest.
    Unfinished(PathBuf),
    /// The backup at this path has a later format version than this program reads.
    Version(PathBuf, u32),
    /// What is wrong with the backup at this path, for each file.
    Faults(PathBuf, Vec<String>),
    /// The directory to restore to holds something of this name.
    Occupied(PathBuf, String),
    /// The directory to restore to is in use.
    Lock(LockError),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(path) => write!(
                f,
                "{} holds nothing of a server; name its directory with --data-dir",
                path.display()
            ),
            Self::Format1(path) => write!(
                f,
                "{} was written by an older program; start a server on the directory once, which converts it, and back \
                 it up when it serves",
                path.display()
            ),
            Self::Damaged(what) => write!(
                f,
                "{what}; the data directory is damaged and was not backed up: `tidewatch check` reports what is lost"
            ),
            Self::Rotten(path, damages) => {
                write!(
                    f,
                    "{} is damaged and was not backed up; keep the backups there are, and ask `tidewatch check`; \
                     --allow-damage copies it as it is",
                    path.display()
                )?;
                damages.iter().try_for_each(|damage| write!(f, "\n  {damage}"))
            }
            Self::Moving(what) => write!(
                f,
                "{what}, again and again; if the server runs, try once more, if not, ask `tidewatch check`"
            ),
            Self::Exists(path) => write!(
                f,
                "{} is there already and is not overwritten; choose another name",
                path.display()
            ),
            Self::Inside(path) => write!(
                f,
                "{} is within the data directory; choose a place outside, at best on another disk",
                path.display()
            ),
            Self::Read(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Write(path, error) if is_full(error) => write!(
                f,
                "the disk is full: {} does not fit ({error}); what was written of it is removed",
                path.display()
            ),
            Self::Write(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::Unfinished(path) => write!(
                f,
                "{} has no whole manifest: it is no backup, or one that was never finished",
                path.display()
            ),
            Self::Version(path, found) => write!(
                f,
                "{} is a backup of format version {found}, which a later program wrote; restore it with that one",
                path.display()
            ),
            Self::Faults(path, faults) => {
                let count = faults.len();
                write!(
                    f,
                    "{} is damaged, {count} faults; nothing is restored",
                    path.display()
                )?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::Occupied(path, name) => write!(
                f,
                "{} holds {name:?}; restore to an empty directory, or one that is not there yet",
                path.display()
            ),
            Self::Lock(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BackupError {}
