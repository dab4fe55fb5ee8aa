//! A bucket's directory: segment files, answers files, and the manifest that says which of them count. A file is
//! written and synced under its own name, then the manifest naming it replaces the old one; what no manifest names is
//! a leftover, and goes. Drawn in FORMAT.md, "Bucket directory".

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::EngineError;
use serde::{Deserialize, Serialize};
use wal::Sequence;
use wal::disk::{Bytes, Disk, DiskFile};

use super::idempotency::AnswersFile;
use super::state::BucketState;
use crate::checked_file::{self, CheckedFileError};

const MANIFEST_MAGIC: &[u8; 8] = b"TWMANI01";
const MANIFEST_NAME: &str = "manifest";
const SEGMENT_SUFFIX: &str = ".segment";
const ANSWERS_SUFFIX: &str = ".answers";

/// Which files make up a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Records up to here are in the segments.
    pub covered: Sequence,
    /// Sequence the next row gets.
    pub next_sequence: u64,
    /// Id of the next file.
    pub next_file: u64,
    /// Segments in use.
    pub segments: Vec<u64>,
    /// Answers files in use, oldest first.
    pub answers: Vec<u64>,
}

/// Why a bucket does not open.
#[derive(Debug)]
pub enum BucketFileError {
    /// The manifest.
    Manifest(CheckedFileError),
    /// The manifest's content.
    ManifestContent(PathBuf, rmp_serde::decode::Error),
    /// The disk's.
    Io(PathBuf, io::Error),
    /// A segment.
    Segment(PathBuf, EngineError),
    /// An answers file.
    Answers(PathBuf),
}

impl fmt::Display for BucketFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BucketFileError::Manifest(error) => error.fmt(f),
            BucketFileError::ManifestContent(path, error) => {
                write!(f, "{} does not read: {error}", path.display())
            }
            BucketFileError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            BucketFileError::Segment(path, error) => {
                write!(f, "{}: {error}; restore the file from a backup", path.display())
            }
            BucketFileError::Answers(path) => {
                write!(f, "{} is damaged; restore the file from a backup", path.display())
            }
        }
    }
}

impl std::error::Error for BucketFileError {}

/// The directory of one bucket. Owned by the checkpointer: one writer.
pub struct BucketFiles {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    manifest: Manifest,
}

impl BucketFiles {
    /// Where the directory of a bucket is.
    pub fn dir(data_dir: &Path, ordinal: u32) -> PathBuf {
        data_dir.join("buckets").join(format!("{ordinal:08}"))
    }

    /// Opens the directory (there may be none yet) and loads what its manifest names. Leftovers of a crash are
    /// removed; files of other names are left alone.
    ///
    /// # Errors
    /// See [`BucketFileError`].
    pub fn open(
        disk: Arc<dyn Disk>,
        data_dir: &Path,
        ordinal: u32,
    ) -> Result<(Self, BucketState), BucketFileError> {
        let dir = Self::dir(data_dir, ordinal);
        let manifest = read_manifest(&*disk, &dir)?.unwrap_or(Manifest {
            next_file: 1,
            ..Manifest::default()
        });
        let files = BucketFiles { disk, dir, manifest };
        let mut state = BucketState::new(ordinal);
        state.applied = files.manifest.covered;
        state.next_sequence = files.manifest.next_sequence.max(1);
        for id in &files.manifest.segments {
            let path = files.segment_path(*id);
            let home = files.map(&path)?;
            state
                .store
                .add_segment(*id, home)
                .map_err(|error| BucketFileError::Segment(path, error))?;
        }
        for id in &files.manifest.answers {
            state.idempotency.add_file(files.open_answers(*id)?);
        }
        files.remove_leftovers();
        Ok((files, state))
    }

    /// The manifest in force.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Writes a segment under the next id and syncs it; it counts once a manifest names it.
    ///
    /// # Errors
    /// The disk's; what was written of the file is removed.
    pub fn write_segment<E: From<io::Error>>(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<u64, E>,
    ) -> Result<(u64, Arc<dyn Bytes>), E> {
        let id = self.take_id();
        let path = self.segment_path(id);
        let home = self.write_file(&path, write)?;
        Ok((id, home))
    }

    /// The same for an answers file.
    ///
    /// # Errors
    /// The disk's.
    pub fn write_answers(&mut self, bytes: &[u8]) -> io::Result<(u64, Arc<dyn Bytes>)> {
        let id = self.take_id();
        let path = self.answers_path(id);
        let home = self.write_file(&path, |out| out.write_all(bytes).map(|()| bytes.len() as u64))?;
        Ok((id, home))
    }

    fn take_id(&mut self) -> u64 {
        self.manifest.next_file += 1;
        self.manifest.next_file - 1
    }

    fn write_file<E: From<io::Error>>(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> Result<u64, E>,
    ) -> Result<Arc<dyn Bytes>, E> {
        self.disk.create_dir_all(&self.dir)?;
        let attempt = || -> Result<Arc<dyn Bytes>, E> {
            let mut out = FileWriter::new(self.disk.create(path)?);
            write(&mut out)?;
            out.finish()?;
            self.disk.sync_dir(&self.dir)?;
            Ok(self.disk.map(path)?)
        };
        let written = attempt();
        if written.is_err() {
            // The first error is the one to tell. A leftover is removed at the next start.
            let _ = self.disk.remove(path);
        }
        written
    }

