//! Creates a new manifest if the old one is damaged or missing. The existing files determine what they hold, and the
//! log determines which of its records are among that.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use disk::Disk;
use engine::{MergeError, SegmentFile, SharedBytes, salvage};
use wal::Sequence;

use super::aside::{disk_error, exists, keep_aside};
use super::carried;
use super::evidence::Evidence;
use super::ledger::load;
use super::mend::{describe, next_id};
use crate::bucket::CarriedDir;
use crate::catalog::{Catalog, Stream};
use crate::checkpoint::{
    BucketDir, BucketMark, Layout, Manifest, SEQUENCES_UNKNOWN_MAX, SegmentsDir, shared,
};
use crate::ids::ObjectId;
use crate::ledger::{LedgerDir, LedgerError, for_each_sound};

/// Creates the manifest from the existing files and installs it; the log begins after `before`. Returns `None` if the
/// catalog does not load; then nothing was changed.
pub(super) fn rebuild(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    before: Sequence,
    say: &mut dyn FnMut(String),
) -> Result<Option<Manifest>, String> {
    let mut messages = Vec::new();
    let (runs, unopened) = runs(&**disk, layout)?;
    let catalog = match load(disk, layout, &runs) {
        Ok(catalog) => catalog,
        Err(error) => {
            say(format!(
                "nothing, because no manifest can be made without the catalog: {error}; restore a backup, or see --adopt"
            ));
            return Ok(None);
        }
    };
    let mut evidence = Evidence::read(disk, layout, before)?;
    let carried = CarriedDir::of(&layout.data_dir).list(&**disk);
    let carried = carried.map_err(|error| disk_error(&layout.data_dir, &error))?;
    for file in &carried {
        evidence.add_carried(&carried::read(&**disk, file).whole)?;
    }
    let found = evidence.of_catalog(&**disk, layout, &runs, &catalog)?;
    let catalog_covered = found.max(before);
    let known = known_ordinals(&catalog, evidence.objects_behind(catalog_covered));
    let mut segments = Segments::read(&**disk, layout, &known, &mut messages)?;
    if let Some(ordinal) = segments.unknown {
        say(format!(
            "nothing, because the catalog does not know bucket {ordinal}, which has points; restore a backup"
        ));
        return Ok(None);
    }
    let mut manifest = Manifest {
        covered: before,
        catalog_covered,
        runs,
        carried: carried.iter().map(|file| (file.bucket, file.first)).collect(),
        ..Manifest::default()
    };
    let set_apart: BTreeSet<u32> = carried.iter().map(|file| file.bucket).collect();
    for bucket in catalog.buckets() {
        let ordinal = bucket.ordinal;
        let next_row = segments
            .held
            .get(&ordinal)
            .and_then(|held| held.last())
            .map_or(1, |run| run.end);
        let from = if set_apart.contains(&ordinal) { 0 } else { before };
        let (covered, next_in_log) = evidence.of_bucket(ordinal, from, next_row);
        let mark = BucketMark {
            covered,
            next_sequence: next_row.max(next_in_log) + SEQUENCES_UNKNOWN_MAX,
            // Known again after the next ingest.
            ingested_at_ns: None,
        };
        manifest.buckets.insert(ordinal, mark);
    }
    manifest.unconverted = unconverted(&**disk, layout, &catalog, &segments)?;
    manifest
        .buckets
        .retain(|ordinal, _| !manifest.unconverted.contains(ordinal));
    segments.write(&**disk, &mut manifest, &mut messages)?;
    let ledger = LedgerDir::of(&layout.data_dir);
    let unopened = unopened.iter().map(|id| ledger.run_path(*id));
    let mut aside: Vec<PathBuf> = unopened.chain(segments.left_out).collect();
    let path = Manifest::path(&layout.data_dir);
    aside.extend(exists(&**disk, &path)?.then(|| path.clone()));
    // The next start removes what the manifest does not name.
    for path in &aside {
        let kept = keep_aside(&**disk, path)?;
        messages.push(format!("{} is kept as {}", path.display(), kept.display()));
    }
    let written = manifest.write(&**disk, &layout.data_dir);
    written.map_err(|error| error.to_string())?;
    say(format!(
        "{} is made anew from the {} segments and {} runs that exist; data in other files is lost, and changes of the \
         catalog after record {catalog_covered} are applied again",
        path.display(),
        manifest.segments.len(),
        manifest.runs.len()
    ));
    messages.push(
        "answers to idempotency keys that only other files had are forgotten: requests that use these keys again are \
         stored again"
            .to_owned(),
    );
    messages.into_iter().for_each(say);
    Ok(Some(manifest))
}

