//! Where things are in the data directory, and the two small files of this room. Drawn in src/journal/FORMAT.md.

use std::path::{Path, PathBuf};

use wal::Sequence;
use wal::disk::Disk;

use crate::catalog::{Catalog, Frozen};
use crate::checked_file::{self, CheckedFileError};

const CATALOG_MAGIC: &[u8; 8] = b"TWCATA01";
const MARK_MAGIC: &[u8; 8] = b"TWMARK01";

/// The data directory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its path.
    pub data_dir: PathBuf,
}

impl Layout {
    /// The log's directory.
    pub fn log_dir(&self) -> PathBuf {
        self.data_dir.join("log")
    }

    /// The directory of the buckets' directories.
    pub fn buckets_dir(&self) -> PathBuf {
        self.data_dir.join("buckets")
    }

    /// The catalog's snapshot.
    pub fn catalog_path(&self) -> PathBuf {
        self.data_dir.join("catalog.snapshot")
    }

    /// The checkpoint's mark.
    pub fn mark_path(&self) -> PathBuf {
        self.data_dir.join("checkpoint")
    }

    /// There while a backup is being restored: until it is removed, nothing else in the directory may be relied upon.
    pub fn restoring_path(&self) -> PathBuf {
        self.data_dir.join("RESTORING")
    }

    /// Replaces the catalog's snapshot. The buckets of `manifests` must have theirs on the disk by now: a directory
    /// that lacks it is taken for lost from then on.
    ///
    /// # Errors
    /// The disk's.
    pub fn write_catalog(
        &self,
        disk: &dyn Disk,
        catalog: &Frozen,
        covered: Sequence,
        manifests: &[u32],
    ) -> Result<(), CheckedFileError> {
        let path = self.catalog_path();
        let encoded = catalog.encode(manifests);
        let encoded =
            encoded.map_err(|error| CheckedFileError::Io(path.clone(), std::io::Error::other(error)))?;
        let mut content = covered.to_le_bytes().to_vec();
        content.extend_from_slice(&encoded);
        checked_file::write(disk, &path, CATALOG_MAGIC, &content)
    }

    /// The catalog's snapshot; an empty catalog when there is none yet.
    ///
    /// # Errors
    /// The disk's, or damage.
    pub fn read_catalog(&self, disk: &dyn Disk) -> Result<Snapshot, CatalogError> {
        let path = self.catalog_path();
        let Some(content) = checked_file::read(disk, &path, CATALOG_MAGIC).map_err(CatalogError::File)?
        else {
            return Ok(Snapshot::default());
        };
        let short = || CatalogError::File(CheckedFileError::Damaged(path.clone(), "a sequence"));
        let (covered, encoded) = content.split_first_chunk().ok_or_else(short)?;
        let decoded = Catalog::decode(encoded).map_err(|error| CatalogError::Content(path.clone(), error));
        decoded.map(|(catalog, manifests)| Snapshot {
            catalog,
            covered: u64::from_le_bytes(*covered),
            manifests,
        })
    }

    /// Writes the mark: all records up to here are in segments and snapshot.
    ///
    /// # Errors
    /// The disk's.
    pub fn write_mark(&self, disk: &dyn Disk, covered: Sequence) -> Result<(), CheckedFileError> {
        checked_file::write(disk, &self.mark_path(), MARK_MAGIC, &covered.to_le_bytes())
    }

    /// The mark; 0 before the first checkpoint.
    ///
    /// # Errors
    /// The disk's, or damage.
    pub fn read_mark(&self, disk: &dyn Disk) -> Result<Sequence, CheckedFileError> {
        let path = self.mark_path();
        match checked_file::read(disk, &path, MARK_MAGIC)? {
            None => Ok(0),
            Some(content) => match content.as_slice().try_into() {
                Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
                Err(_) => Err(CheckedFileError::Damaged(path, "a sequence")),
            },
        }
    }
}

impl AsRef<Path> for Layout {
    fn as_ref(&self) -> &Path {
        &self.data_dir
    }
}

/// The catalog's snapshot.
#[derive(Default)]
pub struct Snapshot {
    /// What existed.
    pub catalog: Catalog,
    /// Log sequence it covers.
    pub covered: Sequence,
    /// Ordinals of the buckets that had a manifest by then.
    pub manifests: Vec<u32>,
}

/// Why the catalog's snapshot does not read.
#[derive(Debug)]
pub enum CatalogError {
    /// The file.
    File(CheckedFileError),
    /// Its content.
    Content(PathBuf, crate::catalog::SnapshotError),
}

impl std::fmt::Display for CatalogError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CatalogError::File(error) => error.fmt(f),
            CatalogError::Content(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for CatalogError {}
