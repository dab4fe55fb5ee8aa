//! Recovery: loads the last checkpoint and replays the rest of the log. No data is served before it is done. It reads
//! the manifest, the catalog, segment footers and the log's tail, but no blocks.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::{Disk, list_existing};
use engine::{Cache, SegmentFile};
use wal::{LogOptions, Sequence};

use super::format_1;
use super::layout::Layout;
use super::manifest::Manifest;
use super::open_error::OpenError;
use super::sealing::Sealing;
use super::segments::{HeldElsewhere, Segments};
use crate::bucket::{BucketState, CarriedDir, CarriedFile};
use crate::catalog::{Catalog, CatalogLoader, Frozen, ObjectKey, Stream};
use crate::journal::{IngestView, LocalShard, Record, RecordError, ReplayError, Replayed, ShardLog, Tail};
use crate::ledger::{Ledger, LedgerFiles};

/// The contents of a data directory, loaded and ready for use.
pub struct Opened {
    /// Where the log continues.
    pub tail: Tail,
    /// The catalog's objects.
    pub catalog: Catalog,
    /// The catalog as stored in its runs.
    pub saved: Frozen,
    /// The manifest in force.
    pub manifest: Manifest,
    /// The segments that the manifest names.
    pub segments: Segments,
    /// The buckets that opened, with their points.
    pub buckets: Vec<BucketState>,
    /// Buckets that do not open, by ordinal, with the reason.
    pub set_apart: BTreeMap<u32, String>,
    /// The ledger: histories and deliveries.
    pub ledger: LedgerFiles,
    /// Statistics of the recovery.
    pub recovered: Recovered,
}

/// Statistics of a recovery, for the log message.
#[derive(Debug)]
pub struct Recovered {
    /// What the log contained.
    pub log: Replayed,
    /// Points replayed from the log.
    pub points: u64,
    /// Total duration.
    pub took: Duration,
    /// Duration of its parts.
    pub times: RecoveryTimes,
}

/// Durations of the parts of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryTimes {
    /// Reading the manifest and the catalog's objects.
    pub catalog: Duration,
    /// Reading the segment footers, and loading the buckets that do not occur in the log.
    pub footers: Duration,
    /// Replaying the log, and loading the buckets that occur in it.
    pub replay: Duration,
}

/// Why a bucket of format 1 does not open.
const UNCONVERTED: &str = "its directory, which an older program wrote, is damaged; restore it from a backup, or have \
                           `tidewatch check --repair` keep what is whole";

/// Memory for rows that wait to be sealed during replay, in bytes. This is what a replay uses in addition to what the
/// running server would.
const SEALING_BYTES_MAX: usize = 32 << 20;
/// Cache size for callers that open a directory only for inspection.
const CACHE_BYTES: u64 = 4 << 20;

/// Opens a data directory with the log in it. The caller holds its lock.
///
/// # Errors
/// A disk error, or damage. Nothing has been changed then, except that a torn tail of the log has been truncated.
pub fn open(disk: &Arc<dyn Disk>, layout: &Layout) -> Result<Opened, OpenError> {
    let mut log = LocalShard::new(Arc::clone(disk), layout.log_dir(), LogOptions::default());
    open_with(
        disk,
        layout,
        &mut log,
        Cache::new(CACHE_BYTES),
        &HeldElsewhere::new(),
    )
}

