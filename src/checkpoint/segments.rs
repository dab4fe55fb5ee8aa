//! The directory of segment files, shared by all buckets. A file is written and synced under its final name and becomes
//! valid when the manifest names it. Files that the manifest does not name are leftovers and are removed. File numbers
//! are never reused, so that an object store would need no more than a prefix for the shard and the epoch.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Bytes, Disk, list_existing};
use engine::{EngineError, SegmentFile};

use crate::sealed_file;

const SUFFIX: &str = ".segment";

/// The path of the directory of segments.
#[derive(Clone, Debug)]
pub struct SegmentsDir(PathBuf);

/// The contents of the directory, by name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Numbers of segment files.
    pub segments: Vec<u64>,
    /// Names that are not segment files.
    pub others: Vec<OsString>,
}

/// Why a segment does not open.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// A disk error.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The file is damaged.
    #[error("{0}: {1}")]
    Damaged(PathBuf, EngineError),
}

impl SegmentsDir {
    /// The segments of a data directory.
    pub fn of(data_dir: &Path) -> Self {
        SegmentsDir(data_dir.join("segments"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn segment_path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id:012}{SUFFIX}"))
    }

    /// Lists the directory; empty if it does not exist.
    ///
    /// # Errors
    /// A disk error.
    pub fn list(&self, disk: &dyn Disk) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for name in list_existing(disk, &self.0)? {
            let id = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            match id.and_then(|id| id.parse::<u64>().ok()) {
                Some(id) => listing.segments.push(id),
                None => listing.others.push(name),
            }
        }
        listing.segments.sort_unstable();
        Ok(listing)
    }

    /// Opens a segment and reads its table of buckets.
    ///
    /// # Errors
    /// A disk error, or damage.
    pub fn open(&self, disk: &dyn Disk, id: u64) -> Result<Arc<SegmentFile>, SegmentError> {
        let path = self.segment_path(id);
        let mapped = disk.map(&path);
        let bytes = mapped.map_err(|error| SegmentError::Io(path.clone(), error))?;
        SegmentFile::open(id, shared(bytes)).map_err(|error| SegmentError::Damaged(path, error))
    }

    /// Writes and syncs a segment and its directory entry. It becomes valid when the manifest names it.
    ///
    /// # Errors
    /// A disk error, or an error of `write`. The incomplete file is removed.
    pub fn write<E: From<io::Error>>(
        &self,
        disk: &dyn Disk,
        id: u64,
        write: impl FnOnce(&mut dyn Write) -> Result<u64, E>,
    ) -> Result<Arc<SegmentFile>, E> {
        let path = self.segment_path(id);
        let bytes = sealed_file::write(disk, &path, write)?;
        let opened = SegmentFile::open(id, shared(bytes));
        opened.map_err(|error| {
            // The caller retries under another number.
            drop(disk.remove(&path));
            io::Error::other(format!("{} was just written: {error}", path.display())).into()
        })
    }
}

/// Converts bytes to the type that the engine expects.
pub fn shared(bytes: Arc<dyn Bytes>) -> engine::SharedBytes {
    struct Home(Arc<dyn Bytes>);
    impl AsRef<[u8]> for Home {
        fn as_ref(&self) -> &[u8] {
            (*self.0).as_ref()
        }
    }
    Arc::new(Home(bytes))
}

/// The open segments in use. Owned by the checkpointer, the only writer.
pub struct Segments {
    disk: Arc<dyn Disk>,
    dir: SegmentsDir,
    open: BTreeMap<u64, Arc<SegmentFile>>,
    /// Files that the manifest in force does not name.
    leftovers: Vec<u64>,
    next: u64,
}

impl Segments {
    /// Opens the segments that a manifest names. Changes nothing on disk.
    ///
    /// # Errors
    /// A segment does not open.
    pub fn open(
        disk: Arc<dyn Disk>,
        data_dir: &Path,
        named: &[u64],
        next: u64,
    ) -> Result<Self, SegmentError> {
        let dir = SegmentsDir::of(data_dir);
        let opened = named.iter().map(|id| Ok((*id, dir.open(&*disk, *id)?)));
        let open: BTreeMap<_, _> = opened.collect::<Result<_, _>>()?;
        let listed = dir.list(&*disk);
        let listing = listed.map_err(|error| SegmentError::Io(dir.path().to_owned(), error))?;
        let mut leftovers = listing.segments;
        leftovers.retain(|id| !open.contains_key(id));
        let last = leftovers.last().max(open.keys().last()).copied();
        Ok(Segments {
            next: next.max(last.map_or(1, |last| last + 1)),
            disk,
            dir,
            open,
            leftovers,
        })
    }

    /// The directory of the segments.
    pub fn dir(&self) -> &SegmentsDir {
        &self.dir
    }

    /// Allocates the number of a new segment.
    pub fn take_id(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The number that the next segment will get.
    pub fn next_id(&self) -> u64 {
        self.next
    }

    /// All open segments.
    pub fn all(&self) -> impl Iterator<Item = &Arc<SegmentFile>> {
        self.open.values()
    }

    /// The open segment with this number.
    pub fn get(&self, id: u64) -> Option<&Arc<SegmentFile>> {
        self.open.get(&id)
    }

    /// The segments that hold rows of a bucket, with the number of rows, from their tables.
    pub fn rows_of(&self, bucket: u32) -> Vec<(u64, u64)> {
        let of_bucket = |segment: &Arc<SegmentFile>| {
            let part = segment.parts().find(|part| part.bucket == bucket)?;
            Some((segment.id(), part.rows))
        };
        self.all().filter_map(of_bucket).collect()
    }

    /// Adds a segment that was written.
    pub fn add(&mut self, segment: Arc<SegmentFile>) {
        self.open.insert(segment.id(), segment);
    }

    /// Removes the files that are not `used`. A failed removal is only logged and retried by the next call.
    pub fn retain(&mut self, used: impl Fn(u64) -> bool) {
        let mut gone = std::mem::take(&mut self.leftovers);
        self.open.retain(|id, _| {
            let keep = used(*id);
            if !keep {
                gone.push(*id);
            }
            keep
        });
        for id in gone {
            let path = self.dir.segment_path(id);
            // Readers may have the file mapped: its bytes remain until they are done.
            match self.disk.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "a file that is no longer in use could not be removed yet");
                    self.leftovers.push(id);
                }
                _ => {}
            }
        }
    }
}
