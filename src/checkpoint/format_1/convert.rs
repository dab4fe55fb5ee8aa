//! Converts format 1 to the present format.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use engine::{MergeError, SegmentFile, SegmentWriter};

use super::answers::AnswersFile;
use super::directory::{BucketDir, BucketManifest};
use super::evidence;
use super::files::{self, bucket_dir};
use crate::catalog::{Frozen, FrozenTail, Snapshot};
use crate::checkpoint::data_dir::DataDir;
use crate::checkpoint::layout::{Layout, at, message};
use crate::checkpoint::manifest::{BucketMark, Manifest};
use crate::checkpoint::segments::{HeldElsewhere, Segments};
use crate::ledger::{Keep, LedgerFiles, NewEntry, encode_answer};

/// Segments of the buckets are combined up to this size.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Limit on answers held in memory at a time.
const ANSWERS_MAX: usize = 100_000;

/// What to do with a bucket that is damaged.
pub enum Damage<'a> {
    /// Leave its directory unchanged, and set the bucket apart until it has been repaired.
    SetApart,
    /// Take what reads, report what is lost, and keep the directory under another name.
    Salvage(&'a mut dyn FnMut(String)),
}

/// Converts a data directory that is of format 1, or that still has a bucket of format 1, and removes the remains of an
/// earlier conversion. The caller holds the directory's lock. Returns whether there was anything to do.
///
/// # Errors
/// A message for the operator. Then nothing has changed, except for files that nothing names.
pub fn convert(disk: &Arc<dyn Disk>, data_dir: &Path, damage: Damage<'_>) -> Result<bool, String> {
    let dir = DataDir {
        disk: Arc::clone(disk),
        layout: Layout::of(data_dir),
    };
    let Some(path) = dir.file_of_format_1()? else {
        return Ok(false);
    };
    let found = Manifest::read(dir.disk(), data_dir).map_err(message)?;
    if found.is_none() {
        tracing::info!(path = %path.display(), "an older program wrote this directory; it is converted");
    }
    let mut conversion = Conversion::begin(&dir, found.as_ref(), damage)?;
    conversion.convert_buckets()?;
    conversion.convert_catalog()?;
    conversion.finish(found.as_ref())?;
    Ok(true)
}

struct Conversion<'a, 'd> {
    dir: &'a DataDir,
    damage: Damage<'d>,
    manifest: Manifest,
    segments: Segments,
    ledger: LedgerFiles,
    /// The snapshot with the old catalog; `None` if it was converted earlier.
    snapshot: Option<Snapshot>,
    /// Buckets whose old directory is no longer needed.
    done: BTreeSet<u32>,
}

/// A bucket whose files open.
struct OldBucket {
    ordinal: u32,
    mark: BucketMark,
    segments: Vec<Arc<SegmentFile>>,
    answers: Vec<AnswersFile>,
}

impl<'a, 'd> Conversion<'a, 'd> {
    fn begin(dir: &'a DataDir, found: Option<&Manifest>, damage: Damage<'d>) -> Result<Self, String> {
        let (snapshot, manifest) = match found {
            Some(manifest) => (None, manifest.clone()),
            None => {
                let (snapshot, catalog_covered) = files::read_catalog(dir)?;
                let covered = files::read_mark(dir)?;
                evidence::refuse_lost_manifest(dir)?;
                if catalog_covered < covered {
                    return Err(format!(
                        "{} is missing, or older than the checkpoint up to record {covered}; restore it from a backup",
                        files::catalog_path(dir.path()).display()
                    ));
                }
                let carried = dir.carried_files()?;
                let manifest = Manifest {
                    covered,
                    catalog_covered,
                    runs: snapshot.ledger_runs.clone(),
                    carried: carried.iter().map(|file| (file.bucket, file.first)).collect(),
                    ..Manifest::default()
                };
                (Some(snapshot), manifest)
            }
        };
        let disk = || Arc::clone(&dir.disk);
        let opened = Segments::open(disk(), dir.path(), &manifest, &HeldElsewhere::new());
        let ledger = LedgerFiles::open(disk(), dir.path(), &manifest.runs);
        Ok(Conversion {
            dir,
            damage,
            segments: opened.map_err(message)?,
            ledger: ledger.map_err(message)?,
            manifest,
            snapshot,
            done: BTreeSet::new(),
        })
    }

    fn convert_buckets(&mut self) -> Result<(), String> {
        let mut buckets = Vec::new();
        for ordinal in self.ordinals()? {
            match self.open_bucket(ordinal) {
                Ok(Some(bucket)) => {
                    self.done.insert(ordinal);
                    buckets.push(bucket);
                }
                // No checkpoint has written it: its points are in the log.
                Ok(None) => {}
                Err(fault) => buckets.extend(self.damaged(ordinal, fault)?),
            }
        }
        self.write_segments(&buckets)?;
        self.write_answers(&buckets)?;
        for bucket in buckets {
            self.manifest.buckets.insert(bucket.ordinal, bucket.mark);
            self.manifest
                .unconverted
                .retain(|ordinal| *ordinal != bucket.ordinal);
        }
        Ok(())
    }

