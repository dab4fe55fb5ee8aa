//! The steps of one checkpoint, in the order that makes a crash between any two harmless:
//! runs of the ledger → catalog snapshot naming them → readers adopt them → buckets let go of their answers → segment file
//! → manifest naming it → the store adopts it → mark → the log is trimmed → the ledger's merges. A manifest that covers a
//! record is not in force before the snapshot that names the run with the record's answer. Merges of segments have steps
//! of their own, which may fall between any two checkpoints.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use engine::{Checkpoint, EngineError, MergeError};
use wal::disk::{Bytes, Disk};

use super::checkpointer::CheckpointError;
use super::expiry::{DeletionClock, Reading};
use super::layout::Layout;
use super::merging::{MergeJob, Merged};
use super::set_apart::SetApart;
use crate::bucket::{BucketFiles, BucketHandle, BucketState, Buckets, CarriedDir, Manifest, shared};
use crate::catalog::{CatalogHandle, Frozen};
use crate::clock::{Clock, SECOND_NS};
use crate::journal::{JournalWriter, RelaxedDisk};
use crate::ledger::{Keep, LedgerFiles, NewEntry, Runs, Saving};

/// How long nothing is merged behind a merge that the disk refused.
pub(super) const MERGE_PAUSE_NS: i64 = 60 * SECOND_NS;

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
    pub(super) journal: JournalWriter,
    /// By ordinal; a bucket gets its directory with its first checkpoint.
    pub(super) files: HashMap<u32, BucketFiles>,
    pub(super) ledger: LedgerFiles,
    /// Sequence that the catalog's snapshot covers.
    pub(super) catalog_covered: u64,
    /// Ordinals of the buckets of which the snapshot says that they have a manifest.
    pub(super) manifests: Vec<u32>,
    pub(super) merges: u64,
    /// Buckets that may have segments to merge: all at the start, and behind each checkpoint.
    pub(super) to_merge: Vec<(u32, BucketHandle)>,
    /// Until then, in monotonic nanoseconds, nothing is merged: the disk has refused the last merge.
    pub(super) merge_again_at_ns: i64,
    /// Buckets with a damaged block among the segments to merge.
    pub(super) unmergeable: HashSet<u32>,
    /// The log's disk, when its syncs are put off.
    pub(super) relaxed: Option<Arc<RelaxedDisk>>,
    pub(super) set_apart: SetApart,
}

