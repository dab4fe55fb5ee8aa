//! What the log and the carried records reveal about a directory that is incomplete.

use std::io;
use std::path::Path;

use disk::Disk;
use wal::Sequence;

use super::convert::said;
use super::files;
use crate::bucket::CarriedDir;
use crate::checkpoint::layout::Layout;
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
    let carried = CarriedDir::of(data_dir).list(disk);
    for file in carried.map_err(|error| said(data_dir, &error))? {
        if file.bucket == ordinal {
            file.read(disk, &mut look)?;
        }
    }
    let dir = files::log_dir(data_dir);
    let log = wal::check(disk, &dir).map_err(|error| error.to_string())?;
    let range = (covered, log.last_sequence);
    let read = wal::records(disk, &dir, range, &mut look);
    read.map_err(|error| match error {
        wal::OpenError::Log(error) => error.to_string(),
        wal::OpenError::Replay { source, .. } => source,
    })?;
    Ok(last)
}

/// Refuses a directory that has lost its manifest. Without a catalog, it can be distinguished from a directory of
/// format 1 only by a log that is complete from its first record.
pub(super) fn refuse_lost_manifest(disk: &dyn Disk, data_dir: &Path) -> Result<(), String> {
    let layout = Layout {
        data_dir: data_dir.to_owned(),
    };
    let catalog = files::catalog_path(data_dir);
    let failed = |error: io::Error| said(data_dir, &error);
    if disk.exists(&catalog).map_err(failed)? || !layout.has_sealed_files(disk).map_err(failed)? {
        return Ok(());
    }
    let log = wal::check(disk, &layout.log_dir()).map_err(|error| error.to_string())?;
    match log.first_sequence {
        Some(1) => Ok(()),
        _ => Err(format!(
            "{} is missing; restore it, or have it made anew by `tidewatch check --repair`",
            Manifest::path(data_dir).display()
        )),
    }
}