    /// Ordinals of the buckets to convert. Directories of deleted buckets are marked for removal.
    fn ordinals(&mut self) -> Result<BTreeSet<u32>, String> {
        let present = files::ordinals(self.dir)?;
        let Some(snapshot) = &self.snapshot else {
            let waiting: BTreeSet<u32> = self.manifest.unconverted.iter().copied().collect();
            // The others were converted earlier, but removing or moving their directories was interrupted.
            self.done.extend(present.difference(&waiting));
            return Ok(waiting);
        };
        let catalog = &snapshot.catalog;
        let is_gone = |ordinal: &u32| !present.contains(ordinal);
        // The log is read only if a directory is missing.
        let deleted_in_log = match snapshot.manifests.iter().any(is_gone) {
            true => files::deleted_in_log(self.dir, catalog, self.manifest.catalog_covered),
            false => BTreeSet::new(),
        };
        let is_deleted = |ordinal: u32| {
            let known = catalog.bucket_by_ordinal(ordinal).is_some();
            deleted_in_log.contains(&ordinal) || ordinal <= catalog.last_bucket_ordinal() && !known
        };
        let (deleted, there): (BTreeSet<u32>, BTreeSet<u32>) =
            present.iter().partition(|ordinal| is_deleted(**ordinal));
        self.done.extend(deleted);
        // A bucket that must have a manifest but has no directory is damaged, not new.
        let manifests = snapshot.manifests.iter().copied();
        let must = manifests.filter(|ordinal| !is_deleted(*ordinal));
        Ok(there.into_iter().chain(must).collect())
    }

    fn open_bucket(&self, ordinal: u32) -> Result<Option<OldBucket>, String> {
        let dir = BucketDir::of(self.dir, ordinal);
        let Some(manifest) = dir.read_manifest()? else {
            let snapshot = self.snapshot.as_ref();
            return match snapshot.is_none_or(|it| it.manifests.contains(&ordinal)) {
                true => Err(format!("{} is missing", dir.manifest_path().display())),
                false => Ok(None),
            };
        };
        let (bucket, faults) = OldBucket::open(&dir, ordinal, &manifest);
        faults.into_iter().next().map_or(Ok(Some(bucket)), Err)
    }

    /// What can be converted of a damaged bucket, if anything.
    fn damaged(&mut self, ordinal: u32, fault: String) -> Result<Option<OldBucket>, String> {
        let Damage::Salvage(say) = &mut self.damage else {
            tracing::error!(ordinal, fault, "a bucket cannot be converted and is set apart");
            if !self.manifest.unconverted.contains(&ordinal) {
                self.manifest.unconverted.push(ordinal);
            }
            return Ok(None);
        };
        say(format!("bucket {ordinal}: {fault}; what it held is lost"));
        self.manifest.aside.push(ordinal);
        let dir = BucketDir::of(self.dir, ordinal);
        // Without a manifest it is unknown which files are in use: a merged segment has the same rows as its inputs.
        let found = dir.read_manifest().ok().flatten();
        let is_lost = found.is_none();
        let manifest = found.map_or_else(|| dir.manifest_of_newest(), Ok)?;
        let (mut bucket, _) = OldBucket::open(&dir, ordinal, &manifest);
        if is_lost {
            let next_row = bucket.next_row().map_err(message)?;
            bucket.mark.next_sequence += next_row;
            bucket.mark.covered = evidence::last_held(self.dir, ordinal, next_row, self.manifest.covered)?;
        }
        Ok(Some(bucket))
    }

