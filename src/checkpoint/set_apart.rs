//! Buckets that are set apart, so that one cannot stop the others: those that did not open, whose actor is gone, or whose
//! checkpoints fail again and again. The log is trimmed all the same; what it holds of them is carried on in files of
//! its own.

use std::collections::{BTreeMap, BTreeSet};

use wal::Sequence;
use wal::disk::Disk;

use super::checkpointer::CheckpointError;
use super::layout::Layout;
use crate::bucket::{CARRIED_AT_ONCE_MAX, CarriedDir};
use crate::journal::Record;

/// So many checkpoints of a bucket fail before it is set apart.
const FAILURES_MAX: u32 = 3;

/// Which buckets are set apart, and which are about to be.
#[derive(Default)]
pub(super) struct SetApart {
    buckets: BTreeSet<u32>,
    /// Checkpoints of a bucket that failed since one succeeded.
    failures: BTreeMap<u32, u32>,
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

    /// Notes how a bucket's checkpoint ended; answers whether to set the bucket apart.
    pub(super) fn note(&mut self, ordinal: u32, outcome: &Result<(), CheckpointError>) -> bool {
        match outcome {
            Ok(()) => {
                self.failures.remove(&ordinal);
                false
            }
            Err(CheckpointError::ActorGone(_)) => true,
            Err(error) if is_passing(error) => false,
            Err(_) => {
                let failures = self.failures.entry(ordinal).or_insert(0);
                *failures += 1;
                *failures >= FAILURES_MAX
            }
        }
    }

    /// Adds buckets once their records up to `covered` are carried on.
    pub(super) fn add(&mut self, ordinals: impl IntoIterator<Item = u32>) {
        for ordinal in ordinals {
            self.failures.remove(&ordinal);
            self.buckets.insert(ordinal);
        }
    }

    /// Carries the records of all that are set apart, and of `also`, in the log behind `mark` up to `covered`, on in
    /// files. Records that a file has already are applied once all the same: they keep their sequences.
    pub(super) fn carry(
        &mut self,
        disk: &dyn Disk,
        layout: &Layout,
        also: &BTreeSet<u32>,
        (mark, covered): (Sequence, Sequence),
    ) -> Result<(), CheckpointError> {
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
        self.carried_until = Some(covered);
        Ok(())
    }
}

/// Whether what went wrong may be right again by itself, or concerns all buckets alike.
fn is_passing(error: &CheckpointError) -> bool {
    use std::io::ErrorKind;
    let passing = |error: &std::io::Error| {
        wal::disk::is_full(error)
            || matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::ReadOnlyFilesystem)
            // Too many open files, of the process or of the system: EMFILE, ENFILE.
            || matches!(error.raw_os_error(), Some(23 | 24))
    };
    match error {
        CheckpointError::Io(error) => passing(error),
        CheckpointError::File(crate::checked_file::CheckedFileError::Io(_, error)) => passing(error),
        CheckpointError::Bucket(crate::bucket::BucketFileError::Io(_, error)) => passing(error),
        CheckpointError::Journal(_) | CheckpointError::Ended => true,
        _ => false,
    }
}