impl Task {
    /// Brings everything that is dispatched now into segments and snapshot, and trims the log.
    pub(super) fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        let (covered, snapshot) = self.checkpoint_buckets()?;
        self.layout.write_mark(&*self.disk, covered)?;
        self.journal.trim(covered)?;
        self.remove_carried()?;
        // Last, for a merge needs room, and trimming makes some; and a merge that fails must not keep the log long.
        if let Err(error) = self.merge_ledger(snapshot) {
            tracing::warn!(%error, "a merge of the ledger failed; its runs stay as they are");
        }
        Ok(())
    }

    /// Removes the records carried on of buckets that opened again: their segments have them by now.
    fn remove_carried(&self) -> Result<(), CheckpointError> {
        let dir = CarriedDir::of(&self.layout.data_dir);
        dir.remove_unfinished(&*self.disk)?;
        let mut files = dir.list(&*self.disk)?;
        files.retain(|file| !self.set_apart.contains(file.bucket));
        dir.remove(&*self.disk, &files);
        Ok(())
    }

    /// Brings the catalog and the ledger into snapshot and runs, and the buckets' rows into segments; answers up to which
    /// sequence, and the snapshot. Of buckets that are set apart, and of those that come to be here, the records up to
    /// there are carried on.
    pub(super) fn checkpoint_buckets(&mut self) -> Result<(u64, Frozen), CheckpointError> {
        let now = Reading {
            now_ns: self.clock.now_ns(),
            monotonic_ns: self.clock.monotonic_ns(),
        };
        self.deletes_at_ns = self.deletion.read(now, self.buckets.newest_ingest_ns());
        // Messages sent from here on reach an actor behind all records up to `covered`.
        let covered = self.journal.dispatched()?;
        let mut running = self.buckets.running();
        let begun: Vec<_> = running
            .iter()
            .map(|(ordinal, handle)| self.begin_bucket(*ordinal, handle))
            .collect();
        let mut snapshot = self.checkpoint_catalog(covered, &begun)?;
        let (mut outcome, mut failing) = (Ok(()), BTreeMap::new());
        for ((ordinal, handle), begun) in running.iter().zip(begun) {
            // A bucket that fails keeps the log from being trimmed, but not the others' rows in memory.
            let checkpointed = match begun {
                Some(begun) => self.checkpoint_bucket(*ordinal, handle, begun),
                None => self.without_actor(*ordinal),
            };
            if let Err(error) = &checkpointed {
                tracing::error!(ordinal, %error, "a bucket's checkpoint failed");
            }
            if self.set_apart.note(*ordinal, &checkpointed) {
                failing.extend(checkpointed.err().map(|error| (*ordinal, error.to_string())));
            } else {
                outcome = outcome.and(checkpointed);
            }
        }
        self.set_apart(covered, failing)?;
        running.retain(|(ordinal, _)| !self.set_apart.contains(*ordinal));
        if self.clock.monotonic_ns() >= self.merge_again_at_ns {
            running.retain(|(ordinal, _)| !self.unmergeable.contains(ordinal));
            self.to_merge = running;
        }
        outcome?;
        if self.written_manifests() != self.manifests {
            // Which buckets must have a manifest, it says only once they have one.
            let runs = self.ledger.ledger().runs();
            self.put_in_force(&mut snapshot, self.catalog_covered, runs)?;
        }
        Ok((covered, snapshot))
    }

    /// Carries on what the log holds of buckets that are set apart, and sets these apart, too.
    fn set_apart(&mut self, covered: u64, failing: BTreeMap<u32, String>) -> Result<(), CheckpointError> {
        if failing.is_empty() && self.set_apart.ordinals().next().is_none() {
            return Ok(());
        }
        self.make_log_durable()?;
        let mark = self.layout.read_mark(&*self.disk)?;
        let also = failing.keys().copied().collect();
        self.set_apart
            .carry(&*self.disk, &self.layout, &also, (mark, covered))?;
        self.set_apart.add(also);
        for (ordinal, reason) in failing {
            self.files.remove(&ordinal);
            self.buckets.set_apart(ordinal, reason);
        }
        Ok(())
    }

    /// Begins a merge of segments in one of the buckets, where one is worth it.
    pub(super) fn begin_merge(&mut self) -> Option<MergeJob> {
        while let Some((ordinal, handle)) = self.to_merge.last().cloned() {
            let merge = handle.with_blocking(|state| state.store.begin_merge()).flatten();
            // Segments are in a directory, which is open.
            if let (Some(merge), Some(files)) = (merge, self.files.get_mut(&ordinal)) {
                let segment = files.new_segment();
                return Some(MergeJob {
                    ordinal,
                    handle,
                    merge,
                    cutoff_ns: self.cutoff_ns(ordinal)(),
                    segment,
                });
            }
            self.to_merge.pop();
        }
        None
    }

    /// Puts a merged segment in the place of those it was made of, or tells why it cannot be.
    pub(super) fn finish_merge(&mut self, merged: Merged) {
        let ordinal = merged.job.ordinal;
        match self.adopt_merge(merged) {
            Ok(()) => {}
            Err(CheckpointError::Engine(error)) => {
                // It would fail again each time.
                self.unmergeable.insert(ordinal);
                self.to_merge.retain(|(it, _)| *it != ordinal);
                tracing::error!(ordinal, %error, "segments are not merged until the next start; `tidewatch check` reports what is damaged");
            }
            Err(error) => {
                // What the disk has left is the log's: a merge that was tried again at once would take it, over and over.
                self.to_merge.clear();
                self.merge_again_at_ns = self.clock.monotonic_ns().saturating_add(MERGE_PAUSE_NS);
                tracing::warn!(ordinal, %error, "a merge failed; the segments stay as they are for a while");
            }
        }
    }

    fn adopt_merge(&mut self, Merged { job, written }: Merged) -> Result<(), CheckpointError> {
        let MergeJob {
            ordinal,
            handle,
            merge,
            segment,
            ..
        } = job;
        let Some(files) = self.files.get_mut(&ordinal) else {
            if self.exists(ordinal) {
                // It was set apart meanwhile. The next start removes the segment, which no manifest names.
                return Ok(());
            }
            // The bucket was deleted meanwhile; its directory is there again if the segment came last.
            return Ok(BucketFiles::remove(&*self.disk, &self.layout.data_dir, ordinal)?);
        };
        let home = written.map_err(|error| match error {
            MergeError::Io(error) => CheckpointError::Io(error),
            MergeError::Engine(error) => CheckpointError::Engine(error),
        })?;
        files.wrote(&segment);
        let cutoff_ns = self.cutoff_ns(ordinal);
        let id = segment.id();
        let adopted = handle.with_blocking(move |state| -> Result<InUse, EngineError> {
            state.store.finish_merge(merge, id, shared(home), cutoff_ns())?;
            Ok(in_use(state))
        });
        let Some(adopted) = adopted else { return Ok(()) };
        // Also where all of it has expired: the manifest may be the same as before, and nothing else would remove it.
        if !adopted.as_ref().is_ok_and(|in_use| in_use.contains(&id)) {
            self.files(ordinal)?.discard(&[id]);
        }
        self.settle(ordinal, adopted?)?;
        self.merges += 1;
        Ok(())
    }

    /// Before which moment a bucket's rows may be removed, by its retention at the time of the call. Called by the
    /// bucket's actor: there, rows that a longer retention let in are never met before that retention is.
    fn cutoff_ns(&self, ordinal: u32) -> impl Fn() -> i64 + Send + use<> {
        let (catalog, deletes_at_ns) = (self.catalog.clone(), self.deletes_at_ns);
        move || {
            let cutoff = |catalog: &crate::catalog::Catalog| {
                Some(
                    catalog
                        .bucket_by_ordinal(ordinal)?
                        .retention_cutoff_ns(deletes_at_ns?),
                )
            };
            catalog.read(cutoff).unwrap_or(i64::MIN)
        }
    }

    fn files(&mut self, ordinal: u32) -> Result<&mut BucketFiles, CheckpointError> {
        match self.files.entry(ordinal) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let (cache, ledger) = (self.buckets.cache(), self.ledger.ledger());
                let (disk, data_dir) = (Arc::clone(&self.disk), &self.layout.data_dir);
                let (mut files, _) = BucketFiles::open(disk, data_dir, ordinal, cache, ledger)?;
                // A new bucket: whatever is there was never a part of it.
                files.remove_leftovers(0..u64::MAX)?;
                Ok(entry.insert(files))
            }
        }
    }

    /// Sets aside what a bucket's checkpoint is to write; `None` when its actor is gone.
    fn begin_bucket(&self, ordinal: u32, handle: &BucketHandle) -> Option<Begun> {
        let (cutoff_ns, deletes_at_ns) = (self.cutoff_ns(ordinal), self.deletes_at_ns);
        handle.with_blocking(move |state| {
            state.store.expire(cutoff_ns());
            state.idempotency.forget(deletes_at_ns.unwrap_or(i64::MIN));
            Begun {
                checkpoint: state.begin_checkpoint(),
                answers: state.idempotency.unsaved(),
                covered: state.applied,
                next_sequence: state.next_sequence,
                ingested_at_ns: state.ingested_at_ns,
                in_use: in_use(state),
            }
        })
    }

    /// Writes what was set aside, once the ledger has the answers.
    fn checkpoint_bucket(
        &mut self,
        ordinal: u32,
        handle: &BucketHandle,
        begun: Begun,
    ) -> Result<(), CheckpointError> {
        let segment = self.write_bucket(ordinal, &begun)?;
        let Begun {
            checkpoint, answers, ..
        } = begun;
        let cutoff_ns = self.cutoff_ns(ordinal);
        let adopted = handle.with_blocking(move |state| -> Result<InUse, EngineError> {
            // Readers of the ledger find them there by now.
            state.idempotency.saved(&answers);
            if let (Some(checkpoint), Some((id, home))) = (checkpoint, segment) {
                state
                    .store
                    .finish_checkpoint(checkpoint, id, shared(home), cutoff_ns())?;
            }
            Ok(in_use(state))
        });
        let Some(adopted) = adopted else { return Ok(()) };
        self.settle(ordinal, adopted?)
    }

    /// An actor that is gone belongs to a deleted bucket, or has panicked: then what only its memory had is in the log
    /// still, and must stay there until a restart has replayed it.
    fn without_actor(&self, ordinal: u32) -> Result<(), CheckpointError> {
        if self.exists(ordinal) {
            return Err(CheckpointError::ActorGone(ordinal));
        }
        Ok(())
    }

    fn exists(&self, ordinal: u32) -> bool {
        let exists = |catalog: &crate::catalog::Catalog| catalog.bucket_by_ordinal(ordinal).is_some();
        self.catalog.read(exists)
    }

    /// Writes the segment of a bucket's checkpoint and the manifest that names it, or leaves none of them behind.
    fn write_bucket(&mut self, ordinal: u32, begun: &Begun) -> Result<NewSegment, CheckpointError> {
        let files = self.files(ordinal)?;
        let mut new_segments = Vec::new();
        let outcome = write_files(files, begun, &mut new_segments);
        if outcome.is_err() {
            files.discard(&new_segments);
        }
        outcome
    }

    /// Before anything says to have covered a part of the log, that part must be on the disk.
    fn make_log_durable(&self) -> Result<(), CheckpointError> {
        Ok(self.relaxed.as_ref().map_or(Ok(()), |relaxed| relaxed.flush())?)
    }

    /// Puts a manifest of exactly the files in use in force, where that changes anything.
    fn settle(&mut self, ordinal: u32, segments: InUse) -> Result<(), CheckpointError> {
        let files = self.files(ordinal)?;
        let manifest = Manifest {
            segments,
            ..files.manifest().clone()
        };
        if files.differs(&manifest) {
            files.commit(manifest)?;
        }
        Ok(())
    }

    /// Writes the ledger's tail, the buckets' answers, and the snapshot that names them, which it answers.
    fn checkpoint_catalog(
        &mut self,
        covered: u64,
        begun: &[Option<Begun>],
    ) -> Result<Frozen, CheckpointError> {
        let (mut frozen, sequence) = self.journal.freeze_catalog()?;
        self.make_log_durable()?;
        debug_assert!(sequence >= covered, "the journal never goes back");
        let answers = begun.iter().flatten().flat_map(|begun| &begun.answers);
        let saving = Saving {
            tail: frozen.ledger_tail(),
            answers: answers.collect(),
            catalog: Vec::new(),
        };
        let keep = self.keep(&frozen);
        let runs = self.ledger.save(saving, &keep);
        let runs = runs.inspect_err(|_| self.discard_runs())?;
        let manifests = self.written_manifests();
        if sequence > self.catalog_covered
            || runs.ids() != frozen.ledger_runs()
            || manifests != self.manifests
        {
            self.put_in_force(&mut frozen, sequence, runs)?;
        }
        Ok(frozen)
    }

    /// Which entries of the ledger are kept in the files that a checkpoint writes.
    fn keep(&self, frozen: &Frozen) -> Keep {
        Keep::of(frozen, self.deletes_at_ns.unwrap_or(i64::MIN))
    }

    /// Ordinals of the buckets whose manifest is on the disk.
    fn written_manifests(&self) -> Vec<u32> {
        let written = self.files.iter().filter(|(_, files)| files.has_manifest());
        let mut manifests: Vec<u32> = written.map(|(ordinal, _)| *ordinal).collect();
        // Of a bucket that is set apart, what was said of it stands.
        manifests.extend(
            self.manifests
                .iter()
                .filter(|ordinal| self.set_apart.contains(**ordinal)),
        );
        manifests.sort_unstable();
        manifests
    }

    /// Writes a snapshot that names these runs, has readers find them, and removes those it does not name.
    fn put_in_force(
        &mut self,
        frozen: &mut Frozen,
        sequence: u64,
        runs: Runs,
    ) -> Result<(), CheckpointError> {
        let tail = frozen.ledger_tail().clone();
        frozen.set_ledger_runs(runs.ids());
        let manifests = self.written_manifests();
        let written = self
            .layout
            .write_catalog(&*self.disk, frozen, sequence, &manifests);
        if let Err(error) = written {
            self.discard_runs();
            return Err(error.into());
        }
        (self.catalog_covered, self.manifests) = (sequence, manifests);
        let ledger = &self.ledger;
        self.catalog
            .ledger_saved(&tail, runs.ids(), || ledger.adopt(runs.clone()));
        self.ledger.remove_unused();
        Ok(())
    }

    /// Removes run files written for a checkpoint that failed, so that tries on a full disk do not fill it further. What
    /// the snapshot on disk names stays: the new one may be in force although writing it failed.
    fn discard_runs(&mut self) {
        if let Ok(on_disk) = self.layout.read_catalog(&*self.disk) {
            self.ledger.remove_unnamed(on_disk.catalog.ledger().runs());
        }
    }

    /// Merges runs that are worth it; the snapshot of this checkpoint, written again, names the merged ones.
    fn merge_ledger(&mut self, mut snapshot: Frozen) -> Result<(), CheckpointError> {
        let merged = self.ledger.merge(&self.keep(&snapshot));
        let merged = merged.inspect_err(|_| self.discard_runs())?;
        if let Some(runs) = merged {
            self.put_in_force(&mut snapshot, self.catalog_covered, runs)?;
            self.merges += 1;
        }
        Ok(())
    }

    /// Removes the directory of a deleted bucket.
    pub(super) fn remove_bucket(&mut self, ordinal: u32) -> Result<(), CheckpointError> {
        // Were the deletion lost with the log's end, the bucket would be there again, and its points missing.
        self.make_log_durable()?;
        self.files.remove(&ordinal);
        Ok(BucketFiles::remove(&*self.disk, &self.layout.data_dir, ordinal)?)
    }
}

