//! Restores a backup into an empty data directory, so that a server either finds all of it or refuses to start: a
//! marker file exists from before the first file is written until all files are complete, verified and synced.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;

use super::content::{Content, CopyError};
use super::error::BackupError;
use super::manifest::{DATA_PREFIX, Manifest, ROOTS};
use super::source;
use crate::check::NamedFiles;
use crate::checkpoint::{self, Layout};
use crate::sealed_file::FileWriter;

/// Verifies a backup without restoring it. If it is a directory, the checksums within the files are verified, too.
pub(crate) fn verify(disk: &Arc<dyn Disk>, backup: &Path) -> Result<Manifest, BackupError> {
    let manifest = read(disk, backup)?;
    let layout = Layout {
        data_dir: backup.join(DATA_PREFIX),
    };
    // A backup of format 1 has no such manifest, and an archive is not a directory.
    let Ok(Some(files)) = checkpoint::Manifest::read(&**disk, &layout.data_dir) else {
        return Ok(manifest);
    };
    let (named, mut damages) = (NamedFiles::of(&layout, &files), Vec::new());
    for file in &manifest.files {
        let found = named.damages(&**disk, &layout.data_dir.join(&file.path));
        damages.extend(found.map_err(BackupError::Damaged)?);
    }
    if damages.is_empty() || !manifest.damages.is_empty() {
        // The damage was recorded when the backup was made.
        return Ok(manifest);
    }
    Err(BackupError::Faults(backup.to_owned(), damages))
}

fn read(disk: &Arc<dyn Disk>, backup: &Path) -> Result<Manifest, BackupError> {
    source::read(disk, backup, &mut |name, content| {
        content
            .copy_to(&mut io::sink())
            .map_err(|error| of_copy(error, &source::path_of(backup, name), backup))
    })
}

/// Restores a backup to a data directory that the caller has created, has found to be empty, and whose lock it holds.
/// `from` is the disk with the backup.
pub(crate) fn restore(
    from: &Arc<dyn Disk>,
    backup: &Path,
    disk: &dyn Disk,
    layout: &Layout,
) -> Result<Manifest, BackupError> {
    let failed = |error| BackupError::Write(layout.data_dir.clone(), error);
    let mut dirs = BTreeSet::from([layout.data_dir.clone()]);
    let mut put_all = || {
        begin(disk, layout).map_err(failed)?;
        let manifest = source::read(from, backup, &mut |name, content| {
            put(disk, layout, backup, name, content, &mut dirs)
        })?;
        dirs.iter()
            .try_for_each(|dir| disk.sync_dir(dir))
            .map_err(failed)?;
        Ok(manifest)
    };
    let manifest = put_all().inspect_err(|_| discard(disk, layout))?;
    // From here on the contents are valid, even if the following fails.
    put_in_force(disk, layout).map_err(failed)?;
    Ok(manifest)
}

fn begin(disk: &dyn Disk, layout: &Layout) -> io::Result<()> {
    disk.create(&layout.restoring_path())?.sync_data()?;
    disk.sync_dir(&layout.data_dir)
}

fn put(
    disk: &dyn Disk,
    layout: &Layout,
    backup: &Path,
    name: &str,
    content: &mut Content<'_>,
    dirs: &mut BTreeSet<PathBuf>,
) -> Result<(), BackupError> {
    let path = layout.data_dir.join(name);
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

fn put_in_force(disk: &dyn Disk, layout: &Layout) -> io::Result<()> {
    disk.remove(&layout.restoring_path())?;
    disk.sync_dir(&layout.data_dir)
}

/// Removes the restored files and, once that is durable, the marker. While a file cannot be removed the marker stays, so
/// that no server starts on a part of a backup; the next restore fails with `Occupied`.
fn discard(disk: &dyn Disk, layout: &Layout) {
    let removed = ROOTS.iter().all(|name| {
        let path = layout.data_dir.join(name);
        // A root is a directory or a file. What matters is whether anything is left.
        let _ = disk.remove_dir_all(&path);
        let _ = disk.remove(&path);
        matches!(disk.exists(&path), Ok(false))
    });
    if removed && disk.sync_dir(&layout.data_dir).is_ok() {
        // The restore has failed already; that error is the one to report.
        let _ = disk.remove(&layout.restoring_path());
    }
}

fn of_copy(error: CopyError, source: &Path, target: &Path) -> BackupError {
    match error {
        CopyError::Read(error) => BackupError::Read(source.to_owned(), error),
        CopyError::Write(error) => BackupError::Write(target.to_owned(), error),
    }
}
