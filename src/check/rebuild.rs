//! Creates a new manifest if the old one is damaged or missing. The existing files determine what they hold, and the
//! log determines which of its records are among that.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{SegmentFile, SharedBytes, salvage};
use wal::Sequence;

use super::Say;
use super::evidence::Evidence;
use super::ledger::load;
use super::segments::{describe, write_anew};
use crate::catalog::{Catalog, EntryKey, Stream};
use crate::checkpoint::format_1::bucket_dir;
use crate::checkpoint::{BucketMark, DataDir, Manifest, SEQUENCES_UNKNOWN_MAX, at, message, shared};
use crate::ledger::{LedgerError, Run, verify};
use crate::sealed_file::SealedFiles;

/// Creates the manifest from the existing files and installs it; the log begins after `before`. Returns `None` if the
/// catalog does not load; then nothing was changed.
pub(super) fn rebuild(
    dir: &DataDir,
    before: Sequence,
    say: &mut Say<'_>,
) -> Result<Option<Manifest>, String> {
    let mut messages = Vec::new();
    let (runs, unopened) = runs(dir)?;
    let catalog = match load(dir, &runs) {
        Ok(catalog) => catalog,
        Err(error) => {
            say(format!(
                "nothing, because no manifest can be made without the catalog: {error}; restore a backup, or see --adopt"
            ));
            return Ok(None);
        }
    };
    let evidence = Evidence::read(dir, before)?;
    let carried = dir.carried_files()?;
    let catalog_covered = evidence.of_catalog(dir, &runs, &catalog)?.max(before);
    let objects_to_come = evidence.objects_behind(catalog_covered);
    let mut segments = Segments::read(dir, &catalog, objects_to_come, &mut messages)?;
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
        let held = segments.held.get(&ordinal);
        if held.is_none() && dir.exists(&bucket_dir(dir.path(), ordinal))? {
            // Only the lost manifest recorded that this directory of format 1 was not converted yet.
            manifest.unconverted.push(ordinal);
            continue;
        }
        let next_row = held.and_then(|held| held.last()).map_or(1, |rows| rows.end);
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
    segments.write(dir, &mut manifest, &mut messages)?;
    let path = dir.manifest_path();
    let mut aside = unopened;
    aside.append(&mut segments.left_out);
    aside.extend(dir.exists(&path)?.then(|| path.clone()));
    // The next start removes what the manifest does not name.
    for path in &aside {
        let kept = dir.keep_aside(path)?;
        messages.push(format!("{} is kept as {}", path.display(), kept.display()));
    }
    dir.write_manifest(&manifest)?;
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
    messages.push(
        "points that were deleted by filters may be there again, if a file still had them: only the lost manifest knew"
            .to_owned(),
    );
    messages.into_iter().for_each(say);
    Ok(Some(manifest))
}

/// Numbers of the runs in use, in ascending order, and paths of those that do not open. An interrupted merge leaves its
/// input runs besides its output: if an entry is the first version in two runs, it was copied from one to the other.
fn runs(dir: &DataDir) -> Result<(Vec<u64>, Vec<PathBuf>), String> {
    let runs_dir = dir.layout.runs_dir();
    let (mut runs, mut unopened) = (Vec::new(), Vec::new());
    let mut firsts: HashSet<EntryKey> = HashSet::new();
    for id in dir.list(&runs_dir)?.ids.into_iter().rev() {
        let run = match Run::open_file(dir.disk(), &runs_dir, id) {
            Ok(run) => run,
            Err(LedgerError::Damaged { .. }) => {
                unopened.push(runs_dir.file_path(id));
                continue;
            }
            Err(error) => return Err(error.to_string()),
        };
        let mut of_run = Vec::new();
        if Stream::OF_TAIL.contains(&run.stream) {
            let read = verify(&run, |item| of_run.extend((!item.again).then_some(item.key)));
            read.map_err(message)?;
        }
        if !of_run.iter().any(|first| firsts.contains(first)) {
            firsts.extend(of_run);
            runs.push(id);
        }
    }
    runs.reverse();
    Ok((runs, unopened))
}

/// A segment, and what of it is in use.
struct Segment {
    id: u64,
    home: SharedBytes,
    /// Whether all of it is in use. If the file is damaged, `home` holds only its readable part.
    is_whole: bool,
    /// Whether any block is in use.
    is_used: bool,
    /// Offsets of the blocks that are not in use.
    replaced: HashSet<u64>,
    /// Buckets that are not in use: the log creates them, and has their rows.
    to_come: HashSet<u32>,
}

