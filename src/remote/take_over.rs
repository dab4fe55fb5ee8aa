//! Takes over a shard from its last checkpoint without copying its points: of a segment, the footer is copied, and its
//! blocks are read from the object store when a query needs them. Everything else is copied.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use disk::{Bytes, Disk};
use engine::{FooterStart, footer_start};
use objects::{ObjectError, ObjectStore};

use super::checkpoints::{Checkpoint, read};
use super::counted::Counted;
use super::error::RemoteError;
use super::names::ShardNames;
use super::restore::{Failed, check_names, copy_files, read_all};
use super::root::{FileEntry, Root};
use crate::checkpoint::{HeldElsewhere, Layout, NamedFile, SegmentElsewhere};
use crate::extents::{ExtentCache, RemoteFile};
use crate::sealed_file::{FileWriter, SealedDir};

/// Bytes of a segment's end that are read first: all of most footers.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes of a footer in memory.
const PIECE_BYTES: u64 = 8 << 20;

/// What a shard is opened with.
pub struct TakenOver {
    /// What was taken over.
    pub root: Root,
    /// The segments, which are not in the directory.
    pub segments: HeldElsewhere,
}

/// Copies what a root names, except for the blocks of its segments, into an empty directory, to be opened with a log that
/// has what comes after it. Verifies the checksums of what it copies. Its cost does not depend on the points, except that
/// a footer has an entry for each block.
///
/// # Errors
/// See [`RemoteError`]. What was copied is left.
pub fn take_over(
    store: &dyn ObjectStore,
    shard: u16,
    root: &str,
    disk: &dyn Disk,
    layout: &Layout,
    cache: &ExtentCache,
) -> Result<TakenOver, RemoteError> {
    let (began, figures) = (Instant::now(), cache.figures());
    let store: &dyn ObjectStore = &Counted {
        store,
        figures: Arc::clone(&figures),
    };
    let name = root.parse();
    let name =
        name.map_err(|()| RemoteError::DamagedRoot(root.to_owned(), "it is not a root's name".to_owned()))?;
    let checkpoint = read(store, ShardNames(shard), name)?;
    check_names(&checkpoint, layout)?;
    let named = checkpoint.root.manifest.files(layout);
    let segment = |file: &FileEntry| match named.get(&layout.data_dir.join(&file.local)) {
        Some(NamedFile::Segment(id)) => Some(*id),
        _ => None,
    };
    let (segments, others): (Vec<_>, Vec<_>) = checkpoint
        .root
        .files
        .iter()
        .cloned()
        .partition(|file| segment(file).is_some());
    let with = |files: Vec<FileEntry>| Checkpoint {
        name,
        root: Root {
            files,
            ..checkpoint.root.clone()
        },
    };
    copy_files(store, &with(others), disk, layout, &())?;
    let footers = SealedDir::new(layout.data_dir.join("footers"), ".footer");
    if !segments.is_empty() {
        let made = disk.create_dir_all(footers.path());
        made.map_err(|error| RemoteError::Write(footers.path().to_owned(), error))?;
    }
    let mut elsewhere = HeldElsewhere::new();
    read_all(&with(segments), &mut |file| {
        let Some(id) = segment(file) else { return Ok(()) };
        let footer = copy_footer(store, file, disk, &footers.file_path(id))?;
        let content = RemoteFile::new(cache, file.object.clone(), file.bytes, footer);
        let held = SegmentElsewhere {
            content: Arc::new(content),
            name: file.object.clone(),
        };
        elsewhere.insert(id, held);
        Ok(())
    })?;
    let root = checkpoint.root;
    root.manifest.write(disk, &layout.data_dir)?;
    figures.took_over_within(began.elapsed());
    Ok(TakenOver {
        root,
        segments: elsewhere,
    })
}

/// Copies the footer of a segment to a file, and maps it. The file has no name afterwards: its bytes go when nobody reads
/// the segment any more.
fn copy_footer(
    store: &dyn ObjectStore,
    file: &FileEntry,
    disk: &dyn Disk,
    path: &Path,
) -> Result<Arc<dyn Bytes>, Failed> {
    let failed = |error| Failed::Disk(RemoteError::Write(path.to_owned(), error));
    let len = usize::try_from(file.bytes).map_err(|_| damaged(file, "it is too large for this machine"))?;
    let mut end_start = file.bytes.saturating_sub(FIRST_BYTES);
    let mut end = read_range(store, file, end_start, file.bytes)?.to_vec();
    let start = loop {
        match footer_start(&end, len).map_err(|error| damaged(file, &error.to_string()))? {
            FooterStart::At(start) => break start as u64,
            FooterStart::Unknown(from) if (from as u64) < end_start => {
                // The table, which has some 40 bytes for each bucket.
                let mut longer = read_range(store, file, from as u64, end_start)?.to_vec();
                longer.extend_from_slice(&end);
                (end, end_start) = (longer, from as u64);
            }
            FooterStart::Unknown(_) => return Err(damaged(file, "its table is incomplete")),
        }
    };
    let mut out = FileWriter::new(disk.create(path).map_err(failed)?);
    let mut at = start;
    while at < end_start {
        let to = (at + PIECE_BYTES).min(end_start);
        let piece = read_range(store, file, at, to)?;
        out.write_all(&piece).map_err(failed)?;
        at = to;
    }
    let of_end = end.get((start.max(end_start) - end_start) as usize..);
    out.write_all(of_end.unwrap_or_default()).map_err(failed)?;
    out.flush().map_err(failed)?;
    let mapped = disk.map(path).map_err(failed)?;
    disk.remove(path).map_err(failed)?;
    Ok(mapped)
}

fn read_range(
    store: &dyn ObjectStore,
    file: &FileEntry,
    from: u64,
    to: u64,
) -> Result<objects::Bytes, Failed> {
    let read = store.get_range(&file.object, from..to);
    read.map_err(|error| match error {
        ObjectError::NotFound(_) | ObjectError::Short(..) => Failed::Fault(error.to_string()),
        error => Failed::Store(error),
    })
}

fn damaged(file: &FileEntry, what: &str) -> Failed {
    Failed::Fault(format!("the object {}: {what}", file.object))
}