/// Ids of segments.
type InUse = Vec<u64>;
/// A segment that was written, if there were rows for one.
type NewSegment = Option<(u64, Arc<dyn Bytes>)>;

/// What a bucket's checkpoint is to write.
struct Begun {
    checkpoint: Option<Checkpoint>,
    answers: Vec<NewEntry>,
    covered: u64,
    next_sequence: u64,
    ingested_at_ns: Option<i64>,
    in_use: InUse,
}

fn write_files(
    files: &mut BucketFiles,
    begun: &Begun,
    new_segments: &mut Vec<u64>,
) -> Result<NewSegment, CheckpointError> {
    // Named are the files that the store reads from, not those the manifest named before: where an earlier try failed
    // behind its manifest, the same rows would count twice.
    let mut segments = begun.in_use.clone();
    let mut written = None;
    if let Some(checkpoint) = &begun.checkpoint {
        let (id, home) = files.write_segment(|out| checkpoint.write(out))?;
        new_segments.push(id);
        segments.push(id);
        written = Some((id, home));
    }
    let Begun {
        covered,
        next_sequence,
        ingested_at_ns,
        ..
    } = *begun;
    let manifest = Manifest {
        covered,
        next_sequence,
        next_file: 0,
        segments,
        // What an older program left there is in the ledger by now.
        answers: Vec::new(),
        ingested_at_ns,
    };
    // Also when there are no rows to write: those that were deleted or have expired unsaved took sequences, too.
    if files.differs(&manifest) {
        files.commit(manifest)?;
    }
    Ok(written)
}

fn in_use(state: &mut BucketState) -> InUse {
    // Forgotten by the store here, out of the manifest next, and only then removed.
    state.store.take_dead_segments();
    state.store.segments()
}
