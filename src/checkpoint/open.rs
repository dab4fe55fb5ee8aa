//! Recovery: the last checkpoint, then the rest of the log. Nothing is served before it is done. Its time is that of
//! reading manifests, footers and the log's tail; blocks are not read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use engine::Sealed;
use wal::disk::Disk;
use wal::{Log, LogOptions, Recovery, Sequence};

use super::layout::{CatalogError, Layout};
use crate::bucket::{BucketFileError, BucketFiles, BucketState, Sealer};
use crate::catalog::Catalog;
use crate::checked_file::CheckedFileError;
use crate::journal::{Record, RecordError};

/// What a data directory holds, in memory and ready to go on.
pub struct Opened {
    /// The log, ready to append.
    pub log: Log,
    /// What exists.
    pub catalog: Catalog,
    /// Log sequence that the catalog's snapshot on disk covers.
    pub catalog_covered: Sequence,
    /// Each bucket's points and directory.
    pub buckets: Vec<(BucketState, BucketFiles)>,
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

/// Why a data directory does not open.
#[derive(Debug)]
pub enum OpenError {
    /// The checkpoint's mark.
    Mark(CheckedFileError),
    /// The catalog's snapshot.
    Catalog(CatalogError),
    /// A bucket.
    Bucket(u32, BucketFileError),
    /// The log.
    Log(wal::LogError),
    /// A record of the log.
    Record(Sequence, RecordError),
    /// Rows of a record.
    Rows(Sequence, engine::EngineError),
    /// The disk's.
    Io(PathBuf, std::io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Mark(error) => error.fmt(f),
            OpenError::Catalog(error) => error.fmt(f),
            OpenError::Bucket(ordinal, error) => write!(f, "bucket {ordinal}: {error}"),
            OpenError::Log(error) => write!(f, "{error}; `tidewatch check` reports what is whole"),
            OpenError::Record(sequence, error) => write!(f, "record {sequence}: {error}"),
            OpenError::Rows(sequence, error) => write!(f, "record {sequence}: {error}"),
            OpenError::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

enum ReplayError {
    Record(RecordError),
    Rows(engine::EngineError),
    Bucket(u32, BucketFileError),
}

/// Opens a data directory, whose lock the caller holds.
///
/// # Errors
/// The disk's, or damage: then nothing has been altered, but for leftovers of a crash that no manifest names.
pub fn open(disk: &Arc<dyn Disk>, log_disk: Arc<dyn Disk>, layout: &Layout) -> Result<Opened, OpenError> {
    let started = Instant::now();
    let buckets_dir = layout.buckets_dir();
    disk.create_dir_all(&buckets_dir)
        .map_err(|error| OpenError::Io(buckets_dir, error))?;
    let mark = layout.read_mark(&**disk).map_err(OpenError::Mark)?;
    let (mut catalog, catalog_covered) = layout.read_catalog(&**disk).map_err(OpenError::Catalog)?;
    let mut buckets: BTreeMap<u32, (BucketState, BucketFiles)> = BTreeMap::new();
    let load = |ordinal: u32| {
        BucketFiles::open(Arc::clone(disk), &layout.data_dir, ordinal).map(|(files, state)| (state, files))
    };
    let mut sealing = Sealing::start().map_err(|error| OpenError::Io(layout.data_dir.clone(), error))?;
    let mut points = 0u64;
    // The mark is at or before all that snapshot and manifests cover, so the log must reach back to it. Each record
    // is for one of them, and is passed over where that one covers it already.
    let mut replay = |sequence: Sequence, bytes: &[u8]| -> Result<(), ReplayError> {
        match Record::decode(bytes).map_err(ReplayError::Record)? {
            Record::Command(command) => {
                if sequence > catalog_covered {
                    catalog.apply(&command);
                }
            }
            Record::Ingest(ingest) => {
                let bucket = match buckets.entry(ingest.bucket) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => entry.insert(
                        load(ingest.bucket).map_err(|error| ReplayError::Bucket(ingest.bucket, error))?,
                    ),
                };
                bucket.0.apply(sequence, &ingest).map_err(ReplayError::Rows)?;
                points += u64::from(ingest.rows);
                sealing.give(ingest.bucket, &mut bucket.0);
                sealing.take_back(&mut buckets, SEALS_WAITING_MAX);
            }
        }
        Ok(())
    };
    let opened = Log::open(
        log_disk,
        &layout.log_dir(),
        LogOptions::default(),
        mark,
        &mut replay,
    );
    let (log, recovery) = opened.map_err(|error| match error {
        wal::OpenError::Log(error) => OpenError::Log(error),
        wal::OpenError::Replay { sequence, source } => match source {
            ReplayError::Record(error) => OpenError::Record(sequence, error),
            ReplayError::Rows(error) => OpenError::Rows(sequence, error),
            ReplayError::Bucket(ordinal, error) => OpenError::Bucket(ordinal, error),
        },
    })?;
    sealing.take_back(&mut buckets, 0);
    for bucket in catalog.buckets() {
        if let Entry::Vacant(entry) = buckets.entry(bucket.ordinal) {
            entry.insert(load(bucket.ordinal).map_err(|error| OpenError::Bucket(bucket.ordinal, error))?);
        }
    }
    // What was deleted may still be in segments and records: the catalog is the truth of what exists.
    buckets.retain(|ordinal, _| catalog.bucket_by_ordinal(*ordinal).is_some());
    for (ordinal, (state, _)) in &mut buckets {
        if let Some(bucket) = catalog.bucket_by_ordinal(*ordinal) {
            state
                .store
                .retain_sources(|source| catalog.source_by_ordinal(bucket.id, source).is_some());
        }
    }
    remove_deleted(&**disk, layout, &catalog);
    let recovered = Recovered {
        log: recovery,
        points,
        took: started.elapsed(),
    };
    Ok(Opened {
        log,
        catalog,
        catalog_covered,
        buckets: buckets.into_values().collect(),
        recovered,
    })
}

/// Rows that may wait to be sealed while the log is replayed, in blocks.
const SEALS_WAITING_MAX: usize = 64;

/// Seals on a thread of its own what the replay fills, so that both cores work.
struct Sealing {
    sealer: Sealer,
    done: Sender<(u32, Option<Sealed>)>,
    sealed: Receiver<(u32, Option<Sealed>)>,
    waiting: usize,
}

impl Sealing {
    fn start() -> std::io::Result<Self> {
        let (done, sealed) = channel();
        Ok(Sealing {
            sealer: Sealer::start()?,
            done,
            sealed,
            waiting: 0,
        })
    }

