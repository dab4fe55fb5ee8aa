//! The steps of a checkpoint, in an order that makes a crash between any two of them harmless: segment and runs →
//! manifest naming them → readers adopt them → the log is trimmed → the ledger's merges, which come first where
//! checkpoints are published. Merges of segments have steps of their own, which may fall between any two checkpoints.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Write};
use std::sync::Arc;

use disk::Disk;
use engine::{SegmentFile, SegmentPart, SegmentWriter};
use wal::Sequence;

use super::buckets::{BucketCheckpoint, LiveSegments, NO_MARK};
use super::error::CheckpointError;
use super::expiry::{DeletionClock, Reading};
use super::forgetting::with_many_without_points;
use super::layout::Layout;
use super::manifest::Manifest;
use super::publish::Publish;
use super::segments::Segments;
use super::set_apart::SetApart;
use super::usage::Usage;
use crate::bucket::{BeginCheckpoint, BucketHandle, Buckets, CarriedDir};
use crate::catalog::{Catalog, CatalogHandle, Frozen};
use crate::clock::{Clock, MINUTE_NS};
use crate::journal::JournalWriter;
use crate::ledger::{Keep, LedgerFiles, NewEntry, Runs};
use crate::series::new_entries;

/// Expired rows are removed from files within this time, in addition to the delay of [`DeletionClock`].
const SWEEP_PERIOD_NS: u64 = 10 * MINUTE_NS as u64;

/// The state owned by the checkpointer's thread.
pub(super) struct Task {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) layout: Layout,
    pub(super) buckets: Buckets,
    pub(super) catalog: CatalogHandle,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) deletion: DeletionClock,
    /// The deletion time of the last checkpoint; `None` if it deleted nothing.
    pub(super) deletes_at_ns: Option<i64>,
    /// The deletion time of the last checkpoint that asked all buckets to drop expired rows.
    pub(super) swept_at_ns: Option<i64>,
    pub(super) journal: JournalWriter,
    pub(super) segments: Segments,
    pub(super) usage: Usage,
    pub(super) ledger: LedgerFiles,
    /// The manifest in force.
    pub(super) manifest: Manifest,
    /// Whether the manifest on disk may differ from this one, because writing it has failed.
    pub(super) manifest_in_doubt: bool,
    /// The catalog as stored in its runs.
    pub(super) saved: Frozen,
    pub(super) merges: u64,
    /// No merge starts before this time, in monotonic nanoseconds, because the last one failed.
    pub(super) merge_again_at_ns: i64,
    /// Segments with a damaged block.
    pub(super) unmergeable: HashSet<u64>,
    pub(super) set_apart: SetApart,
    /// Keeps checkpoints elsewhere, too.
    pub(super) publish: Option<Box<dyn Publish>>,
}

/// Files that a checkpoint has written, and that the manifest does not name yet: the segment, the part of it that
/// belongs to each bucket, and the runs.
type Written = (Option<Arc<SegmentFile>>, BTreeMap<u32, SegmentPart>, Runs);

