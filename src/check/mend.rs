//! Rewrites damaged segments without what does not read.

use std::path::PathBuf;
use std::sync::Arc;

use disk::Disk;
use engine::{Lost, MergeError, Salvaged, salvage};

use super::aside::{disk_error, keep_aside, remove_all};
use super::segments::{Depth, Unread, points, read};
use crate::checkpoint::{Layout, Manifest, SegmentsDir, shared};

/// Replaces damaged segments by their readable blocks.
pub(super) fn repair(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    manifest: &mut Manifest,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    let dir = SegmentsDir::of(&layout.data_dir);
    let mut repaired = Manifest {
        segments: Vec::new(),
        next_segment: next_id(&**disk, &dir, manifest)?,
        ..manifest.clone()
    };
    let (mut damaged, mut messages) = (Vec::new(), Vec::new());
    for id in &manifest.segments {
        let path = dir.segment_path(*id);
        match read(&**disk, &dir, *id, Depth::Rows) {
            Ok(segment) if segment.damages.is_empty() => repaired.segments.push(*id),
            Ok(_) => {
                let new = repaired.next_segment;
                repaired.next_segment += 1;
                let salvaged = write_anew(&**disk, &dir, *id, new)?;
                messages.push(format!(
                    "{}: {} points could be read and are in {} now",
                    path.display(),
                    salvaged.rows,
                    dir.segment_path(new).display()
                ));
                messages.extend(describe(&salvaged).map(|lost| format!("{}: {lost}", path.display())));
                repaired.segments.extend((salvaged.rows > 0).then_some(new));
                damaged.push(path);
            }
            Err(Unread::Missing) => {
                messages.push(format!(
                    "{} is missing, all points in it are lost",
                    path.display()
                ));
            }
            Err(Unread::Disk(error)) => return Err(error),
        }
    }
    if messages.is_empty() {
        return Ok(());
    }
    // First keep a copy: the next start removes files that the manifest does not name.
    let kept = damaged.iter().map(|path| keep_aside(&**disk, path));
    for aside in kept.collect::<Result<Vec<PathBuf>, _>>()? {
        messages.push(format!("a damaged file is kept as {}", aside.display()));
    }
    let written = repaired.write(&**disk, &layout.data_dir);
    written.map_err(|error| error.to_string())?;
    *manifest = repaired;
    messages.into_iter().for_each(say);
    remove_all(&**disk, &damaged)
}

/// Describes what was lost of a segment, for the operator.
pub(super) fn describe(salvaged: &Salvaged) -> impl Iterator<Item = String> + '_ {
    let nothing = salvaged
        .lost
        .is_empty()
        .then(|| "nothing of it is lost".to_owned());
    salvaged.lost.iter().map(described).chain(nothing)
}

fn described(lost: &Lost) -> String {
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
pub(super) fn next_id(disk: &dyn Disk, dir: &SegmentsDir, manifest: &Manifest) -> Result<u64, String> {
    let listing = dir.list(disk).map_err(|error| disk_error(dir.path(), &error))?;
    let last = listing.segments.last().map_or(0, |last| last + 1);
    Ok(manifest.next_segment.max(last).max(1))
}

/// Writes the readable blocks of a segment under another number; writes no file if there are none.
fn write_anew(disk: &dyn Disk, dir: &SegmentsDir, id: u64, new: u64) -> Result<Salvaged, String> {
    let (path, new_path) = (dir.segment_path(id), dir.segment_path(new));
    let home = shared(disk.map(&path).map_err(|error| disk_error(&path, &error))?);
    let mut salvaged = Salvaged::default();
    let written = dir.write(disk, new, |out| {
        salvaged = salvage(&home, out, |_| true)?;
        Ok::<u64, MergeError>(salvaged.rows)
    });
    written.map_err(|error| format!("{}: {error}", new_path.display()))?;
    if salvaged.rows == 0 {
        disk.remove(&new_path)
            .map_err(|error| disk_error(&new_path, &error))?;
    }
    Ok(salvaged)
}
