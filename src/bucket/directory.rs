//! The names in a bucket's directory, and the manifest that says which of them count. Drawn in src/journal/FORMAT.md.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wal::Sequence;
use wal::disk::Disk;

use super::files::BucketFileError;
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
    /// When the last of the ingests covered was taken, UTC nanoseconds; `None` also where an older program wrote this.
    #[serde(default)]
    pub ingested_at_ns: Option<i64>,
}

/// The directory of one bucket.
#[derive(Clone, Debug)]
pub struct BucketDir(PathBuf);

/// What is in a bucket's directory, by name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Ids of segment files.
    pub segments: Vec<u64>,
    /// Ids of answers files.
    pub answers: Vec<u64>,
    /// Names that are none of ours.
    pub others: Vec<OsString>,
}

impl BucketDir {
    /// Where the directory of a bucket is.
    pub fn of(data_dir: &Path, ordinal: u32) -> Self {
        BucketDir(data_dir.join("buckets").join(format!("{ordinal:08}")))
    }

    /// The ordinal that a name in `buckets/` stands for; `None` for a name that is none of ours.
    pub fn ordinal(name: &OsString) -> Option<u32> {
        let name = name.to_str()?;
        let ordinal = name.parse::<u32>().ok()?;
        (name == format!("{ordinal:08}")).then_some(ordinal)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The manifest's path.
    pub fn manifest_path(&self) -> PathBuf {
        self.0.join(MANIFEST_NAME)
    }

    /// The path of a segment.
    pub fn segment_path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id:012}{SEGMENT_SUFFIX}"))
    }

    /// The path of an answers file.
    pub fn answers_path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id:012}{ANSWERS_SUFFIX}"))
    }

    /// The manifest, `None` when there is none.
    ///
    /// # Errors
    /// The disk's, or damage.
    pub fn read_manifest(&self, disk: &dyn Disk) -> Result<Option<Manifest>, BucketFileError> {
        let path = self.manifest_path();
        let content = checked_file::read(disk, &path, MANIFEST_MAGIC).map_err(BucketFileError::Manifest)?;
        let decoded = content.map(|content| rmp_serde::from_slice(&content)).transpose();
        decoded.map_err(|error| BucketFileError::ManifestContent(path, error))
    }

    /// Replaces the manifest; the directory is made when it is missing.
    ///
    /// # Errors
    /// The disk's: the old manifest stands, unless only the last sync failed.
    pub fn write_manifest(&self, disk: &dyn Disk, manifest: &Manifest) -> Result<(), CheckedFileError> {
        let path = self.manifest_path();
        let io = |error| CheckedFileError::Io(path.clone(), error);
        let content = rmp_serde::to_vec_named(manifest)
            .map_err(io::Error::other)
            .map_err(io)?;
        if !disk.exists(&self.0).map_err(io)? {
            disk.create_dir_all(&self.0).map_err(io)?;
        }
        checked_file::write(disk, &path, MANIFEST_MAGIC, &content)
    }

    /// What is in it; nothing when it does not exist.
    ///
    /// # Errors
    /// The disk's.
    pub fn list(&self, disk: &dyn Disk) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let names = match disk.list(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
            listed => listed?,
        };
        let id = |name: &OsString, suffix: &str| name.to_str()?.strip_suffix(suffix)?.parse::<u64>().ok();
        for name in names {
            if let Some(id) = id(&name, SEGMENT_SUFFIX) {
                listing.segments.push(id);
            } else if let Some(id) = id(&name, ANSWERS_SUFFIX) {
                listing.answers.push(id);
            } else if name != MANIFEST_NAME {
                listing.others.push(name);
            }
        }
        Ok(listing)
    }

    /// Whether it holds a manifest or any file that a manifest could name.
    ///
    /// # Errors
    /// The disk's.
    pub fn is_in_use(&self, disk: &dyn Disk) -> io::Result<bool> {
        let Listing {
            segments, answers, ..
        } = self.list(disk)?;
        Ok(!segments.is_empty() || !answers.is_empty() || disk.exists(&self.manifest_path())?)
    }

    /// Paths of our files that the manifest does not name: a crash came between writing them and naming them, or
    /// between naming others and removing these.
    ///
    /// # Errors
    /// The disk's.
    pub fn leftovers(&self, disk: &dyn Disk, manifest: &Manifest) -> io::Result<Vec<PathBuf>> {
        let Listing {
            mut segments,
            mut answers,
            ..
        } = self.list(disk)?;
        segments.retain(|id| !manifest.segments.contains(id));
        answers.retain(|id| !manifest.answers.contains(id));
        let segments = segments.into_iter().map(|id| self.segment_path(id));
        Ok(segments
            .chain(answers.into_iter().map(|id| self.answers_path(id)))
            .collect())
    }
}
