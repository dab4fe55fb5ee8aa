//! Restores a backup into an empty data directory, so that a server either finds all of it or refuses to start: a
//! marker file exists from before the first file is written until all files are complete, verified and synced.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use disk::Disk;

use super::error::BackupError;
use super::manifest::{DATA_PREFIX, Manifest};
use super::source;
use super::target::write_file;
use crate::check;
use crate::checkpoint::{self, Layout, Restoring};
use crate::progress::Progress;

/// Verifies a backup without restoring it. If it is a directory, the checksums within the files are verified, too.
pub(crate) fn verify(
    disk: &Arc<dyn Disk>,
    backup: &Path,
    progress: &dyn Progress,
) -> Result<Manifest, BackupError> {
    let manifest = source::read(disk, backup, progress, &mut |name, content| {
        let copied = content.copy_to(&mut io::sink());
        copied.map_err(|error| content.error(error, &source::path_of(backup, name), backup))
    })?;
    let layout = Layout::of(&backup.join(DATA_PREFIX));
    // A backup of format 1 has no such manifest, and an archive is not a directory.
    let Ok(Some(files)) = checkpoint::Manifest::read(&**disk, &layout.data_dir) else {
        return Ok(manifest);
    };
    let (named, mut damages) = (files.files(&layout), Vec::new());
    let entries = manifest.files.iter();
    let entries =
        entries.filter_map(|entry| Some((named.get(&layout.data_dir.join(&entry.path))?, entry.bytes)));
    progress.expect(entries.clone().map(|(_, bytes)| bytes).sum());
    for (file, bytes) in entries {
        let found = check::damages(&**disk, &layout, file);
        damages.extend(found.map_err(BackupError::Damaged)?);
        progress.advance(bytes);
    }
    if damages.is_empty() || !manifest.damages.is_empty() {
        // The damage was recorded when the backup was made.
        return Ok(manifest);
    }
    Err(BackupError::Faults(backup.to_owned(), damages))
}

/// Restores a backup to a data directory that the caller has created, has found to be empty, and whose lock it holds.
/// `from` is the disk with the backup.
pub(crate) fn restore(
    from: &Arc<dyn Disk>,
    backup: &Path,
    disk: &dyn Disk,
    layout: &Layout,
    progress: &dyn Progress,
) -> Result<Manifest, BackupError> {
    let failed = |error| BackupError::Write(layout.data_dir.clone(), error);
    let mut dirs = BTreeSet::from([layout.data_dir.clone()]);
    let mut write_all = || {
        let restoring = Restoring::begin(disk, layout).map_err(failed)?;
        let manifest = source::read(from, backup, progress, &mut |name, content| {
            let path = layout.data_dir.join(name);
            let written = write_file(disk, &path, content, &mut dirs);
            written.map_err(|error| content.error(error, &source::path_of(backup, name), &path))
        })?;
        dirs.iter()
            .try_for_each(|dir| disk.sync_dir(dir))
            .map_err(failed)?;
        Ok((manifest, restoring))
    };
    let (manifest, restoring) = write_all().inspect_err(|_| Restoring::discard(disk, layout))?;
    // From here on the contents are valid, even if the following fails.
    restoring.finish().map_err(failed)?;
    Ok(manifest)
}
