//! The writing side of the ledger: writes runs, merges them, and removes runs that are no longer used. Owned by the
//! checkpointer, the only writer. The manifest names the files in use; the checkpointer writes it between
//! [`LedgerFiles::save`] and [`LedgerFiles::adopt`].

use std::iter;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use parking_lot::RwLock;

use super::error::LedgerError;
use super::merge::{Keep, NewestVersions, worth_merging};
use super::payload::Payload;
use super::run::Run;
use super::writer::{Item, RunWriter};
use super::{Ledger, Runs, runs_dir};
use crate::catalog::{Change, EntryKey, Frozen, FrozenTail, Stream, Unpacker};
use crate::ids::ObjectId;
use crate::sealed_file::{self, SealedFiles};

/// An entry of a stream that has no in-memory tail.
#[derive(Clone, Debug)]
pub struct NewEntry {
    pub key: EntryKey,
    /// Encoded content. For an object of the catalog, or a series, an empty payload is a tombstone.
    pub payload: Arc<[u8]>,
}

impl NewEntry {
    /// The objects of the catalog that were changed or deleted since `saved`, an earlier state of it.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn changes(catalog: &Frozen, saved: &Frozen) -> Result<Vec<Self>, rmp_serde::encode::Error> {
        let changes = catalog.changes_since(saved);
        let object = |Change { key, content }| {
            let key = EntryKey {
                stream: Stream::Catalog,
                owner: key.owner,
                at_ns: key.place,
                id: key.id,
            };
            NewEntry {
                key,
                payload: content.unwrap_or_default().into(),
            }
        };
        changes.map(|change| change.map(object)).collect()
    }
}

/// The writing side of the ledger.
pub struct LedgerFiles {
    files: SealedFiles,
    ledger: Ledger,
    /// Whether the directory is known to exist, with its name synced.
    dir_is_made: bool,
    /// Streams that have a damaged run among those to merge.
    unmergeable: Vec<Stream>,
}

impl LedgerFiles {
    /// Opens the runs that the manifest names. Modifies nothing.
    ///
    /// # Errors
    /// I/O errors, or damage.
    pub fn open(disk: Arc<dyn Disk>, data_dir: &Path, named: &[u64]) -> Result<Self, LedgerError> {
        let dir = runs_dir(data_dir);
        let runs = named.iter().map(|id| Run::open_file(&*disk, &dir, *id));
        let runs = runs.map(|run| run.map(Arc::new)).collect::<Result<_, _>>()?;
        let files = SealedFiles::list(disk, dir.clone(), named, 1);
        Ok(Self {
            files: files.map_err(|error| LedgerError::Io(dir.path().to_owned(), error))?,
            ledger: Ledger(Arc::new(RwLock::new(runs))),
            dir_is_made: false,
            unmergeable: Vec::new(),
        })
    }

    /// The reading side of the ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Removes run files that are not in use: leftovers of a crash, and runs that were replaced. If one cannot be
    /// removed, that is only logged.
    pub fn remove_unused(&mut self) {
        self.remove_unnamed(&[]);
    }

    /// The same after a failed checkpoint, when the manifest on disk names other runs than those in use.
    pub fn remove_unnamed(&mut self, named: &[u64]) {
        let used = self.ledger.runs().ids();
        self.files.retain(|id| used.contains(&id) || named.contains(&id));
    }

    /// Writes the data of a checkpoint, one file per stream that has any: histories, deliveries and triggers from the
    /// tail, and `entries`, the answers to idempotency keys of all buckets ([`NewEntry::answer`]) and the objects of the
    /// catalog that were changed or deleted ([`NewEntry::changes`]). No two entries have the same key; they may be in
    /// any order. Returns all runs of the ledger, to be named by a snapshot and then adopted; fully expired runs are
    /// left out. Each file is synced, and the directory once.
    ///
    /// # Errors
    /// I/O errors.
    pub fn save(
        &mut self,
        tail: &FrozenTail,
        mut entries: Vec<&NewEntry>,
        keep: &Keep,
    ) -> Result<Runs, LedgerError> {
        let mut runs = self.ledger.runs().0.to_vec();
        runs.retain(|run| keep.not_expired(run.stream, run.footer.newest_ns));
        let kept = runs.len();
        for stream in Stream::OF_TAIL {
            let mut unpacker = Unpacker::default();
            let items = tail.of(stream).map(|(key, entry)| {
                let payload = unpacker.read(&entry.payload).map_err(LedgerError::Packed)?;
                Ok(Item::new(*key, entry.again, Payload::from(payload)))
            });
            let kept =
                |item: &Result<_, _>| item.as_ref().is_ok_and(|item| keep.keeps(item)) || item.is_err();
            runs.extend(self.write_run(stream, items.filter(kept))?);
        }
        entries.sort_unstable_by_key(|entry| entry.key);
        for of_stream in entries.chunk_by(|one, next| one.key.stream == next.key.stream) {
            // Entries of these streams are not counted.
            let items = of_stream
                .iter()
                .map(|entry| Item::new(entry.key, false, &*entry.payload));
            let items = items.filter(|item| keep.keeps(item));
            runs.extend(self.write_run(of_stream[0].key.stream, items.map(Ok))?);
        }
        if runs.len() > kept {
            self.sync_dir()?;
        }
        Ok(runs.into_iter().collect())
    }

