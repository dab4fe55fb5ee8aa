//! Verifies files of a data directory that go into a backup, or are in one, with the checksums inside them. A copy that
//! equals its source may still be a copy of damaged data.

use std::collections::BTreeMap;

use disk::Disk;
use engine::DeadRanges;

use super::carried;
use super::ledger::read_run;
use super::segments::{self, Depth};
use crate::checkpoint::{Layout, NamedFile};
use crate::ledger::LedgerError;

/// Reports where a file that a manifest names is damaged: its path and, if known, the offset.
///
/// # Errors
/// A disk error.
pub(crate) fn damages(disk: &dyn Disk, layout: &Layout, file: &NamedFile) -> Result<Vec<String>, String> {
    match file {
        NamedFile::Segment(id) => {
            let dir = layout.segments_dir();
            let none_dead = DeadRanges::default();
            segments::read(
                disk,
                &dir,
                *id,
                none_dead,
                Depth::Checksums,
                &mut BTreeMap::new(),
                &(),
            )
        }
        NamedFile::Run(id) => match read_run(disk, &layout.runs_dir(), *id) {
            Ok((_, damages)) => Ok(damages),
            Err(error @ LedgerError::Io(..)) => Err(error.to_string()),
            Err(error) => Ok(vec![error.to_string()]),
        },
        NamedFile::Carried(file) => Ok(carried::read(disk, file).1.into_iter().collect()),
    }
}
