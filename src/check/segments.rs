//! The segments that the manifest names: every block of every part is read. A repair rewrites a damaged segment with
//! its readable blocks.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use disk::Disk;
use engine::verify::BlockReport;
use engine::{Lost, MergeError, Salvaged, SegmentFile, SharedBytes, salvage};

use super::repair::replace;
use super::{Report, Say};
use crate::catalog::Catalog;
use crate::checkpoint::DataDir;
use crate::checkpoint::{Manifest, at, shared, write_segment};
use crate::sealed_file::SealedDir;
use crate::timestamp::format_timestamp_ns;

/// The contents of a segment, and its damage.
#[derive(Default)]
pub(super) struct Segment {
    /// Readable blocks and points, by bucket.
    pub(super) sound: BTreeMap<u32, Figures>,
    /// Messages for the operator.
    pub(super) damages: Vec<String>,
}

/// Numbers of segments, blocks and points.
#[derive(Clone, Copy, Default)]
pub(super) struct Figures {
    segments: u64,
    blocks: u64,
    points: u64,
}

/// How thoroughly blocks are verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Checksums,
    /// Decode blocks and check their consistency as well.
    Rows,
}

/// Reads a segment completely; returns `None` if the file does not exist.
///
/// # Errors
/// A disk error, which may be temporary.
pub(super) fn read(
    disk: &dyn Disk,
    dir: &SealedDir,
    id: u64,
    depth: Depth,
) -> Result<Option<Segment>, String> {
    let path = dir.file_path(id);
    let bytes = match disk.map(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        mapped => mapped.map_err(at(&path))?,
    };
    let mut segment = Segment::default();
    let file = match SegmentFile::open(id, shared(bytes)) {
        Ok(file) => file,
        Err(error) => {
            segment.damages.push(format!("{}: {error}", path.display()));
            return Ok(Some(segment));
        }
    };
    for part in file.parts() {
        let read = file.part(part.bucket).and_then(|read| {
            let verified = read.map(|it| match depth {
                Depth::Checksums => it.compare_checksums(),
                Depth::Rows => it.verify(),
            });
            verified.transpose()
        });
        let blocks = match read {
            Ok(blocks) => blocks.unwrap_or_default(),
            Err(error) => {
                let bucket = part.bucket;
                segment
                    .damages
                    .push(format!("{}: bucket {bucket}: {error}", path.display()));
                continue;
            }
        };
        let mut sound = Figures {
            segments: 1,
            ..Figures::default()
        };
        for block in &blocks {
            if block.fault.is_some() {
                segment.damages.push(describe_block(&path, part.bucket, block));
            } else {
                sound.blocks += 1;
                sound.points += u64::from(block.rows);
            }
        }
        segment.sound.insert(part.bucket, sound);
    }
    Ok(Some(segment))
}

/// Describes a damaged block, for the operator.
fn describe_block(path: &Path, bucket: u32, block: &BlockReport) -> String {
    let fault = block.fault.as_ref().map_or_else(String::new, ToString::to_string);
    format!(
        "{} at offset {}: bucket {bucket}, {}: {fault}",
        path.display(),
        block.offset,
        points(block.source, (block.rows, block.first_ns, block.last_ns))
    )
}

/// Describes the points of a block, for the operator.
fn points(source: u32, (rows, first_ns, last_ns): (u32, i64, i64)) -> String {
    format!(
        "{rows} points of source {source} from {} to {}",
        format_timestamp_ns(first_ns).as_str(),
        format_timestamp_ns(last_ns).as_str()
    )
}

/// Reports on all segments, by bucket.
pub(super) fn survey(dir: &DataDir, manifest: &Manifest, catalog: Option<&Catalog>, report: &mut Report<'_>) {
    let segments = dir.layout.segments_dir();
    let known = manifest.buckets.keys();
    let mut all: BTreeMap<u32, Figures> = known.map(|it| (*it, Figures::default())).collect();
    for id in &manifest.segments {
        let Some(found) = report.sound(read(dir.disk(), &segments, *id, Depth::Rows)) else {
            continue;
        };
        let Some(segment) = found else {
            report.damage(format_args!("{} is missing", segments.file_path(*id).display()));
            continue;
        };
        segment.damages.iter().for_each(|damage| report.damage(damage));
        for (bucket, sound) in segment.sound {
            let sum = all.entry(bucket).or_default();
            sum.segments += sound.segments;
            sum.blocks += sound.blocks;
            sum.points += sound.points;
        }
    }
    report.say(format_args!("segments: {} files", manifest.segments.len()));
    for (ordinal, figures) in all {
        let bucket = catalog.and_then(|catalog| catalog.bucket_by_ordinal(ordinal));
        let name = bucket.map_or_else(
            || "not in the catalog".to_owned(),
            |bucket| format!("{:?}", bucket.name),
        );
        let covered = manifest.buckets.get(&ordinal).map_or(0, |mark| mark.covered);
        report.say(format_args!(
            "bucket {ordinal} ({name}): {} segments with {} blocks and {} points, up to record {covered}",
            figures.segments, figures.blocks, figures.points
        ));
    }
}

