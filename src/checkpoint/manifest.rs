//! The manifest: which files make up the data directory, and up to which record of the log. It is replaced as a whole,
//! so that a checkpoint counts at one moment or not at all. Drawn in src/journal/FORMAT.md, "Manifest".

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wal::disk::Disk;
use wal::{Flip, Sequence};

use crate::checked_file::{self, CheckedFileError};

/// Its number rises when an older program could misread the manifest; added members do not raise it.
const MAGIC: &[u8; 8] = b"TWMANI02";
/// How manifests of all versions begin.
const KIND: &[u8] = b"TWMANI";

/// Rows that were deleted or are lost took sequences that nothing tells any more, once the mark that did is lost. Points
/// to come are numbered from behind as many, so that no two ever had one id.
pub const SEQUENCES_UNKNOWN_MAX: u64 = 1 << 32;

/// The files in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The log's records up to here are in the files, or carried on; the log holds all behind it.
    pub covered: Sequence,
    /// Commands up to here are in the catalog's runs.
    pub catalog_covered: Sequence,
    /// Number of the next segment.
    pub next_segment: u64,
    pub segments: Vec<u64>,
    /// Runs of the ledger, oldest first.
    pub runs: Vec<u64>,
    /// By ordinal. One that is not here has no points in segments.
    pub buckets: BTreeMap<u32, BucketMark>,
    /// Files of carried records, by bucket and first record.
    #[serde(default)]
    pub carried: Vec<(u32, Sequence)>,
    /// Ordinals of the buckets whose directory of format 1 could not be converted yet.
    #[serde(default)]
    pub unconverted: Vec<u32>,
    /// Ordinals of the buckets of whose directory of format 1 what is whole was taken: it is kept under another name.
    #[serde(default)]
    pub aside: Vec<u32>,
}

/// How far a bucket is in the segments. There may be many: each is written as an array, without names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, Option<i64>)", into = "(u64, u64, Option<i64>)")]
pub struct BucketMark {
    /// Its records up to here are.
    pub covered: Sequence,
    /// Sequence that its next row gets.
    pub next_sequence: u64,
    /// When the last of these ingests was taken, UTC nanoseconds; `None` also where an older program wrote this.
    pub ingested_at_ns: Option<i64>,
}

impl From<(u64, u64, Option<i64>)> for BucketMark {
    fn from((covered, next_sequence, ingested_at_ns): (u64, u64, Option<i64>)) -> Self {
        BucketMark {
            covered,
            next_sequence,
            ingested_at_ns,
        }
    }
}

impl From<BucketMark> for (u64, u64, Option<i64>) {
    fn from(mark: BucketMark) -> Self {
        (mark.covered, mark.next_sequence, mark.ingested_at_ns)
    }
}

/// Why a manifest does not read.
#[derive(Debug)]
pub enum ManifestError {
    File(CheckedFileError),
    Content(PathBuf, rmp_serde::decode::Error),
    /// It was written by a newer program.
    Newer(PathBuf),
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::File(error) => error.fmt(f),
            ManifestError::Content(path, error) => write!(f, "{} does not read: {error}", path.display()),
            ManifestError::Newer(path) => write!(
                f,
                "{} was written by a newer program: start that one",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// Where it is.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("manifest")
    }

    /// The manifest; `None` before the first checkpoint.
    ///
    /// # Errors
    /// The disk's, or damage.
    pub fn read(disk: &dyn Disk, data_dir: &Path) -> Result<Option<Self>, ManifestError> {
        let path = Self::path(data_dir);
        let content = match checked_file::read(disk, &path, MAGIC) {
            Ok(None) => return Ok(None),
            Ok(Some(content)) => content,
            Err(error) => {
                let magic = disk.read(&path).unwrap_or_default();
                let is_newer = magic.starts_with(KIND) && magic.get(..MAGIC.len()) > Some(MAGIC);
                return Err(match is_newer {
                    true => ManifestError::Newer(path),
                    false => ManifestError::File(error),
                });
            }
        };
        let read = rmp_serde::from_slice(&content);
        read.map(Some)
            .map_err(|error| ManifestError::Content(path, error))
    }

    /// Replaces the manifest on the disk by this one. What it names must be there for good by now.
    ///
    /// # Errors
    /// The disk's; which of the two a crash will find is then open.
    pub fn write(&self, disk: &dyn Disk, data_dir: &Path) -> Result<(), CheckedFileError> {
        let path = Self::path(data_dir);
        let content = rmp_serde::to_vec_named(self)
            .map_err(|error| CheckedFileError::Io(path.clone(), std::io::Error::other(error)))?;
        checked_file::write(disk, &path, MAGIC, &content)
    }
}

/// The bit that has to be turned for the bytes to be a manifest as this program writes it; `None` where there is none. A
/// newer program's may begin with a magic that differs by one bit, but then differs behind it, too.
pub fn flip_of_manifest(bytes: &[u8]) -> Option<Flip> {
    checked_file::flip(bytes, MAGIC, |content| {
        let read = rmp_serde::from_slice::<Manifest>(content).ok();
        read.and_then(|manifest| rmp_serde::to_vec_named(&manifest).ok())
            .is_some_and(|written| written == content)
    })
}

#[cfg(test)]
mod tests {
    use wal::disk::sim::SimDisk;

    use super::*;

    #[test]
    fn a_manifest_reads_as_it_was_written() {
        let (disk, dir) = (SimDisk::new(1), Path::new("/data"));
        disk.create_dir_all(dir).unwrap();
        assert_eq!(Manifest::read(&disk, dir).unwrap(), None);
        let mut manifest = Manifest {
            covered: 7,
            catalog_covered: 9,
            next_segment: 4,
            segments: vec![1, 3],
            runs: vec![2],
            carried: vec![(5, 6)],
            unconverted: vec![8],
            ..Manifest::default()
        };
        let mark = BucketMark {
            covered: 5,
            next_sequence: 100,
            ingested_at_ns: Some(-1),
        };
        manifest.buckets.insert(2, mark);
        manifest.write(&disk, dir).unwrap();
        assert_eq!(Manifest::read(&disk, dir).unwrap(), Some(manifest));
    }

    #[test]
    fn a_bucket_takes_few_bytes_of_it() {
        let (disk, dir) = (SimDisk::new(1), Path::new("/data"));
        disk.create_dir_all(dir).unwrap();
        let mark = BucketMark {
            covered: 1 << 40,
            next_sequence: 1 << 40,
            ingested_at_ns: Some(1_700_000_000_000_000_000),
        };
        let manifest = Manifest {
            buckets: (0..10_000).map(|ordinal| (ordinal + (1 << 20), mark)).collect(),
            ..Manifest::default()
        };
        manifest.write(&disk, dir).unwrap();
        let bytes = disk.len(&Manifest::path(dir)).unwrap();
        assert!(bytes <= 10_000 * 40, "{bytes}");
    }
}
