//! Recovery: the last checkpoint, then the rest of the log. No data is served before it is done. Its time is that of
//! reading manifests, footers and the log's tail; blocks are not read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Cache;
use wal::disk::Disk;
use wal::{Log, LogOptions, Recovery, Sequence};

use super::layout::{CatalogError, Layout, Snapshot};
use super::sealing::Sealing;
use crate::bucket::{BucketDir, BucketFileError, BucketFiles, BucketState, CarriedDir, CarriedFile};
use crate::catalog::Catalog;
use crate::checked_file::CheckedFileError;
use crate::journal::{Record, RecordError};
use crate::ledger::{LedgerError, LedgerFiles};

/// What a data directory holds, in memory and ready to go on.
pub struct Opened {
    /// The log, ready to append.
    pub log: Log,
    /// What exists.
    pub catalog: Catalog,
    /// Log sequence that the catalog's snapshot on disk covers.
    pub catalog_covered: Sequence,
    /// Ordinals of the buckets that must have a manifest, as that snapshot says.
    pub manifests: Vec<u32>,
    /// Each bucket's points and directory.
    pub buckets: Vec<(BucketState, BucketFiles)>,
    /// Buckets that do not open, and why, by ordinal.
    pub set_apart: BTreeMap<u32, BucketFault>,
    /// Histories and deliveries.
    pub ledger: LedgerFiles,
    /// What the stores of those buckets keep decoded, for those of new ones.
    pub cache: Cache,
    /// Figures of the recovery.
    pub recovered: Recovered,
}

/// Figures of a recovery, for the log line.
#[derive(Debug)]
pub struct Recovered {
    /// What the log found.
    pub log: Recovery,
    /// Points replayed from the log.
    pub points: u64,
    /// Time it all took.
    pub took: Duration,
}

/// Why a bucket does not open, though the data directory does.
#[derive(Debug)]
pub enum BucketFault {
    /// Its files.
    Files(BucketFileError),
    /// Its records, in the log or carried on from it.
    Records(String),
}

impl fmt::Display for BucketFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BucketFault::Files(error) => error.fmt(f),
            BucketFault::Records(error) => error.fmt(f),
        }
    }
}