    fn give(&mut self, ordinal: u32, state: &mut BucketState) {
        for seal in state.store.take_seals() {
            let done = self.done.clone();
            self.waiting += 1;
            self.sealer.seal(seal, move |sealed| {
                // Taken back before the replay ends.
                let _ = done.send((ordinal, sealed));
            });
        }
    }

    /// Takes back what is done, and waits while more than `waiting_max` are not.
    fn take_back(&mut self, buckets: &mut BTreeMap<u32, (BucketState, BucketFiles)>, waiting_max: usize) {
        loop {
            let (ordinal, sealed) = match self.sealed.try_recv() {
                Ok(next) => next,
                Err(_) if self.waiting <= waiting_max => return,
                Err(_) => match self.sealed.recv() {
                    Ok(next) => next,
                    Err(_) => return,
                },
            };
            self.waiting -= 1;
            if let (Some((state, _)), Some(sealed)) = (buckets.get_mut(&ordinal), sealed) {
                state.store.finish_seal(sealed);
            }
        }
    }
}

/// Directories of buckets that the catalog does not know: their deletion was cut short.
fn remove_deleted(disk: &dyn Disk, layout: &Layout, catalog: &Catalog) {
    let Ok(names) = disk.list(&layout.buckets_dir()) else {
        return;
    };
    for ordinal in names.iter().filter_map(|name| name.to_str()?.parse::<u32>().ok()) {
        if catalog.bucket_by_ordinal(ordinal).is_none()
            && let Err(error) = BucketFiles::remove(disk, &layout.data_dir, ordinal)
        {
            tracing::warn!(ordinal, %error, "the directory of a deleted bucket cannot be removed");
        }
    }
}
