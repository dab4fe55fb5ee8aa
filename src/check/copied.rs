//! Verifies files of a data directory that go into a backup, or are in one, with the checksums inside them. A copy that
//! equals its source may still be a copy of damaged data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use disk::Disk;

use super::carried;
use super::ledger::read_run;
use super::segments::{self, Depth};
use crate::checkpoint::{Layout, Manifest, NamedFile};
use crate::ledger::LedgerError;

/// The files that a manifest names.
pub(crate) struct NamedFiles {
    layout: Layout,
    by_path: BTreeMap<PathBuf, NamedFile>,
}

impl NamedFiles {
    /// The files that this manifest names.
    pub(crate) fn of(layout: &Layout, manifest: &Manifest) -> Self {
        Self {
            layout: layout.clone(),
            by_path: manifest.files(layout),
        }
    }

    /// Reports where a file is damaged: its path and, if known, the offset. Reports nothing for files that the manifest
    /// does not name.
    ///
    /// # Errors
    /// A disk error.
    pub(crate) fn damages(&self, disk: &dyn Disk, path: &Path) -> Result<Vec<String>, String> {
        match self.by_path.get(path) {
            None => Ok(Vec::new()),
            Some(NamedFile::Segment(id)) => {
                let read = segments::read(disk, &self.layout.segments_dir(), *id, Depth::Checksums)?;
                let missing = || vec![format!("{} is missing", path.display())];
                Ok(read.map_or_else(missing, |segment| segment.damages))
            }
            Some(NamedFile::Run(id)) => match read_run(disk, &self.layout.runs_dir(), *id) {
                Ok((_, damages)) => Ok(damages),
                Err(error @ LedgerError::Io(..)) => Err(error.to_string()),
                Err(error) => Ok(vec![error.to_string()]),
            },
            Some(NamedFile::Carried(file)) => Ok(carried::read(disk, file).fault.into_iter().collect()),
        }
    }
}
