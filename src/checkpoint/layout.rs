//! Paths in the data directory. Documented in src/journal/FORMAT.md.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use disk::Disk;

use super::open_error::OpenError;
use super::segments::segments_dir;
use crate::ledger::runs_dir;
use crate::sealed_file::SealedDir;

/// A data directory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Path of the directory.
    pub data_dir: PathBuf,
}

impl Layout {
    /// Names of everything stored in the data directory, in the present format and in format 1.
    pub const NAMES: [&str; 9] = [
        "buckets",
        "carried",
        "catalog.snapshot",
        "checkpoint",
        "ledger",
        "log",
        "manifest",
        "published",
        "segments",
    ];

    /// The layout of the directory at this path.
    pub fn of(data_dir: &Path) -> Self {
        Layout {
            data_dir: data_dir.to_owned(),
        }
    }

    /// The directory of the log.
    pub fn log_dir(&self) -> PathBuf {
        self.data_dir.join("log")
    }

    /// The directory of the segments.
    pub fn segments_dir(&self) -> SealedDir {
        segments_dir(&self.data_dir)
    }

    /// The directory of the ledger's runs.
    pub fn runs_dir(&self) -> SealedDir {
        runs_dir(&self.data_dir)
    }

    /// A file that exists while a backup is being restored. As long as it exists, nothing else in the directory may be
    /// relied upon.
    pub fn restoring_path(&self) -> PathBuf {
        self.data_dir.join("RESTORING")
    }

    /// A file that exists once the directory's contents are a shard of a cluster, where they go on.
    fn moved_path(&self) -> PathBuf {
        self.data_dir.join("MOVED")
    }

    /// Sees to it that no server starts on the directory any more.
    ///
    /// # Errors
    /// A disk error.
    pub fn mark_moved(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.create(&self.moved_path())?.sync_data()?;
        disk.sync_dir(&self.data_dir)
    }

    /// Takes that back.
    ///
    /// # Errors
    /// A disk error.
    pub fn unmark_moved(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.remove(&self.moved_path())?;
        disk.sync_dir(&self.data_dir)
    }

    /// Fails if a marker says that the contents must not be used.
    pub(super) fn refuse_marked(&self, disk: &dyn Disk) -> Result<(), OpenError> {
        let exists = |path: &Path| {
            let exists = disk.exists(path);
            exists.map_err(|error| OpenError::Io(path.to_owned(), error))
        };
        let (restoring, moved) = (self.restoring_path(), self.moved_path());
        if exists(&restoring)? {
            return Err(OpenError::Restoring(restoring));
        }
        if exists(&moved)? {
            return Err(OpenError::Moved(moved));
        }
        Ok(())
    }

    /// Whether there is a segment or a run file.
    ///
    /// # Errors
    /// A disk error.
    pub fn has_sealed_files(&self, disk: &dyn Disk) -> io::Result<bool> {
        let segments = self.segments_dir().list(disk)?.ids;
        let runs = self.runs_dir().list(disk)?.ids;
        Ok(!segments.is_empty() || !runs.is_empty())
    }
}

/// Adds a path to an error, which becomes a message for the operator.
pub fn at<E: Display>(path: &Path) -> impl Fn(E) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// An error without a path, or with its own, as a message for the operator.
pub fn message(error: impl Display) -> String {
    error.to_string()
}
