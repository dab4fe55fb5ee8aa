//! Buckets that are set apart, so that one cannot stop the others: those that did not open, and those whose actor is
//! gone. The log is trimmed all the same; what it holds of them is carried on in files of
//! its own.

use std::collections::BTreeSet;

use wal::Sequence;
use wal::disk::Disk;

use super::checkpointer::CheckpointError;
use super::layout::Layout;
use crate::bucket::{CARRIED_AT_ONCE_MAX, CarriedDir};
use crate::journal::Record;

/// Which buckets are set apart.
#[derive(Default)]
pub(super) struct SetApart {
    buckets: BTreeSet<u32>,
    /// Up to this record all is carried; `None` before the first time.
    carried_until: Option<Sequence>,
}

impl SetApart {
    /// Those that did not open.
    pub(super) fn new(unopened: impl Iterator<Item = u32>) -> Self {
        SetApart {
            buckets: unopened.collect(),
            ..SetApart::default()
        }
    }

    pub(super) fn contains(&self, ordinal: u32) -> bool {
        self.buckets.contains(&ordinal)
    }

    pub(super) fn ordinals(&self) -> impl Iterator<Item = u32> {
        self.buckets.iter().copied()
    }

    /// Adds a bucket whose records are carried on.
    pub(super) fn add(&mut self, ordinal: u32) {
        self.buckets.insert(ordinal);
    }

    /// Notes that the manifest names what was carried up to here. Not before: what it does not name may be removed.
    pub(super) fn carried(&mut self, covered: Sequence) {
        if !self.buckets.is_empty() {
            self.carried_until = Some(covered);
        }
    }

    /// Carries the records of all that are set apart, and of `also`, in the log behind `mark` up to `covered`, on in
    /// files. Records that a file has already are applied once all the same: they keep their sequences.
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
