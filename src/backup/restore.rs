//! Puts a backup into an empty data directory, so that a server either finds all of it or refuses to start.
//!
//! All files but the log's get their places as they are read; the log's wait in a directory of their own until every
//! checksum is right. Then they get their places, the oldest last: a log that lacks its beginning, or is missing
//! although the other files name what it held, is refused by the start ("Reading: the tail rule" in wal/FORMAT.md). So
//! the last renaming puts all in force.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wal::disk::Disk;

use super::content::{Content, CopyError};
use super::error::BackupError;
use super::manifest::Manifest;
use super::source;
use crate::checkpoint::Layout;
use crate::sealed_file::FileWriter;

/// Where the log's files wait.
const WAITING_DIR: &str = "log.restoring";

const LOG_PREFIX: &str = "log/";

/// Only reads the backup.
pub(crate) fn verify(disk: &Arc<dyn Disk>, backup: &Path) -> Result<Manifest, BackupError> {
    source::read(disk, backup, &mut |name, content| {
        content
            .copy_to(&mut io::sink())
            .map_err(|error| of_copy(error, &source::path_of(backup, name), backup))
    })
}

/// Restores a backup to a data directory that the caller has found to hold nothing, and whose lock it holds. `from` is
/// the disk the backup is on.
pub(crate) fn restore(
    from: &Arc<dyn Disk>,
    backup: &Path,
    disk: &dyn Disk,
    layout: &Layout,
) -> Result<Manifest, BackupError> {
    let mut dirs = BTreeSet::new();
    let restored = source::read(from, backup, &mut |name, content| {
        put(disk, layout, backup, name, content, &mut dirs)
    })
    .and_then(|manifest| {
        put_in_force(disk, layout, &dirs)
            .map_err(|error| BackupError::Write(layout.data_dir.clone(), error))?;
        Ok(manifest)
    });
    if restored.is_err() {
        discard(disk, layout);
    }
    restored
}

fn put(
    disk: &dyn Disk,
    layout: &Layout,
    backup: &Path,
    name: &str,
    content: &mut Content<'_>,
    dirs: &mut BTreeSet<PathBuf>,
) -> Result<(), BackupError> {
    let path = match name.strip_prefix(LOG_PREFIX) {
        Some(name) => layout.data_dir.join(WAITING_DIR).join(name),
        None => layout.data_dir.join(name),
    };
    let dir = path.parent().unwrap_or(&layout.data_dir).to_owned();
    let write = || {
        if !dirs.contains(&dir) {
            disk.create_dir_all(&dir).map_err(CopyError::Write)?;
            dirs.insert(dir);
        }
        let mut out = FileWriter::new(disk.create(&path).map_err(CopyError::Write)?);
        content.copy_to(&mut out)?;
        out.finish().map(drop).map_err(CopyError::Write)
    };
    write().map_err(|error| of_copy(error, &source::path_of(backup, name), &path))
}

fn put_in_force(disk: &dyn Disk, layout: &Layout, dirs: &BTreeSet<PathBuf>) -> io::Result<()> {
    dirs.iter().try_for_each(|dir| disk.sync_dir(dir))?;
    let (waiting, log) = (layout.data_dir.join(WAITING_DIR), layout.log_dir());
    if !dirs.contains(&waiting) {
        return Ok(());
    }
    disk.create_dir_all(&log)?;
    for name in disk.list(&waiting)?.into_iter().rev() {
        // Each durable before the next: no crash leaves the oldest without the others.
        disk.rename(&waiting.join(&name), &log.join(&name))?;
        disk.sync_dir(&log)?;
    }
    disk.remove_dir_all(&waiting)?;
    disk.sync_dir(&layout.data_dir)
}

/// Removes what was put there. What cannot be removed is left to whoever tries again, who is told.
fn discard(disk: &dyn Disk, layout: &Layout) {
    let data_dir = &layout.data_dir;
    // The log before what it needs: also a half of this is refused by the start.
    for dir in [layout.log_dir(), data_dir.join(WAITING_DIR), layout.buckets_dir(), data_dir.join("ledger")] {
        let _ = disk.remove_dir_all(&dir);
    }
    for file in [layout.catalog_path(), layout.mark_path()] {
        let _ = disk.remove(&file);
    }
    let _ = disk.sync_dir(data_dir);
}

fn of_copy(error: CopyError, source: &Path, target: &Path) -> BackupError {
    match error {
        CopyError::Read(error) => BackupError::Read(source.to_owned(), error),
        CopyError::Write(error) => BackupError::Write(target.to_owned(), error),
    }
}