impl Task {
    /// Writes everything dispatched so far to segments and runs, and trims the log.
    pub(super) fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        // What is published is what the next owner of a shard begins with: a merge after it would be lost with this one.
        if self.publish.is_some() {
            self.try_merge_ledger();
        }
        self.checkpoint_files()?;
        let stored = self
            .publish
            .as_mut()
            .map_or(Ok(None), |publish| publish.before_trim());
        match stored.map_err(CheckpointError::Publish)? {
            Some(root) => self.journal.trim_to_root(self.manifest.covered, root)?,
            None => self.journal.trim(self.manifest.covered)?,
        }
        match &mut self.publish {
            Some(publish) => publish.trimmed(),
            // Last, because a merge needs disk space, which trimming frees.
            None => self.try_merge_ledger(),
        }
        Ok(())
    }

    /// A failed merge must not keep the log long.
    fn try_merge_ledger(&mut self) {
        if let Err(error) = self.merge_ledger() {
            tracing::warn!(%error, "a merge of the ledger failed; its runs stay unmerged");
        }
    }

    /// The checkpoint without trimming: the log still holds what the files cover.
    pub(super) fn checkpoint_files(&mut self) -> Result<(), CheckpointError> {
        self.refuse_without_directory()?;
        let now = Reading {
            now_ns: self.clock.now_ns(),
            monotonic_ns: self.clock.monotonic_ns(),
        };
        self.deletes_at_ns = self.deletion.read(now, self.buckets.newest_ingest_ns());
        // Messages sent from here on reach an actor after all records up to `covered`.
        let covered = self.journal.dispatched()?;
        let asked = self.buckets_to_ask();
        let done = self.checkpoint_of(&asked, covered);
        if done.is_err() {
            asked.iter().for_each(|(_, handle)| handle.set_changed());
        }
        done
    }

    /// The buckets that have changed since the last checkpoint. Once per sweep period all buckets, because rows expire
    /// even when nothing changes.
    fn buckets_to_ask(&mut self) -> Vec<(u32, BucketHandle)> {
        let is_near = |deletes_at_ns: i64| {
            let swept_at_ns = self.swept_at_ns.unwrap_or(i64::MIN);
            deletes_at_ns.abs_diff(swept_at_ns) < SWEEP_PERIOD_NS
        };
        let all = !self.deletes_at_ns.is_none_or(is_near);
        let mut asked = self.buckets.running();
        // `take_changed` is called for each bucket, so that a change is not processed twice.
        asked.retain(|(_, handle)| handle.take_changed() || all);
        self.swept_at_ns = if all { self.deletes_at_ns } else { self.swept_at_ns };
        asked
    }

    /// Writes the rows of these buckets and the changes of the catalog to files.
    fn checkpoint_of(
        &mut self,
        asked: &[(u32, BucketHandle)],
        covered: Sequence,
    ) -> Result<(), CheckpointError> {
        self.forget_series(asked, covered);
        let (begun, gone) = self.begin(asked);
        // A bucket without an actor that was not deleted has panicked. The log still has what was only in its memory;
        // those records are carried until a restart has replayed them.
        let failed: BTreeSet<u32> = gone.into_iter().filter(|ordinal| self.exists(*ordinal)).collect();
        for bucket in &begun {
            self.usage
                .set(bucket.ordinal, bucket.unsaved.live_segments.clone());
        }
        // Must precede making the log durable: if the log lost the record of a deletion, the bucket would exist again
        // without its points.
        self.forget_deleted();
        let (frozen, sequence) = self.journal.freeze_catalog()?;
        debug_assert!(sequence >= covered, "the journal never goes back");
        self.journal.flush()?;
        self.set_apart.carry(
            &*self.disk,
            &self.layout,
            &failed,
            (self.manifest.covered, covered),
        )?;
        let written = self.write(&begun, &frozen);
        let (segment, parts, runs) = written.inspect_err(|_| self.discard())?;
        let mut manifest = self.manifest_of(&begun, &frozen, segment.as_deref());
        (manifest.covered, manifest.catalog_covered) = (covered, sequence);
        manifest.runs = runs.ids();
        manifest.carried = self.carried_files(&failed)?;
        self.install_manifest(manifest)?;
        // Make the runs, which hold the frozen tail, visible to readers.
        let ledger = &self.ledger;
        self.catalog
            .ledger_saved(frozen.ledger_tail(), || ledger.adopt(runs));
        self.saved = frozen.without_tail();
        self.adopt_parts(begun, parts);
        self.remove_unnamed();
        for ordinal in failed {
            self.set_apart.buckets.insert(ordinal);
            let reason = CheckpointError::ActorGone(ordinal).to_string();
            self.buckets.set_apart(ordinal, reason);
        }
        self.set_apart.carried(covered);
        // The next checkpoint visits buckets of which this one has removed the last points of many series.
        let with_many = with_many_without_points(asked);
        with_many.for_each(|(_, handle)| handle.set_changed());
        Ok(())
    }

    /// Writes the segment and the runs of a checkpoint.
    fn write(&mut self, begun: &[BucketCheckpoint], frozen: &Frozen) -> Result<Written, CheckpointError> {
        let mut parts = BTreeMap::new();
        let segment = self.write_segment(begun)?;
        if let Some(segment) = &segment {
            // Read the parts before the manifest names the file: nothing may fail after that.
            for part in segment.parts() {
                parts.extend(segment.part(part.bucket)?.map(|read| (part.bucket, read)));
            }
        }
        Ok((segment, parts, self.write_runs(begun, frozen)?))
    }

    /// Writes the rows of all buckets to one segment; writes none if there are no rows.
    fn write_segment<'a>(
        &mut self,
        begun: &'a [BucketCheckpoint],
    ) -> Result<Option<Arc<SegmentFile>>, CheckpointError> {
        let rows = |bucket: &'a BucketCheckpoint| Some((bucket.ordinal, bucket.unsaved.checkpoint.as_ref()?));
        let mut checkpoints: Vec<_> = begun.iter().filter_map(rows).collect();
        if checkpoints.is_empty() {
            return Ok(None);
        }
        checkpoints.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        let written = self.segments.write(|out: &mut dyn Write| {
            let mut segment = SegmentWriter::new(out)?;
            for (ordinal, rows) in checkpoints {
                segment.begin_bucket(ordinal);
                rows.write(&mut segment)?;
            }
            Ok::<_, CheckpointError>(segment.finish()?)
        });
        written.map(Some).map_err(|(path, error)| error.at(&path))
    }

    /// Writes the ledger's tail, the answers to idempotency keys, and the changes of the catalog.
    fn write_runs(&mut self, begun: &[BucketCheckpoint], frozen: &Frozen) -> Result<Runs, CheckpointError> {
        let catalog = NewEntry::changes(frozen, &self.saved).map_err(io::Error::other)?;
        let answers = begun.iter().flat_map(|bucket| &bucket.unsaved.answers);
        let ledger = self.ledger.ledger();
        let mut series = Vec::new();
        for bucket in begun.iter().filter(|bucket| !bucket.unsaved.series.is_empty()) {
            series.extend(new_entries(bucket.ordinal, ledger, &bucket.unsaved.series)?);
        }
        let keep = self.keep(frozen);
        let entries = answers.chain(&catalog).chain(&series).collect();
        Ok(self.ledger.save(frozen.ledger_tail(), entries, &keep)?)
    }

    /// The next manifest: the one in force, with the new marks of these buckets and the segments in use.
    fn manifest_of(
        &self,
        begun: &[BucketCheckpoint],
        frozen: &Frozen,
        written: Option<&SegmentFile>,
    ) -> Manifest {
        let mut manifest = self.manifest.clone();
        let known = frozen.bucket_ordinals();
        manifest.buckets.retain(|ordinal, _| known.contains(ordinal));
        for bucket in begun {
            let mark = bucket.mark();
            if mark != NO_MARK && known.contains(&bucket.ordinal) {
                manifest.buckets.insert(bucket.ordinal, mark);
            }
        }
        // Use the segments that the stores read from, not those of the previous manifest. If an earlier attempt failed
        // after writing its manifest, the same rows would otherwise count twice.
        manifest.segments = self.usage.segments().collect();
        manifest.segments.extend(written.map(SegmentFile::id));
        manifest.unconverted.retain(|ordinal| known.contains(ordinal));
        manifest.next_segment = self.segments.files.next_id();
        manifest
    }

    /// The carried files in use: those of buckets that are set apart, or are about to be.
    fn carried_files(&self, failed: &BTreeSet<u32>) -> Result<Vec<(u32, Sequence)>, CheckpointError> {
        let files = CarriedDir::of(&self.layout.data_dir).list(&*self.disk)?;
        let counts = |bucket: u32| self.set_apart.buckets.contains(&bucket) || failed.contains(&bucket);
        let files = files.into_iter().filter(|file| counts(file.bucket));
        Ok(files.map(|file| (file.bucket, file.first)).collect())
    }

    /// Replaces the manifest on disk, if it has changed.
    pub(super) fn install_manifest(&mut self, mut manifest: Manifest) -> Result<(), CheckpointError> {
        manifest.forget_unused_dead();
        // The segments may have been written by this program.
        manifest.note_written_segment();
        if manifest == self.manifest && !self.manifest_in_doubt {
            return Ok(());
        }
        self.refuse_without_directory()?;
        self.manifest_in_doubt = true;
        let written = manifest.write(&*self.disk, &self.layout.data_dir);
        written.inspect_err(|_| self.discard())?;
        self.manifest_in_doubt = false;
        self.manifest = manifest;
        if let Some(publish) = &mut self.publish {
            publish.offer(&self.manifest);
        }
        Ok(())
    }

    /// From now on, checkpoints are kept elsewhere, too, beginning with the one in force.
    pub(super) fn publish_to(&mut self, mut publish: Box<dyn Publish>) {
        if self.manifest != Manifest::default() {
            publish.offer(&self.manifest);
        }
        self.publish = Some(publish);
    }

    /// Fails if the data directory was removed or replaced: nothing is written to or removed from the directory now at
    /// its path.
    fn refuse_without_directory(&self) -> Result<(), CheckpointError> {
        match self.journal.directory_is_gone() {
            true => Err(CheckpointError::DirectoryGone),
            false => Ok(()),
        }
    }

    /// Gives the stores the written parts, which replace their rows in memory.
    fn adopt_parts(&mut self, begun: Vec<BucketCheckpoint>, mut parts: BTreeMap<u32, SegmentPart>) {
        let mut replies = Vec::with_capacity(begun.len());
        for bucket in begun {
            let ordinal = bucket.ordinal;
            let (part, cutoff_ns) = (parts.remove(&ordinal), self.cutoff_ns(ordinal));
            // If the store panics now, this is what it uses after the next start.
            let mut after = bucket.unsaved.live_segments.clone();
            after.extend(part.as_ref().map(|part| (part.segment(), part.rows())));
            self.usage.set(ordinal, after);
            replies.extend(bucket.finish(part, cutoff_ns).map(|reply| (ordinal, reply)));
        }
        for (ordinal, reply) in replies {
            self.update_usage(ordinal, reply);
        }
    }

    /// Notes what a store uses, once its actor has replied.
    pub(super) fn update_usage(&mut self, ordinal: u32, reply: LiveSegments) {
        match reply.blocking_recv() {
            Ok(live_segments) => self.usage.set(ordinal, live_segments),
            // Either the bucket was deleted, or its actor panicked; then what it used is what it will use after the
            // next start.
            Err(_) if !self.exists(ordinal) => self.usage.remove(ordinal),
            Err(_) => {}
        }
    }

    /// Removes the files that the manifest in force does not name.
    pub(super) fn remove_unnamed(&mut self) {
        let named: HashSet<u64> = self.manifest.segments.iter().copied().collect();
        self.segments.retain(|id| named.contains(&id));
        self.buckets.damaged().retain(|id| named.contains(&id));
        self.ledger.remove_unused();
        let carried: HashSet<(u32, Sequence)> = self.manifest.carried.iter().copied().collect();
        let dir = CarriedDir::of(&self.layout.data_dir);
        if let Err(error) =
            dir.remove_others(&*self.disk, |file| carried.contains(&(file.bucket, file.first)))
        {
            tracing::warn!(%error, "files of carried records that are no longer in use could not be removed yet");
        }
    }

    /// Removes the files of a failed checkpoint, so that retries on a full disk do not fill it further. Files that the
    /// manifest on disk names are kept: the new one may be in force although writing it reported an error.
    pub(super) fn discard(&mut self) {
        if self.journal.directory_is_gone() {
            return;
        }
        let Ok(on_disk) = Manifest::read(&*self.disk, &self.layout.data_dir) else {
            return;
        };
        let on_disk = on_disk.unwrap_or_default();
        let named = self.manifest.segments.iter().chain(&on_disk.segments);
        let named: HashSet<u64> = named.copied().collect();
        let usage = &self.usage;
        self.segments
            .retain(|id| named.contains(&id) || usage.live_rows(id) > 0);
        self.ledger.remove_unnamed(&on_disk.runs);
    }

    /// The time before which a bucket's rows may be removed, by its retention at the time of the call. Called by the
    /// bucket's actor, so that rows admitted by a longer retention are never compared with the shorter one before it.
    pub(super) fn cutoff_ns(&self, ordinal: u32) -> impl Fn() -> i64 + Send + use<> {
        let (catalog, deletes_at_ns) = (self.catalog.clone(), self.deletes_at_ns);
        let cutoff_ns = move |catalog: &Catalog| {
            let bucket = catalog.bucket_by_ordinal(ordinal)?;
            Some(bucket.retention_cutoff_ns(deletes_at_ns?))
        };
        move || catalog.read(cutoff_ns).unwrap_or(i64::MIN)
    }

    /// Drops the usage of deleted buckets, whose deletion may not have been reported yet.
    pub(super) fn forget_deleted(&mut self) {
        let usage = &mut self.usage;
        self.catalog
            .read(|catalog| usage.retain(|ordinal| catalog.bucket_by_ordinal(ordinal).is_some()));
    }

    pub(super) fn exists(&self, ordinal: u32) -> bool {
        let exists = |catalog: &Catalog| catalog.bucket_by_ordinal(ordinal).is_some();
        self.catalog.read(exists)
    }

    /// Which entries of the ledger a checkpoint keeps in the files that it writes.
    fn keep(&self, frozen: &Frozen) -> Keep {
        Keep::new(frozen.ledger_owners(), self.deletes_at_ns.unwrap_or(i64::MIN))
    }

    /// Merges runs of the ledger, where worthwhile.
    fn merge_ledger(&mut self) -> Result<(), CheckpointError> {
        let keep = self.keep(&self.saved);
        let merged = self.ledger.merge(&keep);
        if let Some(runs) = merged.inspect_err(|_| self.discard())? {
            let manifest = Manifest {
                runs: runs.ids(),
                ..self.manifest.clone()
            };
            self.install_manifest(manifest)?;
            self.ledger.adopt(runs);
            self.ledger.remove_unused();
        }
        Ok(())
    }

    /// Drops a deleted bucket's rows. Files that no other bucket uses are removed now, the others when they are merged.
    pub(super) fn remove_bucket(&mut self, ordinal: u32) -> Result<(), CheckpointError> {
        self.usage.remove(ordinal);
        self.drop_unused()
    }

    /// Removes the segments that no bucket uses any more.
    pub(super) fn drop_unused(&mut self) -> Result<(), CheckpointError> {
        let unused = |id: &u64| self.usage.live_rows(*id) == 0;
        if self.manifest.segments.iter().any(unused) {
            // If the log lost the record of the deletion, the bucket would exist again without its points.
            self.journal.flush()?;
            let mut manifest = self.manifest.clone();
            manifest.segments.retain(|id| !unused(id));
            self.install_manifest(manifest)?;
            self.remove_unnamed();
        }
        Ok(())
    }

    /// Asks these buckets for what the checkpoint writes of them. Also returns the ordinals of those without an actor.
    fn begin(&self, asked: &[(u32, BucketHandle)]) -> (Vec<BucketCheckpoint>, Vec<u32>) {
        let ask = |(ordinal, handle): &(u32, BucketHandle)| {
            handle.send(BeginCheckpoint {
                cutoff_ns: self.cutoff_ns(*ordinal),
                deletes_at_ns: self.deletes_at_ns,
            })
        };
        // Ask all of them before waiting for the first.
        let replies: Vec<_> = asked.iter().map(ask).collect();
        let (mut begun, mut gone) = (Vec::with_capacity(asked.len()), Vec::new());
        for ((ordinal, handle), reply) in asked.iter().zip(replies) {
            match reply.blocking_recv() {
                Ok(unsaved) => begun.push(BucketCheckpoint {
                    ordinal: *ordinal,
                    handle: handle.clone(),
                    unsaved,
                }),
                Err(_) => gone.push(*ordinal),
            }
        }
        (begun, gone)
    }
}
