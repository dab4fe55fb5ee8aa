//! Paths in the data directory. Documented in src/journal/FORMAT.md.

use std::io;
use std::path::{Path, PathBuf};

use disk::{Disk, list_existing};

use super::format_1;
use super::open_error::OpenError;
use super::segments::SegmentsDir;
use crate::ledger::LedgerDir;

/// A data directory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Path of the directory.
    pub data_dir: PathBuf,
}

impl Layout {
    /// Names of everything stored in the data directory, in the present format and in format 1.
    pub const NAMES: [&str; 8] = [
        "buckets",
        "carried",
        "catalog.snapshot",
        "checkpoint",
        "ledger",
        "log",
        "manifest",
        "segments",
    ];

    /// The directory of the log.
    pub fn log_dir(&self) -> PathBuf {
        self.data_dir.join("log")
    }

    /// A file that exists while a backup is being restored. As long as it exists, nothing else in the directory may be
    /// relied upon.
    pub fn restoring_path(&self) -> PathBuf {
        self.data_dir.join("RESTORING")
    }

    pub(super) fn refuse_restoring(&self, disk: &dyn Disk) -> Result<(), OpenError> {
        let path = self.restoring_path();
        match disk.exists(&path) {
            Ok(false) => Ok(()),
            Ok(true) => Err(OpenError::Restoring(path)),
            Err(error) => Err(OpenError::Io(path, error)),
        }
    }

    /// A file of format 1, if there is one.
    ///
    /// # Errors
    /// A disk error.
    pub fn file_of_format_1(&self, disk: &dyn Disk) -> Result<Option<PathBuf>, OpenError> {
        format_1::exists(disk, &self.data_dir).map_err(|error| OpenError::Io(self.data_dir.clone(), error))
    }

    /// Whether the log has no files.
    ///
    /// # Errors
    /// A disk error.
    pub fn log_is_empty(&self, disk: &dyn Disk) -> io::Result<bool> {
        Ok(list_existing(disk, &self.log_dir())?.is_empty())
    }

    /// Whether there is a segment or a run file.
    ///
    /// # Errors
    /// A disk error.
    pub fn has_sealed_files(&self, disk: &dyn Disk) -> io::Result<bool> {
        let segments = SegmentsDir::of(&self.data_dir).list(disk)?.segments;
        let runs = LedgerDir::of(&self.data_dir)
            .list(disk)
            .map_err(io::Error::other)?
            .runs;
        Ok(!segments.is_empty() || !runs.is_empty())
    }
}

impl AsRef<Path> for Layout {
    fn as_ref(&self) -> &Path {
        &self.data_dir
    }
}
