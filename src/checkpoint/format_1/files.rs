//! The catalog's snapshot and the mark of format 1.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use wal::Sequence;
use wal::disk::{Disk, list_existing};

use crate::catalog::{Catalog, Command, Snapshot};
use crate::checked_file;
use crate::journal::{Record, RecordError};

const CATALOG_MAGIC: &[u8; 8] = b"TWCATA01";
const MARK_MAGIC: &[u8; 8] = b"TWMARK01";

pub(super) fn catalog_path(data_dir: &Path) -> PathBuf {
    data_dir.join("catalog.snapshot")
}

pub(super) fn mark_path(data_dir: &Path) -> PathBuf {
    data_dir.join("checkpoint")
}

pub(super) fn buckets_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("buckets")
}

/// A file that only format 1 has, if there is one.
///
/// # Errors
/// The disk's.
pub fn exists(disk: &dyn Disk, data_dir: &Path) -> io::Result<Option<PathBuf>> {
    for path in [catalog_path(data_dir), mark_path(data_dir)] {
        if disk.exists(&path)? {
            return Ok(Some(path));
        }
    }
    // The directory alone says nothing: every start of an older program made it.
    let dir = buckets_dir(data_dir);
    let names = list_existing(disk, &dir)?;
    let bucket = names
        .iter()
        .find(|name| super::BucketDir::ordinal(name).is_some());
    Ok(bucket.map(|name| dir.join(name)))
}

/// The catalog's snapshot, and the log sequence that it covers; an empty catalog when there is none.
///
/// # Errors
/// The disk's, or damage, for people.
pub(super) fn read_catalog(disk: &dyn Disk, data_dir: &Path) -> Result<(Snapshot, Sequence), String> {
    let path = catalog_path(data_dir);
    let content = checked_file::read(disk, &path, CATALOG_MAGIC).map_err(|error| error.to_string())?;
    let Some(content) = content else {
        return Ok(Default::default());
    };
    let short = || format!("{} has no sequence", path.display());
    let (covered, encoded) = content.split_first_chunk().ok_or_else(short)?;
    let snapshot = Catalog::decode(encoded).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((snapshot, u64::from_le_bytes(*covered)))
}

/// Ordinals of the buckets of a catalog whose deletion only the log has, behind this record. A log that does not read is
/// for the recovery to refuse.
pub(super) fn deleted_in_log(
    disk: &dyn Disk,
    data_dir: &Path,
    catalog: &Catalog,
    after: Sequence,
) -> BTreeSet<u32> {
    let dir = log_dir(data_dir);
    let mut deleted = BTreeSet::new();
    let Ok(found) = wal::check(disk, &dir) else {
        return deleted;
    };
    let mut each = |_: Sequence, record: &[u8]| -> Result<(), RecordError> {
        if let Record::Command(command) = Record::decode(record)?
            && let Command::BucketDeleted { bucket_id } = *command
        {
            deleted.extend(catalog.bucket(bucket_id).map(|bucket| bucket.ordinal));
        }
        Ok(())
    };
    drop(wal::records(disk, &dir, (after, found.last_sequence), &mut each));
    deleted
}

pub(super) fn log_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("log")
}

/// The mark: all records up to here are in segments and snapshot. 0 before the first checkpoint.
///
/// # Errors
/// The disk's, or damage, for people.
pub(super) fn read_mark(disk: &dyn Disk, data_dir: &Path) -> Result<Sequence, String> {
    let path = mark_path(data_dir);
    match checked_file::read(disk, &path, MARK_MAGIC).map_err(|error| error.to_string())? {
        None => Ok(0),
        Some(content) => match content.as_slice().try_into() {
            Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
            Err(_) => Err(format!("{} has no sequence", path.display())),
        },
    }
}
