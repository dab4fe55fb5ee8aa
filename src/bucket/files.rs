//! A bucket's directory: segment files, answers files of older programs, and the manifest that says which of them count. A file is
//! written and synced under its own name, then the manifest naming it replaces the old one; what no manifest names is
//! a leftover, and goes. Drawn in FORMAT.md, "Bucket directory".

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Cache, EngineError};
use wal::disk::{Bytes, Disk};

use super::answers_file::AnswersFile;
use super::directory::{BucketDir, Manifest};
use super::state::BucketState;
use crate::checked_file::CheckedFileError;
use crate::ledger::Ledger;
use crate::sealed_file;

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
    /// The manifest, or the whole directory, is gone though a checkpoint wrote it.
    ManifestMissing(PathBuf),
    /// The manifest is gone though a segment needs it.
    ManifestLost(PathBuf, PathBuf),
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
            BucketFileError::ManifestMissing(path) => write!(
                f,
                "{} is missing though a checkpoint wrote it; restore the bucket's directory from a backup",
                path.display()
            ),
            BucketFileError::ManifestLost(path, segment) => write!(
                f,
                "{} is missing though {} holds points that no log has; restore it from a backup",
                path.display(),
                segment.display()
            ),
        }
    }
}

impl std::error::Error for BucketFileError {}

/// The directory of one bucket. Owned by the checkpointer: one writer.
pub struct BucketFiles {
    disk: Arc<dyn Disk>,
    dir: BucketDir,
    manifest: Manifest,
    /// Whether the manifest was found, or written since.
    has_manifest: bool,
    /// Files written that the manifest in force does not name.
    unnamed: Vec<PathBuf>,
}

/// A segment that is yet to be written, on any thread.
pub struct NewSegment {
    disk: Arc<dyn Disk>,
    id: u64,
    path: PathBuf,
}

