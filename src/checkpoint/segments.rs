//! The directory of segment files, shared by all buckets. A file is written and synced under its own name and counts
//! once the manifest names it; what the manifest does not name is a leftover, and goes. Names are numbers that are not
//! used twice, so that a prefix for a shard and an epoch is all that an object store needs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{EngineError, SegmentFile};
use wal::disk::{Bytes, Disk, list_existing};

use crate::sealed_file;

const SUFFIX: &str = ".segment";

/// Where the segments are.
#[derive(Clone, Debug)]
pub struct SegmentsDir(PathBuf);

/// What is in the directory, by name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Numbers of segment files.
    pub segments: Vec<u64>,
    /// Names that are none of ours.
    pub others: Vec<OsString>,
}

/// Why a segment does not open.
#[derive(Debug)]
pub enum SegmentError {
    /// The disk's.
    Io(PathBuf, io::Error),
    /// Damage.
    Damaged(PathBuf, EngineError),
}

impl std::fmt::Display for SegmentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SegmentError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            SegmentError::Damaged(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for SegmentError {}

impl SegmentsDir {
    /// That of a data directory.
    pub fn of(data_dir: &Path) -> Self {
        SegmentsDir(data_dir.join("segments"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn segment_path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id:012}{SUFFIX}"))
    }

    /// What is in it; nothing when it does not exist.
    ///
    /// # Errors
    /// The disk's.
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

    /// Opens a segment: reads its table of buckets.
    ///
    /// # Errors
    /// The disk's, or damage.
    pub fn open(&self, disk: &dyn Disk, id: u64) -> Result<Arc<SegmentFile>, SegmentError> {
        let path = self.segment_path(id);
        let mapped = disk.map(&path);
        let bytes = mapped.map_err(|error| SegmentError::Io(path.clone(), error))?;
        SegmentFile::open(id, shared(bytes)).map_err(|error| SegmentError::Damaged(path, error))
    }

    /// Writes and syncs a segment, its name included; it counts once the manifest names it.
    ///
    /// # Errors
    /// The disk's, or those of `write`; what was written of the file is removed.
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
            // Whoever wrote it tries again under another number.
            drop(disk.remove(&path));
            io::Error::other(format!("{} was just written: {error}", path.display())).into()
        })
    }
}

/// The same bytes as the engine wants them.
pub fn shared(bytes: Arc<dyn Bytes>) -> engine::SharedBytes {
    struct Home(Arc<dyn Bytes>);
    impl AsRef<[u8]> for Home {
        fn as_ref(&self) -> &[u8] {
            (*self.0).as_ref()
        }
    }
    Arc::new(Home(bytes))
}

/// The segments in use, opened. Owned by the checkpointer: one writer.
pub struct Segments {
    disk: Arc<dyn Disk>,
    dir: SegmentsDir,
    open: BTreeMap<u64, Arc<SegmentFile>>,
    /// Files that no manifest in force names.
    leftovers: Vec<u64>,
    next: u64,
}

impl Segments {
    /// Opens the segments that a manifest names. Alters nothing.
    ///
    /// # Errors
    /// One that does not open.
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

    /// Where they are.
    pub fn dir(&self) -> &SegmentsDir {
        &self.dir
    }

    /// The number of the next segment, given out once.
    pub fn take_id(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The number that the next segment gets.
    pub fn next_id(&self) -> u64 {
        self.next
    }

    /// The segments that are open.
    pub fn all(&self) -> impl Iterator<Item = &Arc<SegmentFile>> {
        self.open.values()
    }

    /// An open segment.
    pub fn get(&self, id: u64) -> Option<&Arc<SegmentFile>> {
        self.open.get(&id)
    }

    /// The segments that hold rows of a bucket, with how many they hold, by their tables.
    pub fn rows_of(&self, bucket: u32) -> Vec<(u64, u64)> {
        let of_bucket = |segment: &Arc<SegmentFile>| {
            let part = segment.parts().find(|part| part.bucket == bucket)?;
            Some((segment.id(), part.rows))
        };
        self.all().filter_map(of_bucket).collect()
    }

    /// Takes in one that was written.
    pub fn add(&mut self, segment: Arc<SegmentFile>) {
        self.open.insert(segment.id(), segment);
    }

    /// Removes the files that are not `used`. That the disk does not remove one is only logged: it is tried again with
    /// the next call.
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
            // Readers may have it mapped: the bytes stay until they are done.
            match self.disk.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "a file no longer in use stays for now");
                    self.leftovers.push(id);
                }
                _ => {}
            }
        }
    }
}