/// Runs in use, in order of their numbers, and those that do not open. An interrupted merge leaves its input runs
/// besides its output: if an entry is the first version in two runs, it was copied from one to the other.
fn runs(disk: &dyn Disk, layout: &Layout) -> Result<(Vec<u64>, Vec<u64>), String> {
    let dir = LedgerDir::of(&layout.data_dir);
    let mut listed = dir.list(disk).map_err(|error| error.to_string())?.runs;
    listed.sort_unstable();
    let (mut runs, mut unopened) = (Vec::new(), Vec::new());
    let mut firsts: HashSet<(Stream, ObjectId, i64, ObjectId)> = HashSet::new();
    for id in listed.into_iter().rev() {
        let run = match dir.open(disk, id) {
            Ok(run) => run,
            Err(LedgerError::Damaged { .. }) => {
                unopened.push(id);
                continue;
            }
            Err(error) => return Err(error.to_string()),
        };
        let mut of_run = Vec::new();
        if Stream::OF_TAIL.contains(&run.stream()) {
            let read = for_each_sound(&run, |place, _| {
                if !place.again {
                    of_run.push((run.stream(), place.owner, place.at_ns, place.id));
                }
            });
            read.map_err(|error| error.to_string())?;
        }
        if !of_run.iter().any(|first| firsts.contains(first)) {
            firsts.extend(of_run);
            runs.push(id);
        }
    }
    runs.reverse();
    Ok((runs, unopened))
}

/// Buckets with a directory of format 1 and without a segment. Only the lost manifest recorded that they were not
/// converted yet.
fn unconverted(
    disk: &dyn Disk,
    layout: &Layout,
    catalog: &Catalog,
    segments: &Segments,
) -> Result<Vec<u32>, String> {
    let mut unconverted = Vec::new();
    for ordinal in catalog.buckets().map(|bucket| bucket.ordinal) {
        let dir = BucketDir::of(&layout.data_dir, ordinal);
        if !segments.held.contains_key(&ordinal) && exists(disk, dir.path())? {
            unconverted.push(ordinal);
        }
    }
    Ok(unconverted)
}

/// The last bucket ordinal of the catalog, and the last one after the rest of the log has been applied.
fn known_ordinals(catalog: &Catalog, to_come: usize) -> (u32, u32) {
    let last = catalog.last_bucket_ordinal();
    (
        last,
        last.saturating_add(u32::try_from(to_come).unwrap_or(u32::MAX)),
    )
}

/// A segment, and the buckets whose rows in it are in use.
struct Segment {
    id: u64,
    home: SharedBytes,
    /// Whether the file is damaged, and `home` holds its readable part.
    is_salvaged: bool,
    all: BTreeSet<u32>,
    counts: BTreeSet<u32>,
}

/// The existing segments.
struct Segments {
    dir: SegmentsDir,
    found: Vec<Segment>,
    /// Sequences of rows, as contiguous ranges, by bucket.
    held: BTreeMap<u32, Vec<Range<u64>>>,
    /// A bucket that neither the catalog nor the log knows.
    unknown: Option<u32>,
    /// Files that are not in use as they are.
    left_out: Vec<PathBuf>,
}

