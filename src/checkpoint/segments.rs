//! Segment files, shared by all buckets, and the open ones among them.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Bytes, Disk};
use engine::{DeadRanges, SegmentFile, SharedBytes};

use super::manifest::Manifest;
use crate::sealed_file::{self, SealedDir, SealedFiles};

/// Why a segment does not open: a disk error, or damage of the file at this path.
#[derive(Debug, thiserror::Error)]
#[error("{0}: {1}")]
pub struct SegmentError(PathBuf, Box<dyn Error + Send + Sync>);

/// A segment that is not a file of the data directory.
pub struct SegmentElsewhere {
    /// Its bytes.
    pub content: SharedBytes,
    /// Where they are, for messages.
    pub name: String,
}

/// The segments that are not files of the data directory, by number.
pub type HeldElsewhere = BTreeMap<u64, SegmentElsewhere>;

/// The directory of the segments of a data directory.
pub fn segments_dir(data_dir: &Path) -> SealedDir {
    SealedDir::new(data_dir.join("segments"), ".segment")
}

/// Writes and syncs a segment and its directory entry. It becomes valid when the manifest names it.
///
/// # Errors
/// A disk error, or an error of `write`. The incomplete file is removed.
pub fn write_segment<R, E: From<io::Error>>(
    disk: &dyn Disk,
    dir: &SealedDir,
    id: u64,
    write: impl FnOnce(&mut dyn Write) -> Result<R, E>,
) -> Result<Arc<SegmentFile>, E> {
    let path = dir.file_path(id);
    let bytes = sealed_file::write(disk, &path, write)?;
    SegmentFile::open(id, shared(bytes)).map_err(|error| {
        // The caller retries under another number.
        drop(disk.remove(&path));
        io::Error::other(format!("{} was just written: {error}", path.display())).into()
    })
}

/// Opens a segment and reads its table of buckets.
fn open_segment(
    disk: &dyn Disk,
    dir: &SealedDir,
    id: u64,
    dead: DeadRanges,
) -> Result<Arc<SegmentFile>, SegmentError> {
    let path = dir.file_path(id);
    let failed = |error| SegmentError(path.clone(), error);
    let bytes = disk.map(&path).map_err(|error| failed(error.into()))?;
    SegmentFile::open_without(id, shared(bytes), dead).map_err(|error| failed(error.into()))
}

/// Converts bytes to the type that the engine expects.
pub fn shared(bytes: Arc<dyn Bytes>) -> engine::SharedBytes {
    struct Mapped(Arc<dyn Bytes>);
    impl AsRef<[u8]> for Mapped {
        fn as_ref(&self) -> &[u8] {
            (*self.0).as_ref()
        }
    }
    Arc::new(Mapped(bytes))
}

/// The open segments in use. Owned by the checkpointer, the only writer.
pub struct Segments {
    pub(super) files: SealedFiles,
    pub(super) open: BTreeMap<u64, Arc<SegmentFile>>,
    /// Where the segments are that are not files of the directory.
    names: BTreeMap<u64, String>,
}

impl Segments {
    /// Opens the segments that a manifest names, in the directory or `elsewhere`. Changes nothing on disk.
    ///
    /// # Errors
    /// A segment does not open.
    pub fn open(
        disk: Arc<dyn Disk>,
        data_dir: &Path,
        manifest: &Manifest,
        elsewhere: &HeldElsewhere,
    ) -> Result<Self, SegmentError> {
        let named = &manifest.segments;
        let dir = segments_dir(data_dir);
        let open = |id: u64| match elsewhere.get(&id) {
            Some(SegmentElsewhere { content, name }) => {
                SegmentFile::open_without(id, Arc::clone(content), manifest.dead_of(id))
                    .map_err(|error| SegmentError(name.into(), error.into()))
            }
            None => open_segment(&*disk, &dir, id, manifest.dead_of(id)),
        };
        let opened = named.iter().map(|id| Ok((*id, open(*id)?)));
        let open = opened.collect::<Result<_, _>>()?;
        let files = SealedFiles::list(disk, dir.clone(), named, manifest.next_segment)
            .map_err(|error| SegmentError(dir.path().to_owned(), error.into()))?;
        let names = elsewhere.iter().map(|(id, held)| (*id, held.name.clone()));
        Ok(Segments {
            files,
            open,
            names: names.collect(),
        })
    }

    /// Writes a new segment, see [`write_segment`].
    ///
    /// # Errors
    /// A disk error, or an error of `write`, with the path.
    pub fn write<R, E: From<io::Error>>(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<R, E>,
    ) -> Result<Arc<SegmentFile>, (PathBuf, E)> {
        let id = self.files.take_id();
        let written = write_segment(&*self.files.disk, &self.files.dir, id, write);
        let written = written.map_err(|error| (self.files.dir.file_path(id), error))?;
        self.add(Arc::clone(&written));
        Ok(written)
    }

    /// The segments that hold rows of a bucket, with the number of rows, from their tables.
    pub fn rows_of(&self, bucket: u32) -> Vec<(u64, u64)> {
        let of_bucket = |segment: &Arc<SegmentFile>| {
            let part = segment.parts().find(|part| part.bucket == bucket)?;
            Some((segment.id(), part.rows))
        };
        self.open.values().filter_map(of_bucket).collect()
    }

    /// Says where a segment is, for messages: its path, or the name of its object.
    pub fn places(&self) -> impl Fn(u64) -> PathBuf + Send + Sync + use<> {
        let (dir, names) = (self.files.dir.clone(), self.names.clone());
        move |id| match names.get(&id) {
            Some(name) => name.into(),
            None => dir.file_path(id),
        }
    }

    /// Adds a segment that was written.
    pub fn add(&mut self, segment: Arc<SegmentFile>) {
        self.files.add(segment.id());
        self.open.insert(segment.id(), segment);
    }

    /// Closes the segments that are not `used`, and removes their files.
    pub fn retain(&mut self, used: impl Fn(u64) -> bool) {
        self.open.retain(|id, _| used(*id));
        self.files.retain(used);
    }
}
