//! The steps of one checkpoint, in the order that makes a crash between any two harmless:
//! segment and runs → manifest naming them → readers adopt them → the log is trimmed → the ledger's merges. Merges of
//! segments have steps of their own, which may fall between any two checkpoints.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::sync::Arc;

use engine::{ExpiredRows, SegmentFile, SegmentPart, SegmentWriter};
use wal::Sequence;
use wal::disk::Disk;

use super::buckets::{Begun, LiveSegments, NO_MARK};
use super::checkpointer::CheckpointError;
use super::expiry::{DeletionClock, Reading};
use super::layout::Layout;
use super::manifest::Manifest;
use super::segments::Segments;
use super::set_apart::SetApart;
use super::usage::Usage;
use crate::bucket::{BucketHandle, Buckets, CarriedDir, expired_rows};
use crate::catalog::{Catalog, CatalogHandle, Frozen};
use crate::clock::{Clock, MINUTE_NS};
use crate::journal::{JournalWriter, RelaxedDisk};
use crate::ledger::{Keep, LedgerFiles, NewEntry, Runs, Saving};

/// What has expired goes from the files within this time, besides what [`DeletionClock`] waits for.
const SWEEP_PERIOD_NS: u64 = 10 * MINUTE_NS as u64;

/// What the checkpointer's thread owns.
pub(super) struct Task {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) layout: Layout,
    pub(super) buckets: Buckets,
    pub(super) catalog: CatalogHandle,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) deletion: DeletionClock,
    /// The moment that the last checkpoint deleted by; `None` when it deleted nothing.
    pub(super) deletes_at_ns: Option<i64>,
    /// The same of the last checkpoint that asked all buckets for what has expired.
    pub(super) swept_at_ns: Option<i64>,
    pub(super) journal: JournalWriter,
    pub(super) segments: Segments,
    pub(super) usage: Usage,
    pub(super) ledger: LedgerFiles,
    /// The manifest in force.
    pub(super) manifest: Manifest,
    /// Whether the disk may have another one, as writing it has failed.
    pub(super) manifest_in_doubt: bool,
    /// The catalog as its runs have it.
    pub(super) saved: Frozen,
    pub(super) merges: u64,
    /// Until then, in monotonic nanoseconds, nothing is merged: the last merge has failed.
    pub(super) merge_again_at_ns: i64,
    /// Segments with a damaged block.
    pub(super) unmergeable: HashSet<u64>,
    /// The log's disk, when its syncs are put off.
    pub(super) relaxed: Option<Arc<RelaxedDisk>>,
    pub(super) set_apart: SetApart,
}

/// What a checkpoint has written, and the manifest does not name yet.
struct Written {
    segment: Option<Arc<SegmentFile>>,
    /// What the segment holds of each bucket.
    parts: BTreeMap<u32, SegmentPart>,
    runs: Runs,
}

