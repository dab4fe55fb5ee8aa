//! Merges of segments.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use disk::Disk;
use engine::{EngineError, Merge, MergeError, SegmentFile, SegmentUse, SegmentWriter, choose_merge};

use super::deleting::DEAD_RANGES_OF_SEGMENT_MAX;
use super::error::CheckpointError;
use super::rewriting::UntilStopped;
use super::segments::write_segment;
use super::task::Task;
use crate::bucket::{BeginMerge, BucketHandle, FinishMerge, expired_rows};
use crate::catalog::{Catalog, CatalogHandle};
use crate::clock::SECOND_NS;
use crate::sealed_file::SealedDir;

/// Pause after a failed merge.
pub(super) const MERGE_PAUSE_NS: i64 = 60 * SECOND_NS;

/// A merge that has started: its input and its output file.
pub(super) struct MergeJob {
    disk: Arc<dyn Disk>,
    dir: SealedDir,
    catalog: CatalogHandle,
    /// Number of the segment to be written.
    pub(super) segment: u64,
    /// The input segments, which the new one replaces.
    pub(super) chosen: Vec<u64>,
    /// The buckets with rows in these segments, by ordinal.
    buckets: Vec<(u32, BucketHandle)>,
    /// The deletion time of the last checkpoint; `None` if it deleted nothing.
    deletes_at_ns: Option<i64>,
}

/// The result of merging a bucket's rows.
type MergedRows = (u32, BucketHandle, Merge);

/// A finished merge. If it failed, its segment file has been removed.
pub(super) struct Merged {
    pub(super) job: MergeJob,
    pub(super) written: Result<(Arc<SegmentFile>, Vec<MergedRows>), CheckpointError>,
}

impl MergeJob {
    /// Writes the segment, unless `stop` is set before it is complete.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Merged {
        let buckets = std::mem::take(&mut self.buckets);
        let mut merged = Vec::with_capacity(buckets.len());
        let written = write_segment(&*self.disk, &self.dir, self.segment, |out| {
            let mut out = UntilStopped { out, stop };
            let mut segment = SegmentWriter::new(&mut out)?;
            for (ordinal, handle) in buckets {
                merged.extend(self.write_bucket(&mut segment, ordinal, handle)?);
            }
            Ok::<_, CheckpointError>(segment.finish()?)
        });
        let written = written.map_err(|error| error.at(&self.dir.file_path(self.segment)));
        Merged {
            job: self,
            written: written.map(|file| (file, merged)),
        }
    }

    /// Gets the bucket's rows only now: the rows of all buckets together would need too much memory.
    fn write_bucket(
        &self,
        segment: &mut SegmentWriter<'_>,
        ordinal: u32,
        handle: BucketHandle,
    ) -> Result<Option<MergedRows>, CheckpointError> {
        let segments = self.chosen.clone();
        let Ok(merge) = handle.send(BeginMerge { segments }).blocking_recv() else {
            let exists = |catalog: &Catalog| catalog.bucket_by_ordinal(ordinal).is_some();
            return match self.catalog.read(exists) {
                true => Err(CheckpointError::ActorGone(ordinal)),
                false => Ok(None),
            };
        };
        let Some(merge) = merge else { return Ok(None) };
        // By the retention now, so that rows admitted by a longer retention are never compared with the shorter one
        // before it: what may be dropped are the rows before the cutoff, and the listed ones.
        let removable = |catalog: &Catalog| {
            let (bucket, at_ns) = (catalog.bucket_by_ordinal(ordinal)?, self.deletes_at_ns?);
            Some((bucket.retention_cutoff_ns(at_ns), expired_rows(bucket, at_ns)))
        };
        let removable = self.catalog.read(removable);
        let (cutoff_ns, expired) = removable.unwrap_or((i64::MIN, Arc::default()));
        segment.begin_bucket(ordinal);
        merge.write(segment, cutoff_ns, &expired)?;
        Ok(Some((ordinal, handle, merge)))
    }
}

impl Task {
    /// Starts a merge of segments, if one is worthwhile.
    pub(super) fn begin_merge(&mut self) -> Option<MergeJob> {
        if self.clock.monotonic_ns() < self.merge_again_at_ns || self.journal.directory_is_gone() {
            return None;
        }
        let chosen = choose_merge(&self.mergeable())?;
        let files = chosen.iter().filter_map(|id| self.segments.open.get(id));
        let holders: BTreeSet<u32> = files
            .flat_map(|file| file.parts().map(|part| part.bucket))
            .collect();
        let mut buckets = self.buckets.running();
        buckets.retain(|(ordinal, _)| holders.contains(ordinal));
        buckets.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        Some(MergeJob {
            disk: Arc::clone(&self.disk),
            dir: self.segments.files.dir.clone(),
            catalog: self.catalog.clone(),
            segment: self.segments.files.take_id(),
            chosen,
            buckets,
            deletes_at_ns: self.deletes_at_ns,
        })
    }