    /// Puts a manifest in force. Files that it does not name any more are removed afterwards.
    ///
    /// # Errors
    /// The disk's; the old manifest stays in force.
    pub fn commit(&mut self, manifest: Manifest) -> Result<(), CheckedFileError> {
        write_manifest(&*self.disk, &self.dir, &manifest)?;
        let old = std::mem::replace(&mut self.manifest, manifest);
        let gone = |old: &[u64], new: &[u64]| {
            old.iter()
                .copied()
                .filter(|id| !new.contains(id))
                .collect::<Vec<_>>()
        };
        let segments = gone(&old.segments, &self.manifest.segments)
            .into_iter()
            .map(|id| self.segment_path(id));
        let answers = gone(&old.answers, &self.manifest.answers)
            .into_iter()
            .map(|id| self.answers_path(id));
        for path in segments.chain(answers) {
            // Readers may have it mapped: the bytes stay until they are done.
            if let Err(error) = self.disk.remove(&path) {
                tracing::warn!(path = %path.display(), %error, "a file no longer in use stays until the next start");
            }
        }
        Ok(())
    }

    /// Opens an answers file just written or named by the manifest.
    ///
    /// # Errors
    /// The disk's, or damage.
    pub fn open_answers(&self, id: u64) -> Result<AnswersFile, BucketFileError> {
        let path = self.answers_path(id);
        AnswersFile::open(id, self.map_bytes(&path)?).ok_or(BucketFileError::Answers(path))
    }

    /// Removes the whole directory of a deleted bucket.
    ///
    /// # Errors
    /// The disk's; the next start tries again.
    pub fn remove(disk: &dyn Disk, data_dir: &Path, ordinal: u32) -> io::Result<()> {
        let dir = Self::dir(data_dir, ordinal);
        if disk.exists(&dir)? {
            disk.remove_dir_all(&dir)?;
            disk.sync_dir(&data_dir.join("buckets"))?;
        }
        Ok(())
    }

    fn map_bytes(&self, path: &Path) -> Result<Arc<dyn Bytes>, BucketFileError> {
        self.disk
            .map(path)
            .map_err(|error| BucketFileError::Io(path.to_owned(), error))
    }

    fn map(&self, path: &Path) -> Result<engine::SharedBytes, BucketFileError> {
        Ok(shared(self.map_bytes(path)?))
    }

    fn segment_path(&self, id: u64) -> PathBuf {
        self.dir.join(segment_name(id))
    }

    fn answers_path(&self, id: u64) -> PathBuf {
        self.dir.join(answers_name(id))
    }

    /// Files of ours that the manifest does not name: a crash came between writing them and naming them, or between
    /// naming others and removing these.
    fn remove_leftovers(&self) {
        let Ok(names) = self.disk.list(&self.dir) else {
            return;
        };
        let id = |name: &OsString, suffix: &str| name.to_str()?.strip_suffix(suffix)?.parse::<u64>().ok();
        for name in names {
            let stray_segment =
                id(&name, SEGMENT_SUFFIX).is_some_and(|id| !self.manifest.segments.contains(&id));
            let stray_answers =
                id(&name, ANSWERS_SUFFIX).is_some_and(|id| !self.manifest.answers.contains(&id));
            if stray_segment || stray_answers {
                let path = self.dir.join(&name);
                if let Err(error) = self.disk.remove(&path) {
                    tracing::warn!(path = %path.display(), %error, "a leftover file cannot be removed");
                }
            }
        }
    }
}

/// The manifest of a bucket's directory, `None` when it has none.
///
/// # Errors
/// The disk's, or damage.
pub fn read_manifest(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, BucketFileError> {
    let path = dir.join(MANIFEST_NAME);
    let content = checked_file::read(disk, &path, MANIFEST_MAGIC).map_err(BucketFileError::Manifest)?;
    let decoded = content.map(|content| rmp_serde::from_slice(&content)).transpose();
    decoded.map_err(|error| BucketFileError::ManifestContent(path, error))
}

/// Replaces the manifest of a bucket's directory, durably.
///
/// # Errors
/// The disk's; the old manifest stays in force.
pub fn write_manifest(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), CheckedFileError> {
    let path = dir.join(MANIFEST_NAME);
    let content = rmp_serde::to_vec_named(manifest);
    let content = content.map_err(|error| CheckedFileError::Io(path.clone(), io::Error::other(error)))?;
    checked_file::write(disk, &path, MANIFEST_MAGIC, &content)
}

/// Name of a segment file.
pub fn segment_name(id: u64) -> String {
    format!("{id:012}{SEGMENT_SUFFIX}")
}

/// Name of an answers file.
pub fn answers_name(id: u64) -> String {
    format!("{id:012}{ANSWERS_SUFFIX}")
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

/// Gathers small writes into large ones.
struct FileWriter {
    file: Box<dyn DiskFile>,
    offset: u64,
    buffer: Vec<u8>,
}

const WRITE_BYTES: usize = 1 << 20;

impl FileWriter {
    fn new(file: Box<dyn DiskFile>) -> Self {
        FileWriter {
            file,
            offset: 0,
            buffer: Vec::with_capacity(64 << 10),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync_data()
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.offset, &self.buffer)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