impl Task {
    /// Brings everything that is dispatched now into segments and runs, and trims the log.
    pub(super) fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        self.checkpoint_files()?;
        self.journal.trim(self.manifest.covered)?;
        // Last, for a merge needs room, and trimming makes some; and a merge that fails must not keep the log long.
        if let Err(error) = self.merge_ledger() {
            tracing::warn!(%error, "a merge of the ledger failed; its runs stay as they are");
        }
        Ok(())
    }

    /// The same but for the log, which still holds what the files cover.
    pub(super) fn checkpoint_files(&mut self) -> Result<(), CheckpointError> {
        self.refuse_without_directory()?;
        let now = Reading {
            now_ns: self.clock.now_ns(),
            monotonic_ns: self.clock.monotonic_ns(),
        };
        self.deletes_at_ns = self.deletion.read(now, self.buckets.newest_ingest_ns());
        // Messages sent from here on reach an actor behind all records up to `covered`.
        let covered = self.journal.dispatched()?;
        let asked = self.buckets_to_ask();
        let done = self.checkpoint_of(&asked, covered);
        if done.is_err() {
            asked.iter().for_each(|(_, handle)| handle.set_changed());
        }
        done
    }

    /// The buckets that have something for a checkpoint. Now and then all of them: what has expired goes although
    /// nothing has changed.
    fn buckets_to_ask(&mut self) -> Vec<(u32, BucketHandle)> {
        let is_near = |deletes_at_ns: i64| {
            let swept_at_ns = self.swept_at_ns.unwrap_or(i64::MIN);
            deletes_at_ns.abs_diff(swept_at_ns) < SWEEP_PERIOD_NS
        };
        let all = !self.deletes_at_ns.is_none_or(is_near);
        let mut asked = self.buckets.running();
        // Each is taken: what is asked for now is not asked for again.
        asked.retain(|(_, handle)| handle.take_changed() || all);
        self.swept_at_ns = if all { self.deletes_at_ns } else { self.swept_at_ns };
        asked
    }

    /// Brings what these buckets have, and what changed in the catalog, into files.
    fn checkpoint_of(
        &mut self,
        asked: &[(u32, BucketHandle)],
        covered: Sequence,
    ) -> Result<(), CheckpointError> {
        let (begun, gone) = self.begin(asked);
        // One whose actor is gone though it was not deleted has panicked: what only its memory had is in the log, and is
        // carried on until a restart has replayed it.
        let failed: BTreeSet<u32> = gone.into_iter().filter(|ordinal| self.exists(*ordinal)).collect();
        for (ordinal, begun) in &begun {
            self.usage.set(*ordinal, begun.live_segments.clone());
        }
        // Before the log is made durable: were a deletion lost with its end, the bucket would be there again, and its points
        // missing.
        self.forget_deleted();
        let (frozen, sequence) = self.journal.freeze_catalog()?;
        debug_assert!(sequence >= covered, "the journal never goes back");
        self.make_log_durable()?;
        self.set_apart.carry(
            &*self.disk,
            &self.layout,
            &failed,
            (self.manifest.covered, covered),
        )?;
        let written = self.write(&begun, &frozen);
        let Written { segment, parts, runs } = written.inspect_err(|_| self.discard())?;
        let mut manifest = self.manifest_of(&begun, &frozen, segment.as_deref());
        (manifest.covered, manifest.catalog_covered) = (covered, sequence);
        manifest.runs = runs.ids();
        manifest.carried = self.carried_files(&failed)?;
        self.put_in_force(manifest)?;
        self.adopt_runs(&frozen, runs);
        self.saved = frozen.without_tail();
        self.settle(begun, parts);
        self.remove_unnamed();
        for ordinal in failed {
            self.set_apart.add(ordinal);
            let reason = CheckpointError::ActorGone(ordinal).to_string();
            self.buckets.set_apart(ordinal, reason);
        }
        self.set_apart.carried(covered);
        Ok(())
    }

    /// Writes the segment and the runs of a checkpoint.
    fn write(&mut self, begun: &[(u32, Begun)], frozen: &Frozen) -> Result<Written, CheckpointError> {
        let mut parts = BTreeMap::new();
        let segment = self.write_segment(begun)?;
        if let Some(segment) = &segment {
            // Read now, as nothing may fail once the manifest names it.
            for part in segment.parts() {
                parts.extend(segment.part(part.bucket)?.map(|read| (part.bucket, read)));
            }
        }
        let runs = self.write_runs(begun, frozen)?;
        Ok(Written { segment, parts, runs })
    }

    /// Writes the rows of all buckets to one segment; none where there are no rows.
    fn write_segment(&mut self, begun: &[(u32, Begun)]) -> Result<Option<Arc<SegmentFile>>, CheckpointError> {
        let mut checkpoints = Vec::new();
        for (ordinal, begun) in begun {
            checkpoints.extend(begun.checkpoint.as_ref().map(|checkpoint| (*ordinal, checkpoint)));
        }
        if checkpoints.is_empty() {
            return Ok(None);
        }
        checkpoints.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        let id = self.segments.take_id();
        let dir = self.segments.dir().clone();
        let written = dir.write(&*self.disk, id, |out: &mut dyn Write| {
            let mut segment = SegmentWriter::new(out)?;
            for (ordinal, checkpoint) in checkpoints {
                segment.begin_bucket(ordinal);
                checkpoint.write(&mut segment)?;
            }
            Ok::<u64, CheckpointError>(segment.finish()?)
        });
        let written = written.map_err(|error| error.at(&dir.segment_path(id)))?;
        self.segments.add(Arc::clone(&written));
        Ok(Some(written))
    }

    /// Writes the ledger's tail, the answers to idempotency keys, and what changed in the catalog.
    fn write_runs(&mut self, begun: &[(u32, Begun)], frozen: &Frozen) -> Result<Runs, CheckpointError> {
        let mut catalog = Vec::new();
        for change in frozen.changes_since(&self.saved) {
            catalog.push(NewEntry::object(change.map_err(std::io::Error::other)?));
        }
        let saving = Saving {
            tail: frozen.ledger_tail(),
            answers: begun.iter().flat_map(|(_, begun)| &begun.answers).collect(),
            catalog: catalog.iter().collect(),
        };
        let keep = self.keep(frozen);
        Ok(self.ledger.save(saving, &keep)?)
    }

    /// The manifest in force, with what these buckets have now and the segments that are used.
    fn manifest_of(
        &self,
        begun: &[(u32, Begun)],
        frozen: &Frozen,
        written: Option<&SegmentFile>,
    ) -> Manifest {
        let mut manifest = self.manifest.clone();
        let known = frozen.bucket_ordinals();
        manifest.buckets.retain(|ordinal, _| known.contains(ordinal));
        for (ordinal, begun) in begun {
            if begun.mark != NO_MARK && known.contains(ordinal) {
                manifest.buckets.insert(*ordinal, begun.mark);
            }
        }
        // Those that the stores read from, not those that the manifest named before: where an earlier try failed behind
        // its manifest, the same rows would count twice.
        manifest.segments = self.usage.segments().collect();
        manifest.segments.extend(written.map(SegmentFile::id));
        manifest.unconverted.retain(|ordinal| known.contains(ordinal));
        manifest.next_segment = self.segments.next_id();
        manifest
    }

    /// The files of carried records that count: those of buckets that are set apart, or are about to be.
    fn carried_files(&self, failed: &BTreeSet<u32>) -> Result<Vec<(u32, Sequence)>, CheckpointError> {
        let files = CarriedDir::of(&self.layout.data_dir).list(&*self.disk)?;
        let counts = |bucket: u32| self.set_apart.contains(bucket) || failed.contains(&bucket);
        let files = files.into_iter().filter(|file| counts(file.bucket));
        Ok(files.map(|file| (file.bucket, file.first)).collect())
    }

    /// Replaces the manifest on the disk, where it is another one.
    pub(super) fn put_in_force(&mut self, manifest: Manifest) -> Result<(), CheckpointError> {
        if manifest == self.manifest && !self.manifest_in_doubt {
            return Ok(());
        }
        self.refuse_without_directory()?;
        self.manifest_in_doubt = true;
        let written = manifest.write(&*self.disk, &self.layout.data_dir);
        written.inspect_err(|_| self.discard())?;
        self.manifest_in_doubt = false;
        self.manifest = manifest;
        Ok(())
    }

    /// Nothing is written to, or removed from, what stands in the place of a data directory that is gone.
    fn refuse_without_directory(&self) -> Result<(), CheckpointError> {
        match self.journal.directory_is_gone() {
            true => Err(CheckpointError::DirectoryGone),
            false => Ok(()),
        }
    }

    /// Has readers find these runs, which hold the frozen tail.
    fn adopt_runs(&mut self, frozen: &Frozen, runs: Runs) {
        let ledger = &self.ledger;
        self.catalog
            .ledger_saved(frozen.ledger_tail(), || ledger.adopt(runs));
    }

    /// Gives the stores what was written of their rows.
    fn settle(&mut self, begun: Vec<(u32, Begun)>, mut parts: BTreeMap<u32, SegmentPart>) {
        let mut settled = Vec::with_capacity(begun.len());
        for (ordinal, begun) in begun {
            let (part, cutoff_ns) = (parts.remove(&ordinal), self.cutoff_ns(ordinal));
            // What a store that panics meanwhile will use at the next start.
            let mut after = begun.live_segments.clone();
            after.extend(part.as_ref().map(|part| (part.segment(), part.rows())));
            self.usage.set(ordinal, after);
            settled.extend(begun.finish(part, cutoff_ns).map(|told| (ordinal, told)));
        }
        for (ordinal, told) in settled {
            self.note_usage(ordinal, told);
        }
    }

    /// Notes what a store uses, once it has told.
    pub(super) fn note_usage(&mut self, ordinal: u32, told: LiveSegments) {
        match told.blocking_recv() {
            Ok(live_segments) => self.usage.set(ordinal, live_segments),
            // Deleted meanwhile; or it has panicked, and what it had is what it will have at the next start.
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
            tracing::warn!(%error, "files of carried records that are no longer in use stay for now");
        }
    }

    /// Removes what was written for a checkpoint that failed, so that tries on a full disk do not fill it further. What
    /// the manifest on the disk names stays: a new one may be in force although writing it failed.
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

    /// Before which moment a bucket's rows may be removed, by its retention at the time of the call. Called by the
    /// bucket's actor: there, rows that a longer retention let in are never met before that retention is.
    pub(super) fn cutoff_ns(&self, ordinal: u32) -> impl Fn() -> i64 + Send + use<> {
        let (catalog, deletes_at_ns) = (self.catalog.clone(), self.deletes_at_ns);
        move || {
            let cutoff = |catalog: &Catalog| {
                Some(
                    catalog
                        .bucket_by_ordinal(ordinal)?
                        .retention_cutoff_ns(deletes_at_ns?),
                )
            };
            catalog.read(cutoff).unwrap_or(i64::MIN)
        }
    }

    /// Which of a bucket's rows are gone although its retention reaches them, and may be removed; as for the cutoff.
    pub(super) fn expired_rows(&self, ordinal: u32) -> impl Fn() -> Arc<[ExpiredRows]> + Send + use<> {
        let (catalog, deletes_at_ns) = (self.catalog.clone(), self.deletes_at_ns);
        move || {
            let expired =
                |catalog: &Catalog| Some(expired_rows(catalog.bucket_by_ordinal(ordinal)?, deletes_at_ns?));
            catalog.read(expired).unwrap_or_default()
        }
    }

    /// Lets go of what deleted buckets used, of which nobody may have told yet.
    pub(super) fn forget_deleted(&mut self) {
        let catalog = &self.catalog;
        let known = catalog.read(|catalog| catalog.buckets().map(|it| it.ordinal).collect::<HashSet<u32>>());
        self.usage.retain(|ordinal| known.contains(&ordinal));
    }

    pub(super) fn exists(&self, ordinal: u32) -> bool {
        let exists = |catalog: &Catalog| catalog.bucket_by_ordinal(ordinal).is_some();
        self.catalog.read(exists)
    }

    /// Before anything says to have covered a part of the log, that part must be on the disk.
    pub(super) fn make_log_durable(&self) -> Result<(), CheckpointError> {
        Ok(self.relaxed.as_ref().map_or(Ok(()), |relaxed| relaxed.flush())?)
    }

    /// Which entries of the ledger are kept in the files that a checkpoint writes.
    fn keep(&self, frozen: &Frozen) -> Keep {
        Keep::of(frozen, self.deletes_at_ns.unwrap_or(i64::MIN))
    }

    /// Merges runs that are worth it.
    fn merge_ledger(&mut self) -> Result<(), CheckpointError> {
        let keep = self.keep(&self.saved);
        let merged = self.ledger.merge(&keep);
        if let Some(runs) = merged.inspect_err(|_| self.discard())? {
            let manifest = Manifest {
                runs: runs.ids(),
                ..self.manifest.clone()
            };
            self.put_in_force(manifest)?;
            self.ledger.adopt(runs);
            self.ledger.remove_unused();
        }
        Ok(())
    }

    /// Lets go of a deleted bucket's rows; files that nobody else uses go at once, the others when they are merged.
    pub(super) fn remove_bucket(&mut self, ordinal: u32) -> Result<(), CheckpointError> {
        self.usage.remove(ordinal);
        self.drop_unused()
    }

    /// Removes the segments that nobody uses any more.
    pub(super) fn drop_unused(&mut self) -> Result<(), CheckpointError> {
        let unused = |id: &u64| self.usage.live_rows(*id) == 0;
        if self.manifest.segments.iter().any(unused) {
            // Were the deletion lost with the log's end, the bucket would be there again, and its points missing.
            self.make_log_durable()?;
            let mut manifest = self.manifest.clone();
            manifest.segments.retain(|id| !unused(id));
            self.put_in_force(manifest)?;
            self.remove_unnamed();
        }
        Ok(())
    }

    fn begin(&self, asked: &[(u32, BucketHandle)]) -> (Vec<(u32, Begun)>, Vec<u32>) {
        let asked: Vec<_> = asked
            .iter()
            .map(|(ordinal, handle)| {
                let begun = Begun::ask(handle, self.cutoff_ns(*ordinal), self.deletes_at_ns);
                (*ordinal, begun)
            })
            .collect();
        let (mut begun, mut gone) = (Vec::with_capacity(asked.len()), Vec::new());
        for (ordinal, asked) in asked {
            match asked.blocking_recv() {
                Ok(it) => begun.push((ordinal, it)),
                Err(_) => gone.push(ordinal),
            }
        }
        (begun, gone)
    }
}
