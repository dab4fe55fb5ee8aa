//! What the log and the carried records reveal about a directory that is incomplete.

use std::path::Path;

use disk::Disk;
use wal::Sequence;

use super::files;
use crate::bucket::CarriedDir;
use crate::checkpoint::layout::{Layout, at, message};
use crate::checkpoint::manifest::Manifest;
use crate::journal::Record;

/// The last record, carried or in the log, whose rows precede `next_row`: a checkpoint takes whole records in order, so
/// the segments hold it. 0 if there is none.
pub(super) fn last_held(
    disk: &dyn Disk,
    data_dir: &Path,
    ordinal: u32,
    next_row: u64,
    covered: Sequence,
) -> Result<Sequence, String> {
    let mut last = 0;
    let mut look = |sequence: Sequence, record: &[u8]| -> Result<(), String> {
        if let Ok(Record::Ingest(ingest)) = Record::decode(record)
            && ingest.bucket == ordinal
            && ingest.first_sequence < next_row
        {
            last = last.max(sequence);
        }
        Ok(())
    };
    for file in CarriedDir::of(data_dir).list(disk).map_err(at(data_dir))? {
        if file.bucket == ordinal {
            file.read(disk, &mut look)?;
        }
    }
    files::read_log(disk, data_dir, covered, &mut look)?;
    Ok(last)
}

/// Refuses a directory that has lost its manifest. Without a catalog, it can be distinguished from a directory of
/// format 1 only by a log that is complete from its first record.
pub(super) fn refuse_lost_manifest(disk: &dyn Disk, data_dir: &Path) -> Result<(), String> {
    let layout = Layout::of(data_dir);
    let has_catalog = disk
        .exists(&files::catalog_path(data_dir))
        .map_err(at(data_dir))?;
    if has_catalog || !layout.has_sealed_files(disk).map_err(at(data_dir))? {
        return Ok(());
    }
    let log = wal::check(disk, &layout.log_dir()).map_err(message)?;
    match log.first_sequence {
        Some(1) => Ok(()),
        _ => Err(format!(
            "{} is missing; restore it, or have it made anew by `tidewatch check --repair`",
            Manifest::path(data_dir).display()
        )),
    }
}