    /// Copies the blocks of old segments to new ones, in the order of their buckets.
    fn write_segments(&mut self, buckets: &[OldBucket]) -> Result<(), String> {
        let mut all: Vec<(u32, &Arc<SegmentFile>)> = Vec::new();
        for bucket in buckets {
            all.extend(bucket.segments.iter().map(|old| (bucket.ordinal, old)));
        }
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0u64;
            let fitting = rest.iter().take_while(|(_, old)| {
                bytes = bytes.saturating_add(old.bytes());
                bytes <= SEGMENT_BYTES_MAX
            });
            let (batch, others) = rest.split_at(fitting.count().max(1));
            self.write_segment(batch)?;
            rest = others;
        }
        Ok(())
    }

    fn write_segment(&mut self, batch: &[(u32, &Arc<SegmentFile>)]) -> Result<(), String> {
        let written = self.segments.write(|out: &mut dyn Write| {
            let mut segment = SegmentWriter::new(out)?;
            for of_bucket in batch.chunk_by(|(one, _), (next, _)| one == next) {
                segment.begin_bucket(of_bucket[0].0);
                for (ordinal, old) in of_bucket {
                    if let Some(part) = old.part(*ordinal)? {
                        part.copy(&mut segment)?;
                    }
                }
            }
            Ok::<_, MergeError>(segment.finish()?)
        });
        let written = written.map_err(|(path, error)| at(&path)(error))?;
        self.manifest.segments.push(written.id());
        self.manifest.note_written_segment();
        Ok(())
    }

    fn write_answers(&mut self, buckets: &[OldBucket]) -> Result<(), String> {
        // Keyed by owner and place; the entry of the newer file wins.
        let mut answers = BTreeMap::new();
        for bucket in buckets {
            for (view, created_at_ns) in bucket.answers.iter().flat_map(AnswersFile::entries) {
                let payload = encode_answer(&view, created_at_ns);
                let entry = NewEntry::answer(bucket.ordinal, &view.key, payload);
                answers.insert((bucket.ordinal, view.key), entry);
            }
            if answers.len() >= ANSWERS_MAX {
                self.save(std::mem::take(&mut answers).values().collect())?;
            }
        }
        self.save(answers.values().collect())
    }

    /// Writes the catalog of the snapshot, if there is one, as objects.
    fn convert_catalog(&mut self) -> Result<(), String> {
        let Some(snapshot) = &self.snapshot else {
            return Ok(());
        };
        let objects = NewEntry::changes(&snapshot.catalog.freeze(), &Frozen::default());
        self.save(objects.map_err(message)?.iter().collect())
    }

    fn save(&mut self, entries: Vec<&NewEntry>) -> Result<(), String> {
        let owners = entries.iter().map(|entry| entry.key.owner).collect();
        let keep = Keep::new(owners, i64::MIN);
        let saved = self.ledger.save(&FrozenTail::default(), entries, &keep);
        let runs = saved.map_err(message)?;
        self.manifest.runs = runs.ids();
        self.ledger.adopt(runs);
        Ok(())
    }

    /// Installs the manifest, unless it is the one that was `found`, and removes the files that it replaces.
    fn finish(mut self, found: Option<&Manifest>) -> Result<(), String> {
        if found != Some(&self.manifest) {
            self.manifest.next_segment = self.segments.files.next_id();
            self.dir.write_manifest(&self.manifest)?;
        }
        for ordinal in &self.manifest.aside {
            self.done.remove(ordinal);
            let old = BucketDir::of(self.dir, *ordinal);
            if self.dir.exists(&old.path)? {
                old.move_aside().map_err(at(&old.path))?;
            }
        }
        self.remove_old().unwrap_or_else(|error| {
            tracing::warn!(%error, "files of an older program that are no longer in use stay until the next start");
        });
        Ok(())
    }

    fn remove_old(&self) -> io::Result<()> {
        let (disk, data_dir) = (self.dir.disk(), self.dir.path());
        for ordinal in &self.done {
            disk.remove_dir_all(&bucket_dir(data_dir, *ordinal))?;
        }
        let dir = files::buckets_dir(data_dir);
        match disk.list(&dir) {
            Ok(names) if names.is_empty() => disk.remove_dir_all(&dir)?,
            Ok(_) => disk.sync_dir(&dir)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        for path in [files::catalog_path(data_dir), files::mark_path(data_dir)] {
            if disk.exists(&path)? {
                disk.remove(&path)?;
            }
        }
        disk.sync_dir(data_dir)
    }
}

impl OldBucket {
    /// The sequence after the last of its rows.
    fn next_row(&self) -> Result<u64, engine::EngineError> {
        let mut next = 1;
        for segment in &self.segments {
            if let Some(part) = segment.part(self.ordinal)?
                && let Some((_, last)) = part.sequences()?
            {
                next = next.max(last + 1);
            }
        }
        Ok(next)
    }

    /// Opens the files that the manifest names. Files that do not open are left out; returns why.
    ///
    /// Opening a segment reads all its entries, so that copying does not fail later. Only damage of single blocks goes
    /// unnoticed, and damaged blocks are copied as they are.
    fn open(dir: &BucketDir<'_>, ordinal: u32, manifest: &BucketManifest) -> (Self, Vec<String>) {
        let mut faults = Vec::new();
        let segments = manifest.segments.iter().map(|id| dir.open_segment(*id));
        let segments = sound(segments, &mut faults);
        let answers = manifest.answers.iter().map(|id| dir.open_answers(*id));
        let answers = sound(answers, &mut faults);
        let mark = BucketMark {
            covered: manifest.covered,
            next_sequence: manifest.next_sequence.max(1),
            ingested_at_ns: manifest.ingested_at_ns,
        };
        let bucket = OldBucket {
            ordinal,
            mark,
            segments,
            answers,
        };
        (bucket, faults)
    }
}

/// Separates what opened from the faults of the rest.
fn sound<T>(opened: impl Iterator<Item = Result<T, String>>, faults: &mut Vec<String>) -> Vec<T> {
    let sound = opened.filter_map(|it| it.map_err(|fault| faults.push(fault)).ok());
    sound.collect()
}
