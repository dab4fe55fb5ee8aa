//! Buckets that are set apart, so that a failed bucket does not stop the others: those that did not open, and those
//! whose actor has panicked. The log is trimmed nevertheless; their records are copied from it to carried files.

use std::collections::BTreeSet;

use disk::Disk;
use wal::Sequence;

use super::error::CheckpointError;
use super::layout::Layout;
use crate::bucket::{CARRIED_AT_ONCE_MAX, CarriedDir};
use crate::journal::Record;

/// The set of buckets that are set apart. A bucket is added when its records have been carried.
#[derive(Default)]
pub(super) struct SetApart {
    pub(super) buckets: BTreeSet<u32>,
    /// Records up to this one are in carried files; `None` before the first time.
    carried_until: Option<Sequence>,
}

impl SetApart {
    /// Notes that the manifest names the files carried up to here. Call it only then: files that it does not name may
    /// be removed.
    pub(super) fn carried(&mut self, covered: Sequence) {
        if !self.buckets.is_empty() {
            self.carried_until = Some(covered);
        }
    }

    /// Copies the records of all buckets that are set apart, and of `also`, from the log after `mark` up to `covered`,
    /// to carried files. A record that is copied twice is applied once, because records keep their sequences.
    pub(super) fn carry(
        &self,
        disk: &dyn Disk,
        layout: &Layout,
        also: &BTreeSet<u32>,
        (mark, covered): (Sequence, Sequence),
    ) -> Result<(), CheckpointError> {
        if self.buckets.is_empty() && also.is_empty() {
            return Ok(());
        }
        let dir = CarriedDir::of(&layout.data_dir);
        let before = self.carried_until.unwrap_or(mark);
        for (ordinals, after) in [(&self.buckets, before), (also, mark)] {
            let ordinals: Vec<u32> = ordinals.iter().copied().collect();
            for some in ordinals.chunks(CARRIED_AT_ONCE_MAX) {
                let mut writer = dir.writer(disk)?;
                let mut each = |sequence: Sequence, record: &[u8]| -> Result<(), CheckpointError> {
                    if let Ok(Record::Ingest(ingest)) = Record::decode(record)
                        && some.contains(&ingest.bucket)
                    {
                        writer.push(ingest.bucket, sequence, record)?;
                    }
                    Ok(())
                };
                let read = wal::records(disk, &layout.log_dir(), (after, covered), &mut each);
                read.map_err(|error| match error {
                    wal::OpenError::Log(error) => CheckpointError::Io(std::io::Error::other(error)),
                    wal::OpenError::Replay { source, .. } => source,
                })?;
                writer.finish()?;
            }
        }
        Ok(())
    }
}