/// Like `open`, with any log, for a caller that appends to it and serves queries. Segments may be `elsewhere`.
pub(super) fn open_with(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    log: &mut dyn ShardLog,
    cache: Cache,
    elsewhere: &HeldElsewhere,
) -> Result<Opened, OpenError> {
    let started = Instant::now();
    layout.refuse_marked(&**disk)?;
    let found = read_manifest(&**disk, layout)?;
    let has_manifest = found.is_some();
    let manifest = found.unwrap_or_default();
    let ledger = LedgerFiles::open(Arc::clone(disk), &layout.data_dir, &manifest.runs)?;
    let (mut catalog, mut saved) = (Catalog::default(), Frozen::default());
    if has_manifest {
        catalog = load_catalog(&ledger)?;
        saved = catalog.freeze().without_tail();
    }
    let catalog_read_at = Instant::now();
    let data_dir = &layout.data_dir;
    let segments = Segments::open(Arc::clone(disk), data_dir, &manifest, elsewhere)?;
    let holders = holders(&segments);
    let files_open_at = Instant::now();
    let sealing = Sealing::start(SEALING_BYTES_MAX);
    let unconverted = manifest.unconverted.iter();
    let mut replay = Replay {
        catalog,
        buckets: BTreeMap::new(),
        failed: unconverted
            .map(|ordinal| (*ordinal, UNCONVERTED.to_owned()))
            .collect(),
        disk: &**disk,
        manifest: &manifest,
        cache: &cache,
        ledger: ledger.ledger().clone(),
        segments,
        holders,
        carried: CarriedDir::of(data_dir),
        sealing: sealing.map_err(|error| OpenError::Io(layout.data_dir.clone(), error))?,
        points: 0,
    };
    // The log must reach back to the record that the manifest covers.
    let replayed = log.replay(manifest.covered, &mut |sequence, bytes| {
        replay.apply(sequence, bytes)
    });
    let replayed = replayed.map_err(|error| match error {
        ReplayError::Local(error) if !has_manifest => {
            OpenError::ManifestMissing(Manifest::path(&layout.data_dir), Some(error))
        }
        ReplayError::Local(error) => OpenError::Log(error),
        ReplayError::Stored(error) => OpenError::LogStore(error),
        ReplayError::Record(sequence, error) => OpenError::Record(sequence, error),
    })?;
    replay.sealing.finish(&mut replay.buckets);
    let replayed_at = Instant::now();
    replay.load_the_rest();
    refuse_log_behind(replayed.last, layout, &manifest)?;
    replay.follow_catalog();
    let recovered = Recovered {
        log: replayed,
        points: replay.points,
        took: started.elapsed(),
        times: RecoveryTimes {
            catalog: catalog_read_at - started,
            footers: (files_open_at - catalog_read_at) + replayed_at.elapsed(),
            replay: replayed_at - files_open_at,
        },
    };
    Ok(Opened {
        tail: recovered.log.tail(),
        catalog: replay.catalog,
        saved,
        segments: replay.segments,
        buckets: replay.buckets.into_values().collect(),
        set_apart: replay.failed,
        ledger,
        recovered,
        manifest,
    })
}

/// Reads the manifest; returns `None` if the log alone holds all data.
fn read_manifest(disk: &dyn Disk, layout: &Layout) -> Result<Option<Manifest>, OpenError> {
    let found = Manifest::read(disk, &layout.data_dir)?;
    if found.is_some() {
        return Ok(found);
    }
    let failed = |error| OpenError::Io(layout.data_dir.clone(), error);
    if let Some(path) = format_1::exists(disk, &layout.data_dir).map_err(failed)? {
        return Err(OpenError::Format1(path));
    }
    let log = list_existing(disk, &layout.log_dir()).map_err(failed)?;
    // Refuse before a new log is started: nothing else has the data of these files.
    if log.is_empty() && layout.has_sealed_files(disk).map_err(failed)? {
        return Err(OpenError::ManifestMissing(Manifest::path(&layout.data_dir), None));
    }
    Ok(None)
}

/// Loads the catalog from its objects.
///
/// # Errors
/// A run does not read, or the objects do not make up a catalog.
pub fn load_catalog(ledger: &LedgerFiles) -> Result<Catalog, OpenError> {
    let mut loader = CatalogLoader::default();
    ledger.for_each(Stream::Catalog, |owner, place, id, content| {
        let key = ObjectKey { owner, place, id };
        loader.push(&key, content).map_err(OpenError::Catalog)
    })?;
    Ok(loader.finish()?)
}

fn refuse_log_behind(last: Sequence, layout: &Layout, manifest: &Manifest) -> Result<(), OpenError> {
    let covered = manifest.newest_covered();
    if covered > last {
        let path = Manifest::path(&layout.data_dir);
        return Err(OpenError::LogBehind(path, covered, last));
    }
    Ok(())
}

/// The catalog and the buckets while the log is replayed. Each record belongs to the catalog or to one bucket, and is
/// skipped if that one has applied it already.
struct Replay<'a> {
    catalog: Catalog,
    buckets: BTreeMap<u32, BucketState>,
    /// Buckets that do not open. A later record may delete such a bucket.
    failed: BTreeMap<u32, String>,
    disk: &'a dyn Disk,
    manifest: &'a Manifest,
    cache: &'a Cache,
    ledger: Ledger,
    segments: Segments,
    /// Segments by bucket ordinal.
    holders: HashMap<u32, Vec<Arc<SegmentFile>>>,
    carried: CarriedDir,
    sealing: Sealing,
    /// Points applied.
    points: u64,
}