/// The existing segments.
struct Segments {
    files: SealedFiles,
    found: Vec<Segment>,
    /// Sequences of rows, as contiguous ranges, by bucket.
    held: BTreeMap<u32, Vec<Range<u64>>>,
    /// A bucket that neither the catalog nor the log knows.
    unknown: Option<u32>,
    /// Files that are not in use as they are.
    left_out: Vec<PathBuf>,
}

impl Segments {
    /// Reads the segments, the newest first: a merge or a deletion rewrites blocks of older segments, which may still exist.
    /// A block is not in use if a later segment has any of its rows: the others were deleted. The rest of the log creates up to `objects_to_come` more buckets than the catalog has.
    fn read(
        dir: &DataDir,
        catalog: &Catalog,
        objects_to_come: usize,
        messages: &mut Vec<String>,
    ) -> Result<Self, String> {
        let last = catalog.last_bucket_ordinal();
        let last_to_come = last.saturating_add(u32::try_from(objects_to_come).unwrap_or(u32::MAX));
        let mut segments = Segments {
            found: Vec::new(),
            held: BTreeMap::new(),
            unknown: None,
            left_out: Vec::new(),
            files: dir.files(dir.layout.segments_dir(), 0)?,
        };
        for id in dir.list(&segments.files.dir)?.ids.into_iter().rev() {
            let path = segments.files.dir.file_path(id);
            let home = shared(dir.map(&path)?);
            let (home, file, is_salvaged) = opened(id, home, &path, messages)?;
            let mut segment = Segment {
                id,
                home,
                is_whole: !is_salvaged,
                is_used: false,
                replaced: HashSet::new(),
                to_come: HashSet::new(),
            };
            for part in file.parts() {
                let bucket = part.bucket;
                if bucket > last {
                    // The log creates this bucket, so it also has its rows.
                    segments.unknown = segments.unknown.or((bucket > last_to_come).then_some(bucket));
                    segment.is_whole = false;
                    segment.to_come.insert(bucket);
                    continue;
                }
                let read = file
                    .part(bucket)
                    .and_then(|part| part.map(|it| it.whole_sequences()).transpose());
                let held = segments.held.entry(bucket).or_default();
                let mut of_part = Vec::new();
                for (offset, rows) in read.map_err(at(&path))?.unwrap_or_default() {
                    if overlap(held, &ranges(rows.clone())) {
                        segment.is_whole = false;
                        segment.replaced.insert(offset);
                    } else {
                        segment.is_used = true;
                        of_part.extend(rows);
                    }
                }
                held.extend(ranges(of_part));
                held.sort_unstable_by_key(|rows| rows.start);
            }
            segments.found.push(segment);
        }
        segments.found.reverse();
        Ok(segments)
    }

    /// Adds the files that are in use as a whole, and rewrites those that are in use in part.
    fn write(
        &mut self,
        dir: &DataDir,
        manifest: &mut Manifest,
        messages: &mut Vec<String>,
    ) -> Result<(), String> {
        for segment in &self.found {
            let path = self.files.dir.file_path(segment.id);
            if segment.is_whole {
                manifest.segments.push(segment.id);
                continue;
            }
            self.left_out.push(path.clone());
            if !segment.is_used {
                messages.push(format!(
                    "{}: not used, because its points are in a later segment or none of them reads",
                    path.display()
                ));
                continue;
            }
            let is_used =
                |bucket, offset| !segment.to_come.contains(&bucket) && !segment.replaced.contains(&offset);
            let (new, _) = write_anew(dir, &mut self.files, &segment.home, is_used)?;
            messages.push(format!(
                "{}: its points in use are in {} now",
                path.display(),
                self.files.dir.file_path(new).display()
            ));
            manifest.segments.push(new);
        }
        manifest.next_segment = self.files.next_id();
        Ok(())
    }
}

/// Opens a segment with all its parts; if one does not read, salvages the readable part.
pub(super) fn opened(
    id: u64,
    home: SharedBytes,
    path: &Path,
    messages: &mut Vec<String>,
) -> Result<(SharedBytes, Arc<SegmentFile>, bool), String> {
    if let Ok(file) = SegmentFile::open(id, Arc::clone(&home))
        && file.parts().all(|part| file.part(part.bucket).is_ok())
    {
        return Ok((home, file, false));
    }
    let mut whole = Vec::new();
    let salvaged = salvage(&home, &mut whole, |_, _| true).map_err(at(path))?;
    messages.extend(describe(&salvaged).map(|lost| format!("{}: {lost}", path.display())));
    let home: SharedBytes = Arc::new(whole);
    let file = SegmentFile::open(id, Arc::clone(&home)).map_err(at(path))?;
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