impl Segments {
    /// Reads the segments, the newest first: a merge rewrites the rows of older segments, which may still exist.
    fn read(
        disk: &dyn Disk,
        layout: &Layout,
        (last, last_to_come): &(u32, u32),
        messages: &mut Vec<String>,
    ) -> Result<Self, String> {
        let dir = SegmentsDir::of(&layout.data_dir);
        let listing = dir.list(disk).map_err(|error| disk_error(dir.path(), &error))?;
        let mut segments = Segments {
            found: Vec::new(),
            held: BTreeMap::new(),
            unknown: None,
            left_out: Vec::new(),
            dir,
        };
        for id in listing.segments.into_iter().rev() {
            let path = segments.dir.segment_path(id);
            let home = shared(disk.map(&path).map_err(|error| disk_error(&path, &error))?);
            let (home, file, is_salvaged) = opened(id, home, &path.display().to_string(), messages)?;
            let mut segment = Segment {
                id,
                home,
                is_salvaged,
                all: BTreeSet::new(),
                counts: BTreeSet::new(),
            };
            for part in file.parts() {
                let bucket = part.bucket;
                segment.all.insert(bucket);
                if bucket > *last {
                    // The log creates this bucket, so it also has its rows.
                    segments.unknown = segments.unknown.or((bucket > *last_to_come).then_some(bucket));
                    continue;
                }
                let read = file
                    .part(bucket)
                    .and_then(|part| part.map(|it| it.whole_sequences()).transpose());
                let runs = ranges(
                    read.map_err(|error| format!("{}: {error}", path.display()))?
                        .unwrap_or_default(),
                );
                let held = segments.held.entry(bucket).or_default();
                if !overlap(held, &runs) {
                    held.extend(runs);
                    held.sort_unstable_by_key(|run| run.start);
                    segment.counts.insert(bucket);
                }
            }
            segments.found.push(segment);
        }
        segments.found.reverse();
        Ok(segments)
    }

    /// Adds the files that are in use as a whole, and rewrites those that are in use in part.
    fn write(
        &mut self,
        disk: &dyn Disk,
        manifest: &mut Manifest,
        messages: &mut Vec<String>,
    ) -> Result<(), String> {
        manifest.next_segment = next_id(disk, &self.dir, manifest)?;
        for segment in &self.found {
            let path = self.dir.segment_path(segment.id);
            if segment.counts == segment.all && !segment.is_salvaged {
                manifest.segments.push(segment.id);
                continue;
            }
            self.left_out.push(path.clone());
            if segment.counts.is_empty() {
                messages.push(format!(
                    "{}: not used, because its points are in a later segment or none of them reads",
                    path.display()
                ));
                continue;
            }
            let new = manifest.next_segment;
            manifest.next_segment += 1;
            let written = self.dir.write(disk, new, |out| {
                salvage(&segment.home, out, |bucket| segment.counts.contains(&bucket))?;
                Ok::<u64, MergeError>(0)
            });
            let new_path = self.dir.segment_path(new);
            written.map_err(|error| format!("{}: {error}", new_path.display()))?;
            messages.push(format!(
                "{}: its points in use are in {} now",
                path.display(),
                new_path.display()
            ));
            manifest.segments.push(new);
        }
        Ok(())
    }
}

/// Opens a segment with all its parts; if one does not read, salvages the readable part.
pub(super) fn opened(
    id: u64,
    home: SharedBytes,
    path: &str,
    messages: &mut Vec<String>,
) -> Result<(SharedBytes, Arc<SegmentFile>, bool), String> {
    if let Ok(file) = SegmentFile::open(id, Arc::clone(&home))
        && file.parts().all(|part| file.part(part.bucket).is_ok())
    {
        return Ok((home, file, false));
    }
    let mut whole = Vec::new();
    let failed = |error: &dyn std::fmt::Display| format!("{path}: {error}");
    let salvaged = salvage(&home, &mut whole, |_| true).map_err(|error| failed(&error))?;
    messages.extend(describe(&salvaged).map(|lost| format!("{path}: {lost}")));
    let home: SharedBytes = Arc::new(whole);
    let file = SegmentFile::open(id, Arc::clone(&home)).map_err(|error| failed(&error))?;
    Ok((home, file, true))
}

/// Converts numbers to contiguous ranges.
fn ranges(mut numbers: Vec<u64>) -> Vec<Range<u64>> {
    numbers.sort_unstable();
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

/// Whether any number is in both. `held` is sorted by start.
fn overlap(held: &[Range<u64>], runs: &[Range<u64>]) -> bool {
    runs.iter().any(|run| {
        let behind = held.partition_point(|it| it.end <= run.start);
        held.get(behind).is_some_and(|it| it.start < run.end)
    })
}
