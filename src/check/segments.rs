//! The segments that the manifest names: every block of every part is read. A repair rewrites a damaged segment with
//! its readable blocks.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use disk::Disk;
use engine::verify::BlockReport;
use engine::{DeadRanges, Lost, MergeError, Salvaged, SegmentFile, SharedBytes, salvage, source_of_ends};

use super::repair::replace;
use super::{Report, Say};
use crate::catalog::Catalog;
use crate::checkpoint::{DataDir, Manifest, at, shared, write_segment};
use crate::progress::Progress;
use crate::sealed_file::{SealedDir, SealedFiles};
use crate::timestamp::format_timestamp_ns;

/// Numbers of segments, and of readable blocks and points in them.
#[derive(Clone, Copy, Default)]
pub(super) struct Figures {
    segments: u64,
    blocks: u64,
    points: u64,
}

/// By bucket.
pub(super) type Sound = BTreeMap<u32, Figures>;

/// How thoroughly blocks are verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Checksums,
    /// Decode blocks and check their consistency as well.
    Rows,
}

/// Reads a segment completely, but for its dead blocks. Adds what is readable to `sound`; returns damages, as messages for
/// the operator.
///
/// # Errors
/// A disk error, which may be temporary.
pub(super) fn read(
    disk: &dyn Disk,
    dir: &SealedDir,
    id: u64,
    dead: DeadRanges,
    depth: Depth,
    sound: &mut Sound,
    progress: &dyn Progress,
) -> Result<Vec<String>, String> {
    let path = dir.file_path(id);
    let bytes = match disk.map(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(vec![format!("{} is missing", path.display())]);
        }
        mapped => mapped.map_err(at(&path))?,
    };
    let length = (*bytes).as_ref().len() as u64;
    let file = match SegmentFile::open_without(id, shared(bytes), dead) {
        Ok(file) => file,
        Err(error) => {
            progress.advance(length);
            return Ok(vec![at(&path)(error)]);
        }
    };
    let (mut damages, mut of_blocks) = (Vec::new(), 0);
    let mut advance = |bytes| {
        of_blocks += bytes;
        progress.advance(bytes);
    };
    for bucket in file.parts().map(|part| part.bucket) {
        let read = file.part(bucket).and_then(|part| match (part, depth) {
            (None, _) => Ok(Vec::new()),
            (Some(part), Depth::Checksums) => part.compare_checksums(),
            (Some(part), Depth::Rows) => part.verify_watched(&mut advance),
        });
        let blocks = match read {
            Ok(blocks) => blocks,
            Err(error) => {
                damages.push(format!("{}: bucket {bucket}: {error}", path.display()));
                continue;
            }
        };
        let figures = sound.entry(bucket).or_default();
        figures.segments += 1;
        for block in &blocks {
            if block.fault.is_some() {
                damages.push(describe_block(&path, bucket, block));
            } else {
                figures.blocks += 1;
                if source_of_ends(block.source).is_none() {
                    figures.points += u64::from(block.rows);
                }
            }
        }
    }
    progress.advance(length.saturating_sub(of_blocks));
    Ok(damages)
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
fn points(ordinal: u32, (rows, first_ns, last_ns): (u32, i64, i64)) -> String {
    let (what, source) = match source_of_ends(ordinal) {
        None => ("points", ordinal),
        Some(source) => ("ends of series", source),
    };
    format!(
        "{rows} {what} of source {source} from {} to {}",
        format_timestamp_ns(first_ns).as_str(),
        format_timestamp_ns(last_ns).as_str()
    )
}

/// Reports on all segments, by bucket.
pub(super) fn survey(dir: &DataDir, manifest: &Manifest, catalog: Option<&Catalog>, report: &mut Report<'_>) {
    let segments = dir.layout.segments_dir();
    let known = manifest.buckets.keys();
    let mut all: Sound = known.map(|it| (*it, Figures::default())).collect();
    for id in &manifest.segments {
        let dead = manifest.dead_of(*id);
        let damages = read(
            dir.disk(),
            &segments,
            *id,
            dead,
            Depth::Rows,
            &mut all,
            report.progress,
        );
        let damages = report.sound(damages);
        let damages = damages.into_iter().flatten();
        damages.for_each(|damage| report.damage(damage));
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
    let mut files = dir.files(dir.layout.segments_dir(), manifest.next_segment)?;
    let (mut segments, mut damaged, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for id in &manifest.segments {
        let (path, dead) = (files.dir.file_path(*id), manifest.dead_of(*id));
        let sound = &mut Sound::new();
        let damages = read(dir.disk(), &files.dir, *id, dead.clone(), Depth::Rows, sound, &())?;
        if damages.is_empty() {
            segments.push(*id);
        } else if !dir.exists(&path)? {
            messages.push(format!(
                "{} is missing, all points in it are lost",
                path.display()
            ));
        } else {
            let home = shared(dir.map(&path)?);
            let (new, salvaged) = write_anew(dir, &mut files, &home, |_, offset| !dead.contains(offset))?;
            let new_path = files.dir.file_path(new);
            if salvaged.rows > 0 {
                segments.push(new);
            } else {
                dir.disk.remove(&new_path).map_err(at(&new_path))?;
            }
            messages.push(format!(
                "{}: {} points could be read and are in {} now",
                path.display(),
                salvaged.rows,
                new_path.display()
            ));
            messages.extend(describe(&salvaged).map(|lost| format!("{}: {lost}", path.display())));
            damaged.push(path);
        }
    }
    if messages.is_empty() {
        return Ok(());
    }
    (manifest.segments, manifest.next_segment) = (segments, files.next_id());
    manifest.forget_unused_dead();
    manifest.note_written_segment();
    replace(dir, manifest, &damaged, messages, say)
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

/// Writes the readable blocks that are `wanted`, by bucket and offset, to a new segment. Returns its number.
pub(super) fn write_anew(
    dir: &DataDir,
    files: &mut SealedFiles,
    home: &SharedBytes,
    wanted: impl Fn(u32, u64) -> bool,
) -> Result<(u64, Salvaged), String> {
    let new = files.take_id();
    let mut salvaged = Salvaged::default();
    let written = write_segment(dir.disk(), &files.dir, new, |out| {
        salvaged = salvage(home, out, wanted)?;
        Ok::<_, MergeError>(())
    });
    written.map_err(at(&files.dir.file_path(new)))?;
    Ok((new, salvaged))
}
