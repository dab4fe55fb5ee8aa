//! A new manifest for a bucket whose own is damaged or gone: the files in its directory say what they hold, and the log
//! which of its records are among that.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use engine::verify::list_whole_sequences;
use wal::disk::Disk;
use wal::{Log, LogOptions, Sequence};

use super::overlay::Overlay;
use crate::bucket::{BucketDir, Manifest, shared};
use crate::checkpoint::Layout;
use crate::journal::Record;

/// Rows that were deleted or are lost took sequences that nothing tells any more. Points to come are numbered from
/// behind as many, so that no two ever had one id.
const SEQUENCES_UNKNOWN_MAX: u64 = 1 << 32;

/// What a directory holds.
pub(super) struct Rebuilt {
    /// Names all that counts.
    pub(super) manifest: Manifest,
    /// Segments that do not count: they do not read, or hold rows that a later one holds, too.
    pub(super) left_out: Vec<PathBuf>,
    /// Rows there are.
    pub(super) points: u64,
}

/// Reads all segments of a bucket, and the log from behind the mark.
pub(super) fn rebuild(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    dir: &BucketDir,
    ordinal: u32,
) -> Result<Rebuilt, String> {
    let mut listing = dir
        .list(&**disk)
        .map_err(|error| format!("{}: {error}", dir.path().display()))?;
    listing.segments.sort_unstable();
    listing.answers.sort_unstable();
    let ids = listing.segments.iter().chain(&listing.answers);
    let next_file = ids.max().map_or(1, |id| id + 1);
    let (mut segments, mut left_out) = (Vec::new(), Vec::new());
    let mut held: Vec<Range<u64>> = Vec::new();
    // The latest first: a merge writes the rows of earlier segments again, and these may still be there.
    for id in listing.segments.into_iter().rev() {
        let path = dir.segment_path(id);
        let home = disk
            .map(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        match list_whole_sequences(&shared(home)).map(runs) {
            Ok(runs) if !overlap(&held, &runs) => {
                segments.push(id);
                held.extend(runs);
                held.sort_unstable_by_key(|run| run.start);
            }
            _ => left_out.push(path),
        }
    }
    segments.reverse();
    let next_row = held.last().map_or(1, |run| run.end);
    let (covered, next_in_log) = replayed(disk, layout, ordinal, next_row)?;
    let manifest = Manifest {
        covered,
        next_sequence: next_row.max(next_in_log) + SEQUENCES_UNKNOWN_MAX,
        next_file,
        segments,
        answers: listing.answers,
        // Known again with the next ingest.
        ingested_at_ns: None,
    };
    Ok(Rebuilt {
        manifest,
        left_out,
        points: held.iter().map(|run| run.end - run.start).sum(),
    })
}

/// Up to which record the log holds nothing but rows before `next_row`, and the row behind its last one. A checkpoint
/// takes whole records, in their order: one whose first row is in a segment is there with all its rows.
fn replayed(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    ordinal: u32,
    next_row: u64,
) -> Result<(Sequence, u64), String> {
    let mark = layout.read_mark(&**disk).map_err(|error| error.to_string())?;
    let (mut covered, mut next_in_log) = (mark, 0);
    let untouched = Arc::new(Overlay(Arc::clone(disk)));
    let mut replay = |sequence: Sequence, bytes: &[u8]| {
        if let Record::Ingest(ingest) = Record::decode(bytes)?
            && ingest.bucket == ordinal
        {
            next_in_log = ingest.first_sequence + u64::from(ingest.rows);
            if ingest.first_sequence < next_row {
                covered = sequence;
            }
        }
        Ok::<_, crate::journal::RecordError>(())
    };
    let read = Log::open(
        untouched,
        &layout.log_dir(),
        LogOptions::default(),
        mark,
        &mut replay,
    );
    match read {
        Ok(_) => Ok((covered, next_in_log)),
        Err(wal::OpenError::Log(error)) => Err(error.to_string()),
        Err(wal::OpenError::Replay { sequence, source }) => Err(format!("record {sequence}: {source}")),
    }
}

/// The same numbers as ranges without gaps.
fn runs(mut numbers: Vec<u64>) -> Vec<Range<u64>> {
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

/// Whether any number is in both; `held` is in order, and so is what it is compared with.
fn overlap(held: &[Range<u64>], runs: &[Range<u64>]) -> bool {
    runs.iter().any(|run| {
        let behind = held.partition_point(|it| it.end <= run.start);
        held.get(behind).is_some_and(|it| it.start < run.end)
    })
}
