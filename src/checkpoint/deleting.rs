//! Deletions of points. First a checkpoint writes all points to segments. Then the rest of the blocks that lose points is
//! written to a new segment. Then a manifest names that segment, and which blocks are dead: this is the moment from which
//! on the deletion is durable. Nothing is visible of it before; the store follows at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::Disk;
use engine::{
    DeadRanges, Deleted, Deletion, EngineError, ExpiredRows, MergeError, PointFilter, SegmentFile,
    SegmentWriter,
};
use tokio::sync::oneshot;

use super::error::CheckpointError;
use super::manifest::Manifest;
use super::rewriting::UntilStopped;
use super::segments::write_segment;
use super::task::Task;
use crate::bucket::{BucketHandle, FinishMerge, expired_rows};
use crate::catalog::Command;
use crate::sealed_file::SealedDir;

/// Maximum number of ranges of dead blocks in a manifest, which takes some 20 bytes for each.
const DEAD_RANGES_MAX: usize = 1 << 17;
/// A segment with more of them is merged as if it were mostly dead.
pub(super) const DEAD_RANGES_OF_SEGMENT_MAX: usize = 1 << 10;

/// Makes the command that records a deletion of this many points. It is in the log before the deletion takes effect, so that
/// there is no deletion without it. If the deletion fails after that, the record is there although nothing was deleted.
pub type DeletionRecord = Box<dyn FnOnce(u64) -> Command + Send>;

/// What to delete, and who waits for it.
pub(super) struct DeletionOrder {
    /// The bucket's ordinal.
    pub(super) bucket: u32,
    pub(super) filter: Arc<dyn PointFilter>,
    /// Makes the record of it; absent if none is wanted.
    pub(super) record: Option<DeletionRecord>,
    /// Gets the number of deleted points.
    pub(super) done: oneshot::Sender<Result<u64, CheckpointError>>,
}

/// A deletion that has begun.
pub(super) struct DeletionJob {
    disk: Arc<dyn Disk>,
    dir: SealedDir,
    /// Number of the segment to be written.
    segment: u64,
    handle: BucketHandle,
    expired: Arc<[ExpiredRows]>,
    order: DeletionOrder,
}

/// A deletion that is written and not installed. If it failed, its segment file has been removed.
pub(super) struct DeletionWritten {
    pub(super) written: Result<(Arc<SegmentFile>, Deleted), CheckpointError>,
    pub(super) handle: BucketHandle,
    pub(super) order: DeletionOrder,
}

impl DeletionJob {
    /// Writes the segment, unless `stop` is set before it is complete.
    pub(super) fn run(self, stop: &AtomicBool) -> DeletionWritten {
        let (bucket, filter) = (self.order.bucket, &*self.order.filter);
        let mut deleted = None;
        let written = write_segment(&*self.disk, &self.dir, self.segment, |out| {
            let mut out = UntilStopped { out, stop };
            let mut segment = SegmentWriter::new(&mut out)?;
            segment.begin_bucket(bucket);
            // Registered before the view is taken.
            let reader = self.handle.series().reader();
            let view = self.handle.view();
            let view = view.map_err(|_| CheckpointError::ActorGone(bucket))?;
            let deletion = Deletion::of(&view, filter)?;
            // While it exists, the store copies what it changes.
            drop(view);
            drop(reader);
            let stop = || stop.load(Ordering::Relaxed);
            deleted = Some(deletion.write(filter, &self.expired, &mut segment, &stop)?);
            Ok::<_, CheckpointError>(segment.finish()?)
        });
        let written = written.map_err(|error| error.at(&self.dir.file_path(self.segment)));
        DeletionWritten {
            written: written.and_then(|file| Ok((file, deleted.ok_or(CheckpointError::Ended)?))),
            handle: self.handle,
            order: self.order,
        }
    }
}