    /// Makes these runs visible to readers. Called under the catalog's lock once a snapshot names them.
    pub fn adopt(&self, runs: Runs) {
        *self.ledger.0.write() = runs;
    }

    /// Merges runs where it is worthwhile, with at most one merge per stream; `None` if there was nothing to merge.
    /// Returns the runs like [`LedgerFiles::save`].
    ///
    /// # Errors
    /// I/O errors, or damage: then the stream is not merged again until the next start.
    pub fn merge(&mut self, keep: &Keep) -> Result<Option<Runs>, LedgerError> {
        let mut runs = self.ledger.runs().0.to_vec();
        let before = runs.len();
        for stream in Stream::ALL {
            if self.unmergeable.contains(&stream) {
                continue;
            }
            let (of_stream, mut others): (Vec<_>, Vec<_>) =
                runs.iter().cloned().partition(|run| run.stream == stream);
            let sizes: Vec<u64> = of_stream.iter().map(|run| run.bytes()).collect();
            let Some(merged) = worth_merging(stream, &sizes) else {
                continue;
            };
            others.extend_from_slice(&of_stream[..merged.start]);
            let with_oldest = merged.start == 0;
            let written =
                NewestVersions::new(of_stream[merged].iter().map(|run| &**run)).and_then(|mut newest| {
                    let items = iter::from_fn(|| newest.next_kept(keep, with_oldest).transpose());
                    self.write_run(stream, items)
                });
            if let Err(LedgerError::Damaged { .. }) = &written {
                // A retry would fail at every checkpoint.
                self.unmergeable.push(stream);
            }
            others.extend(written?);
            runs = others;
        }
        // Every merge reduces the number of runs.
        if runs.len() == before {
            return Ok(None);
        }
        self.sync_dir()?;
        Ok(Some(runs.into_iter().collect()))
    }

    /// Reads a whole stream in order: the newest version of each entry, without tombstones. `each` receives owner,
    /// time, id and payload. Only one block of each run is in memory.
    ///
    /// # Errors
    /// Damage, or an error of `each`.
    pub fn for_each<E: From<LedgerError>>(
        &self,
        stream: Stream,
        mut each: impl FnMut(ObjectId, i64, ObjectId, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let runs = self.ledger.runs();
        let mut newest = NewestVersions::new(runs.of(stream))?;
        while let Some(version) = newest.next()? {
            if !version.is_tombstone() {
                let (entry, payload) = (&version.entry, version.run.payload(&version.entry)?);
                each(version.owner, entry.at_ns, entry.id, &payload)?;
            }
        }
        Ok(())
    }

    /// Makes the names of written files durable.
    fn sync_dir(&self) -> Result<(), LedgerError> {
        let dir = self.files.dir.path();
        let synced = self.files.disk.sync_dir(dir);
        synced.map_err(|error| LedgerError::Io(dir.to_owned(), error))
    }

    /// Writes entries to a file whose name is not [synced](Self::sync_dir) yet; `None` if there are no entries.
    fn write_run<P: Deref<Target = [u8]>>(
        &mut self,
        stream: Stream,
        mut items: impl Iterator<Item = Result<Item<P>, LedgerError>>,
    ) -> Result<Option<Arc<Run>>, LedgerError> {
        let Some(first) = items.next().transpose()? else {
            return Ok(None);
        };
        if !self.dir_is_made {
            let dir = self.files.dir.path();
            let made = self.files.disk.create_dir_all(dir);
            made.map_err(|error| LedgerError::Io(dir.to_owned(), error))?;
            self.dir_is_made = true;
        }
        let id = self.files.take_id();
        let path = self.files.dir.file_path(id);
        let written = sealed_file::write_unnamed(&*self.files.disk, &path, |out| {
            let mut writer = RunWriter::new(out, stream)?;
            writer.push(&first)?;
            for item in items {
                writer.push(&item?)?;
            }
            writer.finish()
        });
        // An error of the output file, or of the source of the entries.
        let bytes = written.map_err(|error| match error.downcast::<LedgerError>() {
            Ok(error) => error,
            Err(error) => LedgerError::Io(path.clone(), error),
        })?;
        self.files.add(id);
        Ok(Some(Arc::new(Run::open(id, &path, bytes)?)))
    }
}
