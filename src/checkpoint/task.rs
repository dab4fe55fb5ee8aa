//! The steps of one checkpoint, in the order that makes a crash between any two harmless:
//! segment file → manifest naming it → the store adopts it → catalog snapshot → mark → the log is trimmed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use engine::MergeError;
use wal::disk::Disk;

use super::checkpointer::CheckpointError;
use super::layout::Layout;
use crate::bucket::{AnswersFile, BucketFiles, BucketHandle, BucketState, Buckets, Manifest, shared};
use crate::catalog::CatalogHandle;
use crate::clock::Clock;
use crate::journal::JournalWriter;

/// What the checkpointer's thread owns.
pub(super) struct Task {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) layout: Layout,
    pub(super) buckets: Buckets,
    pub(super) catalog: CatalogHandle,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) journal: JournalWriter,
    /// By ordinal; a bucket gets its directory with its first checkpoint.
    pub(super) files: HashMap<u32, BucketFiles>,
    /// Sequence that the catalog's snapshot covers.
    pub(super) catalog_covered: u64,
    pub(super) merges: u64,
}

impl Task {
    /// Brings everything that is dispatched now into segments and snapshot, and trims the log.
    pub(super) fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        // Messages sent from here on reach an actor behind all records up to `covered`.
        let covered = self.journal.dispatched();
        for (ordinal, handle) in self.buckets.running() {
            self.checkpoint_bucket(ordinal, &handle)?;
        }
        self.checkpoint_catalog(covered)?;
        self.layout.write_mark(&*self.disk, covered)?;
        self.journal.trim(covered)?;
        Ok(())
    }

    fn cutoff_ns(&self, ordinal: u32) -> i64 {
        let now_ns = self.clock.now_ns();
        let cutoff = |catalog: &crate::catalog::Catalog| {
            Some(catalog.bucket_by_ordinal(ordinal)?.retention_cutoff_ns(now_ns))
        };
        self.catalog.read(cutoff).unwrap_or(i64::MIN)
    }

    fn files(&mut self, ordinal: u32) -> Result<&mut BucketFiles, CheckpointError> {
        match self.files.entry(ordinal) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let (files, _) = BucketFiles::open(Arc::clone(&self.disk), &self.layout.data_dir, ordinal)?;
                Ok(entry.insert(files))
            }
        }
    }

    fn checkpoint_bucket(&mut self, ordinal: u32, handle: &BucketHandle) -> Result<(), CheckpointError> {
        let (cutoff_ns, now_ns) = (self.cutoff_ns(ordinal), self.clock.now_ns());
        let begun = handle.with_blocking(move |state| {
            state.store.expire(cutoff_ns);
            state.idempotency.forget(now_ns);
            let answers = state.idempotency.unsaved();
            (
                state.store.begin_checkpoint(),
                answers,
                state.applied,
                state.next_sequence,
            )
        });
        // An actor that is gone belongs to a deleted bucket.
        let Some((checkpoint, answers, applied, next_sequence)) = begun else {
            return Ok(());
        };
        let files = self.files(ordinal)?;
        let mut manifest = files.manifest().clone();
        let segment = match &checkpoint {
            Some(checkpoint) => Some(files.write_segment(|out| checkpoint.write(out))?),
            None => None,
        };
        let answers_file = if answers.is_empty() {
            None
        } else {
            let (id, bytes) = files.write_answers(&AnswersFile::encode(&answers))?;
            Some(
                AnswersFile::open(id, bytes)
                    .ok_or_else(|| io::Error::other("an answers file just written is damaged"))?,
            )
        };
        if let Some((id, _)) = &segment {
            manifest.segments.push(*id);
        }
        manifest
            .answers
            .extend(answers_file.as_ref().map(AnswersFile::id));
        let something = segment.is_some() || answers_file.is_some();
        if something {
            manifest.covered = applied;
            manifest.next_sequence = next_sequence;
            self.commit(ordinal, manifest)?;
        }
        let adopted = handle.with_blocking(
            move |state| -> Result<(Vec<u64>, Vec<u64>), engine::EngineError> {
                if let (Some(checkpoint), Some((id, home))) = (checkpoint, segment) {
                    state
                        .store
                        .finish_checkpoint(checkpoint, id, shared(home), cutoff_ns)?;
                }
                if let Some(file) = answers_file {
                    state.idempotency.saved(&answers, file);
                }
                Ok(in_use(state))
            },
        );
        let Some(adopted) = adopted else { return Ok(()) };
        self.settle(ordinal, adopted?)?;
        self.merge_bucket(ordinal, handle)
    }

    /// Puts a manifest of exactly the files in use in force, where that changes anything.
    fn settle(
        &mut self,
        ordinal: u32,
        (segments, answers): (Vec<u64>, Vec<u64>),
    ) -> Result<(), CheckpointError> {
        let manifest = self.files(ordinal)?.manifest().clone();
        if manifest.segments != segments || manifest.answers != answers {
            self.commit(
                ordinal,
                Manifest {
                    segments,
                    answers,
                    ..manifest
                },
            )?;
        }
        Ok(())
    }

    fn commit(&mut self, ordinal: u32, manifest: Manifest) -> Result<(), CheckpointError> {
        let files = self.files(ordinal)?;
        let next_file = files.manifest().next_file;
        Ok(files.commit(Manifest {
            next_file,
            ..manifest
        })?)
    }

    /// Merges until nothing is worth merging.
    fn merge_bucket(&mut self, ordinal: u32, handle: &BucketHandle) -> Result<(), CheckpointError> {
        while let Some(Some(merge)) = handle.with_blocking(|state| state.store.begin_merge()) {
            let cutoff_ns = self.cutoff_ns(ordinal);
            let files = self.files(ordinal)?;
            let written = files.write_segment(|out| merge.write(out, cutoff_ns));
            let (id, home) = written.map_err(|error: MergeError| match error {
                MergeError::Io(error) => CheckpointError::Io(error),
                MergeError::Engine(error) => CheckpointError::Engine(error),
            })?;
            let adopted = handle.with_blocking(move |state| {
                state.store.finish_merge(merge, id, shared(home), cutoff_ns)?;
                Ok::<_, engine::EngineError>(in_use(state))
            });
            let Some(adopted) = adopted else { return Ok(()) };
            self.settle(ordinal, adopted?)?;
            self.merges += 1;
        }
        Ok(())
    }

    fn checkpoint_catalog(&mut self, covered: u64) -> Result<(), CheckpointError> {
        let (frozen, sequence) = self.journal.freeze_catalog()?;
        debug_assert!(sequence >= covered, "the journal never goes back");
        if sequence > self.catalog_covered {
            self.layout.write_catalog(&*self.disk, &frozen, sequence)?;
            self.catalog_covered = sequence;
        }
        Ok(())
    }

    /// Removes the directory of a deleted bucket.
    pub(super) fn remove_bucket(&mut self, ordinal: u32) -> io::Result<()> {
        self.files.remove(&ordinal);
        BucketFiles::remove(&*self.disk, &self.layout.data_dir, ordinal)
    }
}

fn in_use(state: &mut BucketState) -> (Vec<u64>, Vec<u64>) {
    // Forgotten by the store here, out of the manifest next, and only then removed.
    state.store.take_dead_segments();
    (state.store.segments(), state.idempotency.files())
}