impl NewSegment {
    /// Writes and syncs it; it counts once a manifest names it.
    ///
    /// # Errors
    /// The disk's, or those of `write`; what was written of the file is removed.
    pub fn write<E: From<io::Error>>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<u64, E>,
    ) -> Result<Arc<dyn Bytes>, E> {
        sealed_file::write(&*self.disk, &self.path, write)
    }

    /// Its id among the files of its bucket.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl BucketFiles {
    /// Opens the directory (there may be none yet) and loads what its manifest names. Alters nothing.
    ///
    /// # Errors
    /// See [`BucketFileError`].
    pub fn open(
        disk: Arc<dyn Disk>,
        data_dir: &Path,
        ordinal: u32,
        cache: &Cache,
        ledger: &Ledger,
    ) -> Result<(Self, BucketState), BucketFileError> {
        let dir = BucketDir::of(data_dir, ordinal);
        let found = dir.read_manifest(&*disk)?;
        let has_manifest = found.is_some();
        let manifest = found.unwrap_or(Manifest {
            next_file: 1,
            ..Manifest::default()
        });
        let files = BucketFiles {
            disk,
            dir,
            manifest,
            has_manifest,
            unnamed: Vec::new(),
        };
        let mut state = BucketState::new(ordinal, cache.clone(), ledger.clone());
        state.applied = files.manifest.covered;
        state.next_sequence = files.manifest.next_sequence.max(1);
        state.ingested_at_ns = files.manifest.ingested_at_ns;
        for id in &files.manifest.segments {
            let path = files.dir.segment_path(*id);
            let home = shared(files.map(&path)?);
            state
                .store
                .add_segment(*id, home)
                .map_err(|error| BucketFileError::Segment(path, error))?;
        }
        for id in &files.manifest.answers {
            let path = files.dir.answers_path(*id);
            let file = AnswersFile::open(files.map(&path)?).ok_or(BucketFileError::Answers(path))?;
            // Of an older program: the next checkpoint brings them to the ledger.
            for (entry, created_at_ns) in file.entries() {
                state.idempotency.insert(&entry, created_at_ns);
            }
        }
        Ok((files, state))
    }

    /// The manifest in force.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether there is a manifest on the disk, which the first checkpoint writes.
    pub fn has_manifest(&self) -> bool {
        self.has_manifest
    }

    /// The path of the manifest.
    pub fn manifest_path(&self) -> PathBuf {
        self.dir.manifest_path()
    }

    /// Removes the leftovers of a crash, once the log is replayed. Rows of a leftover are among those `replayed`, by
    /// their sequences; where they are not, it is the manifest that is missing.
    ///
    /// # Errors
    /// A lost manifest. That the disk does not remove a file is only logged.
    pub fn remove_leftovers(&mut self, replayed: Range<u64>) -> Result<(), BucketFileError> {
        let leftovers = match self.dir.leftovers(&*self.disk, &self.manifest) {
            Ok(leftovers) => leftovers,
            Err(error) => return Err(BucketFileError::Io(self.dir.path().to_owned(), error)),
        };
        if !self.has_manifest {
            for path in &leftovers {
                // One that was not written to its end has no footer yet, and no manifest ever named it.
                let blocks = engine::verify::list_blocks(&shared(self.map(path)?)).unwrap_or_default();
                let replayed = |sequence| replayed.contains(&sequence);
                if blocks
                    .iter()
                    .any(|it| !replayed(it.first_sequence) || !replayed(it.last_sequence))
                {
                    return Err(BucketFileError::ManifestLost(
                        self.dir.manifest_path(),
                        path.clone(),
                    ));
                }
            }
        }
        for path in leftovers {
            if let Err(error) = self.disk.remove(&path) {
                tracing::warn!(path = %path.display(), %error, "a leftover file cannot be removed");
            }
        }
        Ok(())
    }

    /// A segment under the next id. Manifests that are put in force before it is [written](Self::wrote) leave it alone.
    pub fn new_segment(&mut self) -> NewSegment {
        let id = self.take_id();
        NewSegment {
            disk: Arc::clone(&self.disk),
            id,
            path: self.dir.segment_path(id),
        }
    }

    /// Notes that a segment was written: it goes with the next manifest that does not name it.
    pub fn wrote(&mut self, segment: &NewSegment) {
        self.unnamed.push(segment.path.clone());
    }

    /// Writes a segment under the next id and syncs it; it counts once a manifest names it.
    ///
    /// # Errors
    /// The disk's; what was written of the file is removed.
    pub fn write_segment<E: From<io::Error>>(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<u64, E>,
    ) -> Result<(u64, Arc<dyn Bytes>), E> {
        let segment = self.new_segment();
        let home = segment.write(write)?;
        self.wrote(&segment);
        Ok((segment.id, home))
    }

    fn take_id(&mut self) -> u64 {
        self.manifest.next_file += 1;
        self.manifest.next_file - 1
    }

    /// Whether a manifest says anything else than the one in force; the next file's id does not count.
    pub fn differs(&self, manifest: &Manifest) -> bool {
        let of = |it: &Manifest| (it.next_sequence, it.segments.clone(), it.answers.clone());
        of(manifest) != of(&self.manifest)
    }

    /// Puts a manifest in force, but for its `next_file`, which is kept here. Files that it does not name are removed
    /// afterwards.
    ///
    /// # Errors
    /// The disk's; which of the two manifests a crash will find is then open.
    pub fn commit(&mut self, manifest: Manifest) -> Result<(), CheckedFileError> {
        let manifest = Manifest {
            next_file: self.manifest.next_file,
            ..manifest
        };
        self.dir.write_manifest(&*self.disk, &manifest)?;
        let old = std::mem::replace(&mut self.manifest, manifest);
        self.has_manifest = true;
        let mut gone = std::mem::take(&mut self.unnamed);
        gone.extend(old.segments.iter().map(|id| self.dir.segment_path(*id)));
        gone.extend(old.answers.iter().map(|id| self.dir.answers_path(*id)));
        let named = named(&self.dir, &self.manifest);
        gone.retain(|path| !named.contains(path));
        for path in gone {
            // Readers may have it mapped: the bytes stay until they are done.
            match self.disk.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "a file no longer in use stays until the next start");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes files written for a checkpoint that failed, so that tries on a full disk do not fill it further. A file
    /// that the manifest on disk names stays: the new manifest may be in force although writing it failed.
    pub fn discard(&mut self, segments: &[u64]) {
        let Ok(on_disk) = self.dir.read_manifest(&*self.disk) else {
            return;
        };
        let named = on_disk
            .map(|manifest| named(&self.dir, &manifest))
            .unwrap_or_default();
        for path in segments.iter().map(|id| self.dir.segment_path(*id)) {
            if !named.contains(&path) && self.disk.remove(&path).is_ok() {
                self.unnamed.retain(|unnamed| *unnamed != path);
            }
        }
    }

    /// Removes the whole directory of a deleted bucket.
    ///
    /// # Errors
    /// The disk's; the next start tries again.
    pub fn remove(disk: &dyn Disk, data_dir: &Path, ordinal: u32) -> io::Result<()> {
        let dir = BucketDir::of(data_dir, ordinal);
        if disk.exists(dir.path())? {
            disk.remove_dir_all(dir.path())?;
            disk.sync_dir(&data_dir.join("buckets"))?;
        }
        Ok(())
    }

    fn map(&self, path: &Path) -> Result<Arc<dyn Bytes>, BucketFileError> {
        self.disk
            .map(path)
            .map_err(|error| BucketFileError::Io(path.to_owned(), error))
    }
}

fn named(dir: &BucketDir, manifest: &Manifest) -> HashSet<PathBuf> {
    let segments = manifest.segments.iter().map(|id| dir.segment_path(*id));
    segments
        .chain(manifest.answers.iter().map(|id| dir.answers_path(*id)))
        .collect()
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