impl Task {
    /// Begins a deletion of points, all of which are in segments.
    pub(super) fn begin_deletion(&mut self, order: DeletionOrder) -> Option<DeletionJob> {
        let now_ns = self.clock.now_ns();
        let expired = self.catalog.read(|catalog| {
            let bucket = catalog.bucket_by_ordinal(order.bucket)?;
            Some(expired_rows(bucket, now_ns))
        });
        let mut running = self.buckets.running().into_iter();
        let handle = running.find(|(ordinal, _)| *ordinal == order.bucket);
        let (Some(expired), Some((_, handle))) = (expired, handle) else {
            // Whoever waits may be gone.
            let _ = order.done.send(Err(CheckpointError::ActorGone(order.bucket)));
            return None;
        };
        Some(DeletionJob {
            disk: Arc::clone(&self.disk),
            dir: self.segments.files.dir.clone(),
            segment: self.segments.files.take_id(),
            handle,
            expired,
            order,
        })
    }

    /// Gives up a deletion that is written, for this reason.
    pub(super) fn give_up_deletion(
        &mut self,
        written: Result<(Arc<SegmentFile>, Deleted), CheckpointError>,
        reason: CheckpointError,
    ) -> CheckpointError {
        match written {
            Ok((file, _)) => {
                self.segments.add(file);
                self.discard();
                reason
            }
            Err(error) => error,
        }
    }

    /// Makes a deletion durable and visible; returns the number of deleted points.
    pub(super) fn finish_deletion(
        &mut self,
        bucket: u32,
        handle: &BucketHandle,
        written: Result<(Arc<SegmentFile>, Deleted), CheckpointError>,
    ) -> Result<u64, CheckpointError> {
        let (file, deleted) = written.inspect_err(|error| {
            if let CheckpointError::Merge(MergeError::Engine(EngineError::Damaged(block))) = error {
                self.buckets.damaged().note(block);
            }
        })?;
        self.segments.add(Arc::clone(&file));
        let installed = self.install_deletion(bucket, handle, &file, deleted);
        if installed.is_err() {
            self.discard();
        }
        installed
    }

    fn install_deletion(
        &mut self,
        bucket: u32,
        handle: &BucketHandle,
        file: &Arc<SegmentFile>,
        deleted: Deleted,
    ) -> Result<u64, CheckpointError> {
        // Read the part before the manifest names the file: nothing may fail after that.
        let part = file.part(bucket)?;
        let mut manifest = self.manifest.clone();
        manifest.segments.extend(part.as_ref().map(|_| file.id()));
        manifest.next_segment = self.segments.files.next_id();
        add_dead(&mut manifest, &deleted.dead)?;
        self.install_manifest(manifest)?;
        // If the store panics now, this is at least what it uses after the next start.
        let new = part.as_ref().map(|part| (file.id(), part.rows()));
        let after = self.usage.of_with_rows(bucket).chain(new).collect();
        self.usage.set(bucket, after);
        let cutoff_ns = self.cutoff_ns(bucket);
        let live_segments = handle.send(FinishMerge {
            merge: deleted.merge,
            part,
            cutoff_ns,
        });
        self.update_usage(bucket, live_segments);
        self.remove_unnamed();
        // The points are deleted. The next checkpoint tries again what fails here.
        if let Err(error) = self.drop_unused() {
            tracing::warn!(bucket, %error, "segments without points could not be removed yet");
        }
        Ok(deleted.points)
    }
}

/// Adds blocks to those that are dead.
fn add_dead(manifest: &mut Manifest, dead: &BTreeMap<u64, DeadRanges>) -> Result<(), CheckpointError> {
    for (segment, ranges) in dead {
        let mut all = manifest.dead_of(*segment);
        ranges.iter().for_each(|range| all.add(range.clone()));
        manifest.set_dead(*segment, &all);
    }
    match manifest.dead_ranges() <= DEAD_RANGES_MAX {
        true => Ok(()),
        false => Err(CheckpointError::TooManyDead(DEAD_RANGES_MAX)),
    }
}