    /// The segments that may be merged. Excluded are segments with a damaged block, and segments with rows of a bucket
    /// that is set apart, because it has no actor that could provide them.
    fn mergeable(&self) -> Vec<SegmentUse> {
        let apart = self.set_apart.buckets.iter();
        let apart = apart.flat_map(|ordinal| self.usage.of(*ordinal));
        let kept: HashSet<u64> = apart.chain(self.unmergeable.iter().copied()).collect();
        let segments = self.segments.open.values();
        let mergeable = segments.filter(|segment| !kept.contains(&segment.id()));
        let uses = mergeable.map(|segment| SegmentUse {
            id: segment.id(),
            bytes: segment.bytes(),
            footer_bytes: segment.footer_bytes(),
            rows: segment.rows(),
            live_rows: match self.manifest.dead_of(segment.id()).len() > DEAD_RANGES_OF_SEGMENT_MAX {
                true => self.usage.live_rows(segment.id()).min(1),
                false => self.usage.live_rows(segment.id()),
            },
        });
        uses.collect()
    }

    /// Replaces the input segments by the merged one, or logs why that is not possible.
    pub(super) fn finish_merge(&mut self, Merged { job, written }: Merged) {
        let installed = written.and_then(|(file, merged)| {
            self.segments.add(Arc::clone(&file));
            let installed = self.install_merge(&job, &file, merged);
            installed.inspect_err(|_| self.discard())
        });
        match installed {
            Ok(()) => self.merges += 1,
            Err(CheckpointError::Merge(MergeError::Engine(EngineError::Damaged(block)))) => {
                self.buckets.damaged().note(&block);
                let (segment, error) = (block.segment, EngineError::Damaged(block));
                // Retrying would fail each time.
                tracing::error!(segment, %error, "a damaged segment is not merged until the next start; `tidewatch check` reports what is damaged");
                self.unmergeable.insert(segment);
            }
            Err(error) => {
                // The remaining disk space is needed for the log. An immediate retry would use it up again and again.
                self.merge_again_at_ns = self.clock.monotonic_ns().saturating_add(MERGE_PAUSE_NS);
                tracing::warn!(segments = ?job.chosen, %error, "a merge of segments failed; it is retried after a pause");
            }
        }
    }

    /// Writes the manifest with the merged segment, and gives it to the stores.
    fn install_merge(
        &mut self,
        job: &MergeJob,
        file: &Arc<SegmentFile>,
        merged: Vec<MergedRows>,
    ) -> Result<(), CheckpointError> {
        let is_chosen = |id: &u64| job.chosen.contains(id);
        for ordinal in &self.set_apart.buckets {
            if self.usage.of(*ordinal).any(|id| is_chosen(&id)) {
                // The bucket was set apart after the merge began: its rows may be in the input segments only.
                return Err(CheckpointError::ActorGone(*ordinal));
            }
        }
        let mut parts = Vec::with_capacity(merged.len());
        for (ordinal, handle, merge) in merged {
            // Read the part before the manifest names the file: nothing may fail after that.
            parts.push((ordinal, handle, merge, file.part(ordinal)?));
        }
        // Deleted rows are not in the new segment. If the log lost the record of the deletion, they would be missing.
        self.journal.flush()?;
        let mut manifest = self.manifest.clone();
        manifest.segments.retain(|id| !is_chosen(id));
        if file.parts().next().is_some() {
            manifest.segments.push(file.id());
        }
        manifest.next_segment = self.segments.files.next_id();
        self.install_manifest(manifest)?;
        let mut replies = Vec::with_capacity(parts.len());
        for (ordinal, handle, merge, part) in parts {
            // If the store panics now, this is what it uses after the next start.
            let others = self.usage.of_with_rows(ordinal).filter(|(id, _)| !is_chosen(id));
            let new = part.as_ref().map(|part| (file.id(), part.rows()));
            let after = others.chain(new).collect();
            self.usage.set(ordinal, after);
            let cutoff_ns = self.cutoff_ns(ordinal);
            let live_segments = handle.send(FinishMerge {
                merge,
                part,
                cutoff_ns,
            });
            replies.push((ordinal, live_segments));
        }
        for (ordinal, live_segments) in replies {
            self.update_usage(ordinal, live_segments);
        }
        // Other buckets have no live rows left in the input segments.
        self.usage.forget(&job.chosen);
        self.remove_unnamed();
        // Merged rows may have been deleted meanwhile.
        self.drop_unused()
    }
}