impl Replay<'_> {
    fn apply(&mut self, sequence: Sequence, bytes: &[u8]) -> Result<(), RecordError> {
        match Record::decode(bytes)? {
            Record::Command(command) if sequence > self.manifest.catalog_covered => {
                self.catalog.apply(&command);
            }
            Record::Command(_) => {}
            Record::Ingest(ingest) => self.apply_ingest(sequence, &ingest),
        }
        Ok(())
    }

    fn apply_ingest(&mut self, sequence: Sequence, ingest: &IngestView<'_>) {
        self.load(ingest.bucket);
        let Some(bucket) = self.buckets.get_mut(&ingest.bucket) else {
            return;
        };
        match bucket.apply(sequence, ingest) {
            Ok(false) => {}
            Ok(true) => self.points += u64::from(ingest.rows),
            Err(error) => {
                self.buckets.remove(&ingest.bucket);
                let fault = format!("record {sequence}: {error}");
                self.failed.insert(ingest.bucket, fault);
                return;
            }
        }
        self.sealing.take(bucket);
        self.sealing.advance(&mut self.buckets);
    }

    /// Loads a bucket, unless it was loaded or has failed before.
    fn load(&mut self, ordinal: u32) {
        if self.buckets.contains_key(&ordinal) || self.failed.contains_key(&ordinal) {
            return;
        }
        match self.read(ordinal) {
            Ok(loaded) => drop(self.buckets.insert(ordinal, loaded)),
            Err(fault) => drop(self.failed.insert(ordinal, fault)),
        }
    }

    /// Loads the buckets that do not occur in the log.
    fn load_the_rest(&mut self) {
        let ordinals: Vec<u32> = self.catalog.buckets().map(|bucket| bucket.ordinal).collect();
        ordinals.into_iter().for_each(|ordinal| self.load(ordinal));
    }

    /// Drops what the catalog does not know: segments and records may still hold data of deleted buckets and sources.
    fn follow_catalog(&mut self) {
        let catalog = &self.catalog;
        self.failed
            .retain(|ordinal, _| catalog.bucket_by_ordinal(*ordinal).is_some());
        self.buckets.retain(|ordinal, state| {
            let Some(bucket) = catalog.bucket_by_ordinal(*ordinal) else {
                return false;
            };
            // Sequences of points that the log refused or lost are reused. Sequences that a change of retention has
            // counted as used are not: new points with those would be taken for expired ones.
            let given = bucket.expired.iter().map(|it| it.before_sequence).max();
            state.next_sequence = state.next_sequence.max(given.unwrap_or(0));
            state
                .store
                .retain_sources(|source| catalog.source_by_ordinal(bucket.id, source).is_some());
            true
        });
    }

    /// Reads a bucket: its state at the last checkpoint, and the records carried since.
    fn read(&self, ordinal: u32) -> Result<BucketState, String> {
        let state = BucketState::new(ordinal, self.cache.clone(), self.ledger.clone());
        let mut state = state.map_err(|error| error.to_string())?;
        if let Some(mark) = self.manifest.buckets.get(&ordinal) {
            state.applied = mark.covered;
            state.next_sequence = mark.next_sequence;
            state.ingested_at_ns = mark.ingested_at_ns;
        }
        for segment in self.holders.get(&ordinal).into_iter().flatten() {
            let part = segment.part(ordinal).map_err(|error| {
                format!(
                    "{}: {error}; restore the file from a backup, or have `tidewatch check --repair` keep what is whole",
                    self.segments.places()(segment.id()).display()
                )
            })?;
            part.into_iter().for_each(|part| state.store.add_segment(part));
        }
        state.assign_series().map_err(|error| error.to_string())?;
        let carried = self.manifest.carried.iter();
        for (bucket, first) in carried.filter(|(bucket, _)| *bucket == ordinal) {
            let file = self.carried.named(*bucket, *first);
            apply_carried(self.disk, &file, &mut state)?;
        }
        Ok(state)
    }
}

/// Segments by bucket ordinal.
fn holders(segments: &Segments) -> HashMap<u32, Vec<Arc<SegmentFile>>> {
    let mut holders: HashMap<u32, Vec<Arc<SegmentFile>>> = HashMap::new();
    for segment in segments.open.values() {
        for part in segment.parts() {
            holders.entry(part.bucket).or_default().push(Arc::clone(segment));
        }
    }
    holders
}

/// Applies the carried records of a bucket that was set apart. They precede those in the log.
fn apply_carried(disk: &dyn Disk, file: &CarriedFile, state: &mut BucketState) -> Result<(), String> {
    file.read(disk, |sequence, bytes| {
        let at_record =
            |error: &dyn fmt::Display| format!("{}: record {sequence}: {error}", file.path.display());
        match Record::decode(bytes).map_err(|error| at_record(&error))? {
            Record::Ingest(ingest) => state
                .apply(sequence, &ingest)
                .map(drop)
                .map_err(|error| at_record(&error)),
            Record::Command(_) => Err(at_record(&"a command among points")),
        }
    })
}