/// Replaces damaged segments by their readable blocks.
pub(super) fn repair(dir: &DataDir, manifest: &mut Manifest, say: &mut Say<'_>) -> Result<(), String> {
    let segments = dir.layout.segments_dir();
    let mut repaired = Manifest {
        segments: Vec::new(),
        next_segment: next_id(dir, manifest)?,
        ..manifest.clone()
    };
    let (mut damaged, mut messages) = (Vec::new(), Vec::new());
    for id in &manifest.segments {
        let path = segments.file_path(*id);
        match read(dir.disk(), &segments, *id, Depth::Rows)? {
            Some(segment) if segment.damages.is_empty() => repaired.segments.push(*id),
            Some(_) => {
                let new = repaired.next_segment;
                repaired.next_segment += 1;
                let salvaged = write_anew(dir, &shared(dir.map(&path)?), new, |_| true)?;
                if salvaged.rows == 0 {
                    let empty = segments.file_path(new);
                    dir.disk.remove(&empty).map_err(at(&empty))?;
                }
                messages.push(format!(
                    "{}: {} points could be read and are in {} now",
                    path.display(),
                    salvaged.rows,
                    segments.file_path(new).display()
                ));
                messages.extend(describe(&salvaged).map(|lost| format!("{}: {lost}", path.display())));
                repaired.segments.extend((salvaged.rows > 0).then_some(new));
                damaged.push(path);
            }
            None => {
                messages.push(format!(
                    "{} is missing, all points in it are lost",
                    path.display()
                ));
            }
        }
    }
    if messages.is_empty() {
        return Ok(());
    }
    replace(dir, &repaired, &damaged, messages, say)?;
    *manifest = repaired;
    Ok(())
}

/// Describes what was lost of a segment, for the operator.
pub(super) fn describe(salvaged: &Salvaged) -> impl Iterator<Item = String> + '_ {
    let nothing = salvaged
        .lost
        .is_empty()
        .then(|| "nothing of it is lost".to_owned());
    salvaged.lost.iter().map(describe_lost).chain(nothing)
}

fn describe_lost(lost: &Lost) -> String {
    let Lost { offset, bytes, block } = lost;
    let at = format!("{bytes} bytes at offset {offset}");
    match block {
        Some(block) => {
            let what = block.rows.map_or_else(
                || format!("a block of source {}, times unknown", block.source),
                |rows| points(block.source, rows),
            );
            format!("lost {what} of bucket {} ({at})", block.bucket)
        }
        None if *bytes == 0 => {
            format!("it ends at offset {offset}: blocks after that, if any, are lost")
        }
        None => format!("{at} are not a readable block: points in them, if any, are lost"),
    }
}

/// A number that no segment and no leftover has.
pub(super) fn next_id(dir: &DataDir, manifest: &Manifest) -> Result<u64, String> {
    let listed = dir.list(&dir.layout.segments_dir())?.ids;
    let last = listed.last().map_or(0, |last| last + 1);
    Ok(manifest.next_segment.max(last).max(1))
}

/// Writes the readable blocks of the `wanted` buckets to a new segment.
pub(super) fn write_anew(
    dir: &DataDir,
    home: &SharedBytes,
    new: u64,
    wanted: impl Fn(u32) -> bool,
) -> Result<Salvaged, String> {
    let segments = dir.layout.segments_dir();
    let mut salvaged = Salvaged::default();
    let written = write_segment(dir.disk(), &segments, new, |out| {
        salvaged = salvage(home, out, wanted)?;
        Ok::<_, MergeError>(())
    });
    written.map_err(at(&segments.file_path(new)))?;
    Ok(salvaged)
}
