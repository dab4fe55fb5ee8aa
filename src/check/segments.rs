//! The segments that the manifest names: every block of every part is read.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use disk::Disk;
use engine::SegmentFile;
use engine::verify::BlockReport;

use super::Report;
use super::aside::disk_error;
use crate::catalog::Catalog;
use crate::checkpoint::{Layout, Manifest, SegmentsDir, shared};
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

/// Why a segment was not read at all.
pub(super) enum Unread {
    /// The file does not exist.
    Missing,
    /// A disk error, which may be temporary.
    Disk(String),
}

/// How thoroughly blocks are verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Checksums,
    /// Decode blocks and check their consistency as well.
    Rows,
}

/// Reads a segment completely.
pub(super) fn read(disk: &dyn Disk, dir: &SegmentsDir, id: u64, depth: Depth) -> Result<Segment, Unread> {
    let path = dir.segment_path(id);
    let bytes = disk.map(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unread::Missing,
        _ => Unread::Disk(disk_error(&path, &error)),
    })?;
    let mut segment = Segment::default();
    let file = match SegmentFile::open(id, shared(bytes)) {
        Ok(file) => file,
        Err(error) => {
            segment.damages.push(format!("{}: {error}", path.display()));
            return Ok(segment);
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
                segment.damages.push(described(&path, part.bucket, block));
            } else {
                sound.blocks += 1;
                sound.points += u64::from(block.rows);
            }
        }
        segment.sound.insert(part.bucket, sound);
    }
    Ok(segment)
}

/// Describes a damaged block, for the operator.
fn described(path: &Path, bucket: u32, block: &BlockReport) -> String {
    let fault = block.fault.as_ref().map_or_else(String::new, ToString::to_string);
    format!(
        "{} at offset {}: bucket {bucket}, {}: {fault}",
        path.display(),
        block.offset,
        points(block.source, (block.rows, block.first_ns, block.last_ns))
    )
}

/// Describes the points of a block, for the operator.
pub(super) fn points(source: u32, (rows, first_ns, last_ns): (u32, i64, i64)) -> String {
    format!(
        "{rows} points of source {source} from {} to {}",
        format_timestamp_ns(first_ns).as_str(),
        format_timestamp_ns(last_ns).as_str()
    )
}

/// Reports on all segments, by bucket.
pub(super) fn survey(
    disk: &dyn Disk,
    layout: &Layout,
    manifest: &Manifest,
    catalog: Option<&Catalog>,
    report: &mut Report<'_>,
) {
    let dir = SegmentsDir::of(&layout.data_dir);
    let mut all: BTreeMap<u32, Figures> = manifest
        .buckets
        .keys()
        .map(|it| (*it, Figures::default()))
        .collect();
    for id in &manifest.segments {
        let segment = match read(disk, &dir, *id, Depth::Rows) {
            Ok(segment) => segment,
            Err(Unread::Missing) => {
                report.damage(format_args!("{} is missing", dir.segment_path(*id).display()));
                continue;
            }
            Err(Unread::Disk(error)) => {
                report.damage(error);
                continue;
            }
        };
        segment
            .damages
            .into_iter()
            .for_each(|damage| report.damage(damage));
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
