//! The catalog's snapshot and the mark of format 1.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use disk::{Disk, list_existing};
use wal::Sequence;

use crate::catalog::{Catalog, Command, Snapshot};
use crate::checked_file;
use crate::checkpoint::data_dir::DataDir;
use crate::checkpoint::layout::{at, message};
use crate::journal::Record;

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

/// Path of the directory of a bucket.
pub fn bucket_dir(data_dir: &Path, ordinal: u32) -> PathBuf {
    buckets_dir(data_dir).join(format!("{ordinal:08}"))
}

/// The ordinal of a name in `buckets/`; `None` if it is not the name of a bucket.
fn ordinal(name: &OsString) -> Option<u32> {
    let name = name.to_str()?;
    let ordinal = name.parse::<u32>().ok()?;
    (name == format!("{ordinal:08}")).then_some(ordinal)
}

/// Ordinals of the buckets that have a directory.
///
/// # Errors
/// A disk error, as a message for the operator.
pub fn ordinals(dir: &DataDir) -> Result<BTreeSet<u32>, String> {
    let buckets = buckets_dir(dir.path());
    let names = list_existing(dir.disk(), &buckets).map_err(at(&buckets))?;
    Ok(names.iter().filter_map(ordinal).collect())
}

/// A file that exists only in format 1, if there is one.
///
/// # Errors
/// A disk error.
pub fn exists(disk: &dyn Disk, data_dir: &Path) -> io::Result<Option<PathBuf>> {
    for path in [catalog_path(data_dir), mark_path(data_dir)] {
        if disk.exists(&path)? {
            return Ok(Some(path));
        }
    }
    // An empty directory proves nothing: every start of an older program created it.
    let dir = buckets_dir(data_dir);
    let names = list_existing(disk, &dir)?;
    let bucket = names.iter().find(|name| ordinal(name).is_some());
    Ok(bucket.map(|name| dir.join(name)))
}

/// Reads the catalog's snapshot and the log sequence that it covers; an empty catalog if there is none.
///
/// # Errors
/// A disk error, or damage, as a message for the operator.
pub fn read_catalog(dir: &DataDir) -> Result<(Snapshot, Sequence), String> {
    let path = catalog_path(dir.path());
    let content = checked_file::read(dir.disk(), &path, CATALOG_MAGIC).map_err(message)?;
    let Some(content) = content else {
        return Ok(Default::default());
    };
    let short = || format!("{} has no sequence", path.display());
    let (covered, encoded) = content.split_first_chunk().ok_or_else(short)?;
    let snapshot = Catalog::decode(encoded).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((snapshot, u64::from_le_bytes(*covered)))
}

/// Ordinals of the buckets of a catalog that were deleted after this record, according to the log. A log that does not
/// read is ignored here; recovery refuses it.
pub fn deleted_in_log(dir: &DataDir, catalog: &Catalog, after: Sequence) -> BTreeSet<u32> {
    let mut deleted = BTreeSet::new();
    let mut each = |_: Sequence, record: &[u8]| -> Result<(), String> {
        if let Record::Command(command) = Record::decode(record).map_err(message)?
            && let Command::BucketDeleted { bucket_id } = *command
        {
            deleted.extend(catalog.bucket(bucket_id).map(|bucket| bucket.ordinal));
        }
        Ok(())
    };
    drop(dir.read_log(after, &mut each));
    deleted
}

/// Reads the mark: all records up to it are in segments and snapshot. 0 before the first checkpoint.
///
/// # Errors
/// A disk error, or damage, as a message for the operator.
pub fn read_mark(dir: &DataDir) -> Result<Sequence, String> {
    let path = mark_path(dir.path());
    let Some(content) = checked_file::read(dir.disk(), &path, MARK_MAGIC).map_err(message)? else {
        return Ok(0);
    };
    let sequence = content.as_slice().try_into();
    let sequence = sequence.map_err(|_| format!("{} has no sequence", path.display()))?;
    Ok(u64::from_le_bytes(sequence))
}
