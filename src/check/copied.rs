//! Verifies files of a data directory that go into a backup, or are in one, with the checksums inside them. A copy that
//! equals its source may still be a copy of damaged data.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use disk::Disk;

use super::carried;
use super::ledger::name;
use super::segments::{self, Depth, Unread};
use crate::bucket::{CarriedDir, CarriedFile};
use crate::checkpoint::{Layout, Manifest, SegmentsDir};
use crate::ledger::{LedgerDir, LedgerError, verify};

/// The files that a manifest names.
pub(crate) struct NamedFiles {
    segments: SegmentsDir,
    ledger: LedgerDir,
    by_path: HashMap<PathBuf, Named>,
}

enum Named {
    Segment(u64),
    Run(u64),
    Carried(CarriedFile),
}

impl NamedFiles {
    /// The files that this manifest names.
    pub(crate) fn of(layout: &Layout, manifest: &Manifest) -> Self {
        let segments = SegmentsDir::of(&layout.data_dir);
        let ledger = LedgerDir::of(&layout.data_dir);
        let carried = CarriedDir::of(&layout.data_dir);
        let mut by_path = HashMap::new();
        for id in &manifest.segments {
            by_path.insert(segments.segment_path(*id), Named::Segment(*id));
        }
        for id in &manifest.runs {
            by_path.insert(ledger.run_path(*id), Named::Run(*id));
        }
        for (bucket, first) in &manifest.carried {
            let file = carried.named(*bucket, *first);
            by_path.insert(file.path.clone(), Named::Carried(file));
        }
        Self {
            segments,
            ledger,
            by_path,
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
            Some(Named::Segment(id)) => match segments::read(disk, &self.segments, *id, Depth::Checksums) {
                Ok(segment) => Ok(segment.damages),
                Err(Unread::Missing) => Ok(vec![format!("{} is missing", path.display())]),
                Err(Unread::Disk(error)) => Err(error),
            },
            Some(Named::Run(id)) => run_damages(disk, &self.ledger, *id),
            Some(Named::Carried(file)) => Ok(carried::read(disk, file).fault.into_iter().collect()),
        }
    }
}

fn run_damages(disk: &dyn Disk, dir: &LedgerDir, id: u64) -> Result<Vec<String>, String> {
    let run = match dir.open(disk, id) {
        Ok(run) => run,
        Err(error @ LedgerError::Io(..)) => return Err(error.to_string()),
        Err(error) => return Ok(vec![error.to_string()]),
    };
    let found = verify(&run).map_err(|error| error.to_string())?;
    let described =
        |(error, lost): &(LedgerError, u64)| format!("{error}; {lost} entries of {}", name(run.stream()));
    Ok(found.damages.iter().map(described).collect())
}
