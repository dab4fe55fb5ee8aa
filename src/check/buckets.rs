//! The buckets' directories: every block of every segment is read.

use engine::EngineError;
use engine::verify::{BlockReport, verify_segment};
use wal::disk::Disk;

use super::Report;
use crate::bucket::{AnswersFile, BucketDir, Manifest, shared};
use crate::catalog::Catalog;
use crate::checkpoint::Layout;
use crate::timestamp::format_timestamp_ns;

/// What is wrong with a file that a manifest names.
pub(super) enum Fault {
    /// It is not there, or the disk does not read it.
    Unread(String),
    /// It does not read as a whole; which points it held is not known.
    Whole(String),
    /// Blocks of it do not read.
    Blocks(Vec<BlockReport>),
}

/// Blocks that are whole, or what is wrong.
pub(super) type Segment = Result<Vec<BlockReport>, Fault>;

/// Ordinals of the directories there are.
pub(super) fn ordinals(disk: &dyn Disk, layout: &Layout) -> Result<Vec<u32>, String> {
    let dir = layout.buckets_dir();
    let said = |error: std::io::Error| format!("{}: {error}", dir.display());
    if !disk.exists(&dir).map_err(said)? {
        return Ok(Vec::new());
    }
    Ok(disk
        .list(&dir)
        .map_err(said)?
        .iter()
        .filter_map(BucketDir::ordinal)
        .collect())
}

/// Reads a segment to the last byte.
pub(super) fn read_segment(disk: &dyn Disk, dir: &BucketDir, id: u64) -> Segment {
    let path = dir.segment_path(id);
    let bytes = disk
        .map(&path)
        .map_err(|error| Fault::Unread(format!("{}: {error}", path.display())))?;
    let whole = |error: EngineError| Fault::Whole(format!("{}: {error}", path.display()));
    let blocks = verify_segment(&shared(bytes)).map_err(whole)?;
    if blocks.iter().any(|block| block.fault.is_some()) {
        return Err(Fault::Blocks(blocks));
    }
    Ok(blocks)
}

/// Reads an answers file; `Err` says what is wrong.
pub(super) fn read_answers(disk: &dyn Disk, dir: &BucketDir, id: u64) -> Result<(), String> {
    let path = dir.answers_path(id);
    let bytes = disk
        .map(&path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    AnswersFile::open(bytes)
        .map(drop)
        .ok_or_else(|| format!("{} is damaged", path.display()))
}

/// Reports on all directories. One whose bucket was deleted goes at the next start.
pub(super) fn survey(
    disk: &dyn Disk,
    layout: &Layout,
    catalog: Option<&Catalog>,
    report: &mut Report<'_>,
) -> Result<(), String> {
    for ordinal in ordinals(disk, layout)? {
        let dir = BucketDir::of(&layout.data_dir, ordinal);
        match dir.read_manifest(disk) {
            Ok(manifest) => survey_bucket(disk, &dir, ordinal, manifest, catalog, report)?,
            Err(error) => report.damage(error),
        }
    }
    Ok(())
}

fn survey_bucket(
    disk: &dyn Disk,
    dir: &BucketDir,
    ordinal: u32,
    manifest: Option<Manifest>,
    catalog: Option<&Catalog>,
    report: &mut Report<'_>,
) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", dir.path().display());
    let name = catalog.and_then(|catalog| catalog.bucket_by_ordinal(ordinal));
    let name = name.map_or_else(
        || "not in the snapshot".to_owned(),
        |bucket| format!("{:?}", bucket.name),
    );
    let found = manifest.is_some();
    let manifest = manifest.unwrap_or_default();
    let (mut blocks, mut points) = (0, 0u64);
    for id in &manifest.segments {
        let sound = match read_segment(disk, dir, *id) {
            Ok(sound) => sound,
            Err(Fault::Unread(message) | Fault::Whole(message)) => {
                report.damage(message);
                continue;
            }
            Err(Fault::Blocks(all)) => {
                for block in all.iter().filter(|block| block.fault.is_some()) {
                    report.damage(described(dir, *id, block));
                }
                all.into_iter().filter(|block| block.fault.is_none()).collect()
            }
        };
        blocks += sound.len();
        points += sound.iter().map(|block| u64::from(block.rows)).sum::<u64>();
    }
    for id in &manifest.answers {
        if let Err(message) = read_answers(disk, dir, *id) {
            report.damage(message);
        }
    }
    report.say(format_args!(
        "bucket {ordinal} ({name}): {}{} segments with {blocks} blocks and {points} points, {} answers files, up to record {}",
        if found { "" } else { "no manifest yet, " },
        manifest.segments.len(),
        manifest.answers.len(),
        manifest.covered
    ));
    for path in dir.leftovers(disk, &manifest).map_err(said)? {
        report.say(format_args!(
            "bucket {ordinal}: {} is a leftover of a crash",
            path.display()
        ));
    }
    for name in dir.list(disk).map_err(said)?.others {
        report.say(format_args!(
            "bucket {ordinal}: {} is left alone",
            dir.path().join(name).display()
        ));
    }
    Ok(())
}

/// A damaged block, for people.
pub(super) fn described(dir: &BucketDir, id: u64, block: &BlockReport) -> String {
    let fault = block.fault.as_ref().map_or_else(String::new, ToString::to_string);
    format!(
        "{} at offset {}, {} points of source {} from {} to {}: {fault}",
        dir.segment_path(id).display(),
        block.offset,
        block.rows,
        block.source,
        format_timestamp_ns(block.first_ns).as_str(),
        format_timestamp_ns(block.last_ns).as_str()
    )
}
