//! What the log and the carried records reveal about a directory that is incomplete.

use wal::Sequence;

use super::files;
use crate::checkpoint::data_dir::DataDir;
use crate::checkpoint::layout::at;
use crate::journal::Record;

/// The last record, carried or in the log, whose rows precede `next_row`: a checkpoint takes whole records in order, so
/// the segments hold it. 0 if there is none.
pub(super) fn last_held(
    dir: &DataDir,
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
    for file in dir.carried_files()? {
        if file.bucket == ordinal {
            file.read(dir.disk(), &mut look)?;
        }
    }
    dir.read_log(covered, &mut look)?;
    Ok(last)
}

/// Refuses a directory that has lost its manifest. Without a catalog, it can be distinguished from a directory of
/// format 1 only by a log that is complete from its first record.
pub(super) fn refuse_lost_manifest(dir: &DataDir) -> Result<(), String> {
    let has_catalog = dir.disk.exists(&files::catalog_path(dir.path()));
    if has_catalog.map_err(at(dir.path()))? || !dir.has_sealed_files()? {
        return Ok(());
    }
    match dir.check_log()?.first_sequence {
        Some(1) => Ok(()),
        _ => Err(format!(
            "{} is missing; restore it, or have it made anew by `tidewatch check --repair`",
            dir.manifest_path().display()
        )),
    }
}