/// Why a data directory does not open.
#[derive(Debug)]
pub enum OpenError {
    /// A backup was not restored to its end, as the file at this path says.
    Restoring(PathBuf),
    /// The checkpoint's mark.
    Mark(CheckedFileError),
    /// The catalog's snapshot.
    Catalog(CatalogError),
    /// The directory of the buckets' directories, though there are checkpoints of some.
    BucketsMissing(PathBuf),
    /// The directory of a bucket that the catalog has never known.
    UnknownBucket(u32, PathBuf),
    /// A run file of the ledger.
    Ledger(LedgerError),
    /// The snapshot at this path covers less than the log has dropped: records up to here are in neither.
    CatalogBehind(PathBuf, Sequence),
    /// The log.
    Log(wal::LogError),
    /// The mark at this path is missing, without which the log seems to lack its beginning.
    MarkMissing(PathBuf, wal::LogError),
    /// The log ends before what the file at this path covers: its end is missing, and new records would be taken for
    /// old ones.
    LogBehind(PathBuf, Sequence, Sequence),
    /// A record of the log.
    Record(Sequence, RecordError),
    /// The disk's.
    Io(PathBuf, std::io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Restoring(path) => write!(
                f,
                "{} says that a restore was not finished; remove all that is beside it, and it, and restore again",
                path.display()
            ),
            OpenError::Mark(error) => error.fmt(f),
            OpenError::Catalog(error) => error.fmt(f),
            OpenError::BucketsMissing(path) => write!(
                f,
                "{} is missing, and with it the points of all buckets; is the volume mounted?",
                path.display()
            ),
            OpenError::UnknownBucket(_, path) => write!(
                f,
                "{} holds a bucket that neither the catalog's snapshot nor the log knows, so these are missing or too old; \
                 restore the whole data directory, or move that directory away to start without it",
                path.display()
            ),
            OpenError::Ledger(error) => write!(f, "{error}; `tidewatch check` reports what is lost"),
            OpenError::Log(error) => write!(f, "{error}; `tidewatch check` reports what is whole"),
            OpenError::MarkMissing(path, error) => write!(
                f,
                "{} is missing ({error}); restore it, or have it made anew by `tidewatch check --repair`",
                path.display()
            ),
            OpenError::CatalogBehind(path, mark) => write!(
                f,
                "{} is missing, or older than the checkpoint up to record {mark}; restore it from a backup",
                path.display()
            ),
            OpenError::LogBehind(path, covered, last) => write!(
                f,
                "the log ends at record {last} though {} covers records up to {covered}; `tidewatch check` reports what is whole",
                path.display()
            ),
            OpenError::Record(sequence, error) => write!(f, "record {sequence}: {error}"),
            OpenError::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// Rows that may wait to be sealed while the log is replayed, in bytes of memory: what a replay holds beyond what the
/// running server would.
const SEALING_BYTES_MAX: usize = 32 << 20;
/// The cache of who only looks at what there is.
const CACHE_BYTES: u64 = 4 << 20;

/// Opens a data directory, whose lock the caller holds.
///
/// # Errors
/// The disk's, or damage: then nothing has been altered, but for the log's torn tail, which is cut off.
pub fn open(disk: &Arc<dyn Disk>, log_disk: Arc<dyn Disk>, layout: &Layout) -> Result<Opened, OpenError> {
    let cache = Cache::new(CACHE_BYTES);
    open_with(disk, log_disk, layout, LogOptions::default(), cache)
}

/// The same for who goes on with the log, by these bounds, and asks questions.
pub(super) fn open_with(
    disk: &Arc<dyn Disk>,
    log_disk: Arc<dyn Disk>,
    layout: &Layout,
    log_options: LogOptions,
    cache: Cache,
) -> Result<Opened, OpenError> {
    let started = Instant::now();
    let restoring_path = layout.restoring_path();
    match disk.exists(&restoring_path) {
        Ok(false) => {}
        Ok(true) => return Err(OpenError::Restoring(restoring_path)),
        Err(error) => return Err(OpenError::Io(restoring_path, error)),
    }
    let mark_path = layout.mark_path();
    let mark_exists = disk
        .exists(&mark_path)
        .map_err(|error| OpenError::Io(mark_path, error))?;
    let mark = layout.read_mark(&**disk).map_err(OpenError::Mark)?;
    let Snapshot {
        mut catalog,
        covered: catalog_covered,
        manifests,
    } = layout.read_catalog(&**disk).map_err(OpenError::Catalog)?;
    if catalog_covered < mark {
        return Err(OpenError::CatalogBehind(layout.catalog_path(), mark));
    }
    let buckets_dir = layout.buckets_dir();
    let in_dir = |error| OpenError::Io(layout.buckets_dir(), error);
    if !manifests.is_empty() && !disk.exists(&buckets_dir).map_err(in_dir)? {
        // Not one bucket's matter: a volume that is not mounted.
        return Err(OpenError::BucketsMissing(buckets_dir));
    }
    disk.create_dir_all(&buckets_dir).map_err(in_dir)?;
    if is_empty(&**disk, layout.log_dir())? {
        // Nothing will be replayed: refused before a log is begun anew.
        refuse_unknown(&**disk, layout, &catalog)?;
    }
    let ledger = LedgerFiles::open(Arc::clone(disk), &layout.data_dir, catalog.ledger().runs());
    let mut ledger = ledger.map_err(OpenError::Ledger)?;
    let mut buckets: BTreeMap<u32, (BucketState, BucketFiles)> = BTreeMap::new();
    // Sequence of the first row replayed to each.
    let mut first_replayed: BTreeMap<u32, u64> = BTreeMap::new();
    // Buckets that do not open. One that was deleted behind these records may have lost a part of its directory.
    let mut failed: BTreeMap<u32, BucketFault> = BTreeMap::new();
    let carried = CarriedDir::of(&layout.data_dir);
    let carried = carried
        .list(&**disk)
        .map_err(|error| OpenError::Io(layout.data_dir.clone(), error))?;
    let load = |ordinal: u32| {
        let opened = BucketFiles::open(
            Arc::clone(disk),
            &layout.data_dir,
            ordinal,
            &cache,
            ledger.ledger(),
        );
        let (files, mut state) = opened.map_err(BucketFault::Files)?;
        let mut first = None;
        for file in carried.iter().filter(|file| file.bucket == ordinal) {
            let applied = apply_carried(&**disk, file, &mut state).map_err(BucketFault::Records)?;
            first = first.or(applied);
        }
        Ok::<_, BucketFault>(((state, files), first))
    };
    let mut sealing =
        Sealing::start(SEALING_BYTES_MAX).map_err(|error| OpenError::Io(layout.data_dir.clone(), error))?;
    let mut points = 0u64;
    // The mark is at or before all that snapshot and manifests cover, so the log must reach back to it. Each record
    // is for one of them, and is passed over where that one covers it already.
    let mut replay = |sequence: Sequence, bytes: &[u8]| -> Result<(), RecordError> {
        match Record::decode(bytes)? {
            Record::Command(command) => {
                if sequence > catalog_covered {
                    catalog.apply(&command);
                }
            }
            Record::Ingest(ingest) => {
                let bucket = match buckets.entry(ingest.bucket) {
                    _ if failed.contains_key(&ingest.bucket) => return Ok(()),
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => match load(ingest.bucket) {
                        Ok((loaded, first)) => {
                            first_replayed.extend(first.map(|first| (ingest.bucket, first)));
                            entry.insert(loaded)
                        }
                        Err(error) => {
                            failed.insert(ingest.bucket, error);
                            return Ok(());
                        }
                    },
                };
                match bucket.0.apply(sequence, &ingest) {
                    Ok(false) => {}
                    Ok(true) => {
                        first_replayed
                            .entry(ingest.bucket)
                            .or_insert(ingest.first_sequence);
                        points += u64::from(ingest.rows);
                    }
                    Err(error) => {
                        buckets.remove(&ingest.bucket);
                        let fault = format!("record {sequence}: {error}");
                        failed.insert(ingest.bucket, BucketFault::Records(fault));
                        return Ok(());
                    }
                }
                sealing.take(&mut bucket.0);
                sealing.advance(&mut buckets);
            }
        }
        Ok(())
    };
    let opened = Log::open(log_disk, &layout.log_dir(), log_options, mark, &mut replay);
    let (log, recovery) = opened.map_err(|error| match error {
        wal::OpenError::Log(error) if catalog_covered > 0 && !mark_exists => {
            OpenError::MarkMissing(layout.mark_path(), error)
        }
        wal::OpenError::Log(error) => OpenError::Log(error),
        wal::OpenError::Replay { sequence, source } => OpenError::Record(sequence, source),
    })?;
    sealing.finish(&mut buckets);
    refuse_unknown(&**disk, layout, &catalog)?;
    failed.retain(|ordinal, _| catalog.bucket_by_ordinal(*ordinal).is_some());
    for bucket in catalog.buckets() {
        let ordinal = bucket.ordinal;
        if failed.contains_key(&ordinal) {
            continue;
        }
        let files = match buckets.entry(ordinal) {
            Entry::Occupied(entry) => Ok(&entry.into_mut().1),
            Entry::Vacant(entry) => load(ordinal).map(|(loaded, first)| {
                first_replayed.extend(first.map(|first| (ordinal, first)));
                &entry.insert(loaded).1
            }),
        };
        let missing = |files: &BucketFiles| manifests.contains(&ordinal) && !files.has_manifest();
        let reason = match files {
            Ok(files) if missing(files) => {
                BucketFault::Files(BucketFileError::ManifestMissing(files.manifest_path()))
            }
            Ok(_) => continue,
            Err(reason) => reason,
        };
        buckets.remove(&ordinal);
        failed.insert(ordinal, reason);
    }
    // What was deleted may still be in segments and records: the catalog is the truth of what exists.
    buckets.retain(|ordinal, _| catalog.bucket_by_ordinal(*ordinal).is_some());
    let covered = buckets
        .values()
        .map(|(_, files)| (files.manifest_path(), files.manifest().covered));
    for (path, covered) in covered.chain([(layout.catalog_path(), catalog_covered)]) {
        if covered > log.last_sequence() {
            return Err(OpenError::LogBehind(path, covered, log.last_sequence()));
        }
    }
    for (ordinal, (state, files)) in &mut buckets {
        let first = first_replayed
            .get(ordinal)
            .copied()
            .unwrap_or(state.next_sequence);
        if let Err(error) = files.remove_leftovers(first..state.next_sequence) {
            failed.insert(*ordinal, BucketFault::Files(error));
        }
        if let Some(bucket) = catalog.bucket_by_ordinal(*ordinal) {
            // Numbers that were given to points which the log refused, or lost, are given again, but not those that a
            // change of retention has counted as given: new points under them would be taken for expired ones.
            let given = bucket.expired.iter().map(|it| it.before_sequence).max();
            state.next_sequence = state.next_sequence.max(given.unwrap_or(0));
            state
                .store
                .retain_sources(|source| catalog.source_by_ordinal(bucket.id, source).is_some());
        }
    }
    buckets.retain(|ordinal, _| !failed.contains_key(ordinal));
    remove_deleted(&**disk, layout, &catalog)?;
    // Their entries were replayed.
    ledger.remove_unused();
    let recovered = Recovered {
        log: recovery,
        points,
        took: started.elapsed(),
    };
    Ok(Opened {
        log,
        catalog,
        catalog_covered,
        manifests,
        buckets: buckets.into_values().collect(),
        set_apart: failed,
        ledger,
        cache,
        recovered,
    })
}

/// Applies the records of a bucket that was set apart, those of before the log; answers the sequence of the first row.
fn apply_carried(
    disk: &dyn Disk,
    file: &CarriedFile,
    state: &mut BucketState,
) -> Result<Option<u64>, String> {
    let mut first = None;
    file.read(disk, |sequence, bytes| {
        let said = |error: &dyn fmt::Display| format!("{}: record {sequence}: {error}", file.path.display());
        match Record::decode(bytes).map_err(|error| said(&error))? {
            Record::Ingest(ingest) => {
                if state.apply(sequence, &ingest).map_err(|error| said(&error))? {
                    first.get_or_insert(ingest.first_sequence);
                }
                Ok(())
            }
            Record::Command(_) => Err(said(&"a command among points")),
        }
    })?;
    Ok(first)
}

/// Whether a directory has nothing in it, or does not exist.
fn is_empty(disk: &dyn Disk, dir: PathBuf) -> Result<bool, OpenError> {
    match disk.list(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        listed => listed
            .map(|names| names.is_empty())
            .map_err(|error| OpenError::Io(dir, error)),
    }
}

/// Ordinals of the directories there are.
fn ordinals(disk: &dyn Disk, layout: &Layout) -> Result<Vec<u32>, OpenError> {
    let dir = layout.buckets_dir();
    match disk.list(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed
            .map(|names| names.iter().filter_map(BucketDir::ordinal).collect())
            .map_err(|error| OpenError::Io(dir, error)),
    }
}

/// The log has a bucket's creation before the bucket gets its directory. One that the catalog has not come to yet is
/// no deleted one: it is the catalog that is missing or too old, and the points are not ours to remove.
fn refuse_unknown(disk: &dyn Disk, layout: &Layout, catalog: &Catalog) -> Result<(), OpenError> {
    for ordinal in ordinals(disk, layout)? {
        let dir = BucketDir::of(&layout.data_dir, ordinal);
        let in_use = || {
            dir.is_in_use(disk)
                .map_err(|error| OpenError::Io(dir.path().to_owned(), error))
        };
        if ordinal > catalog.last_bucket_ordinal() && in_use()? {
            return Err(OpenError::UnknownBucket(ordinal, dir.path().to_owned()));
        }
    }
    Ok(())
}

/// Directories of buckets that the catalog knew and knows no more: their deletion was cut short.
fn remove_deleted(disk: &dyn Disk, layout: &Layout, catalog: &Catalog) -> Result<(), OpenError> {
    for ordinal in ordinals(disk, layout)? {
        if ordinal <= catalog.last_bucket_ordinal()
            && catalog.bucket_by_ordinal(ordinal).is_none()
            && let Err(error) = BucketFiles::remove(disk, &layout.data_dir, ordinal)
        {
            tracing::warn!(ordinal, %error, "the directory of a deleted bucket cannot be removed");
        }
    }
    Ok(())
}
