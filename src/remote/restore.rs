//! Restores a checkpoint into an empty data directory. The directory has no log: the next record gets the number after
//! the last one that the checkpoint covers.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use disk::{Disk, StdDisk};
use objects::{ObjectError, ObjectStore};
use sha2::{Digest, Sha256};

use super::checkpoints::{Checkpoint, Choice, choose, read};
use super::error::RemoteError;
use super::kept::Note;
use super::names::ShardNames;
use super::root::{FileEntry, Root};
use crate::backup;
use crate::catalog::Bytes;
use crate::checkpoint::{Layout, Manifest, Restoring};
use crate::progress::Progress;
use crate::sealed_file::FileWriter;

/// Bytes of an object in memory.
const PIECE_BYTES: u64 = 8 << 20;

/// Restores a checkpoint of a shard to a data directory that is empty or does not exist, and verifies every checksum. A
/// server then finds all of it, or nothing. `url` is for messages.
///
/// # Errors
/// See [`RemoteError`]. After an error nothing of the checkpoint is left in the directory.
pub fn restore(
    store: &dyn ObjectStore,
    url: &str,
    shard: u16,
    choice: Choice,
    data_dir: &Path,
    progress: &dyn Progress,
) -> Result<Checkpoint, RemoteError> {
    let checkpoint = choose(store, url, shard, choice)?;
    let _lock = backup::take_empty(data_dir)?;
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    restore_to(store, &checkpoint, &*disk, &Layout::of(data_dir), progress)?;
    Ok(checkpoint)
}

/// Reads all objects of a checkpoint and verifies their checksums, without writing anything.
///
/// # Errors
/// See [`RemoteError`].
pub fn verify(
    store: &dyn ObjectStore,
    url: &str,
    shard: u16,
    choice: Choice,
    progress: &dyn Progress,
) -> Result<Checkpoint, RemoteError> {
    let checkpoint = choose(store, url, shard, choice)?;
    let layout = Layout::of(Path::new(""));
    check_names(&checkpoint, &layout)?;
    progress.expect(checkpoint.root.bytes());
    read_all(&checkpoint, &mut |file| {
        read_object(store, file, &mut io::sink(), progress)
    })?;
    Ok(checkpoint)
}

/// Copies what a root names into an empty directory, to be opened with a log that has what comes after it. Verifies every
/// checksum.
///
/// # Errors
/// See [`RemoteError`]. What was copied is left.
pub fn fetch(
    store: &dyn ObjectStore,
    shard: u16,
    root: &str,
    disk: &dyn Disk,
    layout: &Layout,
) -> Result<(), RemoteError> {
    let name = root.parse();
    let name =
        name.map_err(|()| RemoteError::DamagedRoot(root.to_owned(), "it is not a root's name".to_owned()))?;
    let checkpoint = read(store, ShardNames(shard), name)?;
    check_names(&checkpoint, layout)?;
    copy_files(store, &checkpoint, disk, layout, &())?;
    Note::of(checkpoint.name, &checkpoint.root.encode()?).write(disk, layout)?;
    Ok(checkpoint.root.manifest.write(disk, &layout.data_dir)?)
}

/// Copies the files of a checkpoint into a directory, and makes them durable.
pub(super) fn copy_files(
    store: &dyn ObjectStore,
    checkpoint: &Checkpoint,
    disk: &dyn Disk,
    layout: &Layout,
    progress: &dyn Progress,
) -> Result<(), RemoteError> {
    progress.expect(checkpoint.root.bytes());
    let mut dirs = BTreeSet::from([layout.data_dir.clone()]);
    read_all(checkpoint, &mut |file| {
        let path = layout.data_dir.join(&file.local);
        let written = |error| Failed::Disk(RemoteError::Write(path.clone(), error));
        let dir = path.parent().unwrap_or(&layout.data_dir);
        if dirs.insert(dir.to_owned()) {
            disk.create_dir_all(dir).map_err(written)?;
        }
        let mut out = FileWriter::new(disk.create(&path).map_err(written)?);
        read_object(store, file, &mut out, progress)?;
        out.finish().map(drop).map_err(written)
    })?;
    let failed = |error| RemoteError::Write(layout.data_dir.clone(), error);
    dirs.iter().try_for_each(|dir| disk.sync_dir(dir)).map_err(failed)
}

/// Restores a checkpoint to a data directory that the caller has created, has found to be empty, and whose lock it
/// holds.
pub(crate) fn restore_to(
    store: &dyn ObjectStore,
    checkpoint: &Checkpoint,
    disk: &dyn Disk,
    layout: &Layout,
    progress: &dyn Progress,
) -> Result<(), RemoteError> {
    check_names(checkpoint, layout)?;
    let failed = |error| RemoteError::Write(layout.data_dir.clone(), error);
    let write_all = || {
        let restoring = Restoring::begin(disk, layout).map_err(failed)?;
        copy_files(store, checkpoint, disk, layout, progress)?;
        begin_log(disk, layout, &checkpoint.root.manifest)?;
        // Nothing is uploaded again, if the server publishes to the same place.
        Note::of(checkpoint.name, &checkpoint.root.encode()?).write(disk, layout)?;
        Ok(restoring)
    };
    let restoring = write_all().inspect_err(|_: &RemoteError| Restoring::discard(disk, layout))?;
    // From here on the contents are valid, even if the following fails.
    restoring.finish().map_err(failed)
}

/// Writes the manifest for a directory without the log that the checkpoint was taken beside, and begins a new log. Some
/// files may cover more than `covered`; the records in between are in the former log only.
fn begin_log(disk: &dyn Disk, layout: &Layout, manifest: &Manifest) -> Result<(), RemoteError> {
    let last = manifest.newest_covered();
    let manifest = Manifest {
        covered: last,
        catalog_covered: last,
        ..manifest.clone()
    };
    let begun = wal::begin(disk, &layout.log_dir(), last + 1);
    begun.map_err(|error| RemoteError::Log(error.to_string()))?;
    Ok(manifest.write(disk, &layout.data_dir)?)
}

/// A root names exactly the files of its manifest, so no path leads outside of the directory.
pub(super) fn check_names(checkpoint: &Checkpoint, layout: &Layout) -> Result<(), RemoteError> {
    let Root { manifest, files, .. } = &checkpoint.root;
    let expected = manifest.files(layout);
    let named: BTreeSet<_> = files
        .iter()
        .map(|file| layout.data_dir.join(&file.local))
        .collect();
    match named.len() == files.len() && expected.keys().eq(named.iter()) {
        true => Ok(()),
        false => Err(RemoteError::DamagedRoot(
            checkpoint.name.to_string(),
            "its files are not those of its manifest".to_owned(),
        )),
    }
}

/// Why a file was not restored.
pub(super) enum Failed {
    /// Its object is damaged or missing. The others are read nevertheless, so that all faults are reported.
    Fault(String),
    Store(ObjectError),
    Disk(RemoteError),
}

/// Reads the objects of all files.
pub(super) fn read_all(
    checkpoint: &Checkpoint,
    read: &mut dyn FnMut(&FileEntry) -> Result<(), Failed>,
) -> Result<(), RemoteError> {
    let mut faults = Vec::new();
    for file in &checkpoint.root.files {
        match read(file) {
            Ok(()) => {}
            Err(Failed::Fault(fault)) => faults.push(format!("{}: {fault}", file.local)),
            Err(Failed::Store(error)) => return Err(error.into()),
            Err(Failed::Disk(error)) => return Err(error),
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(RemoteError::Faults(checkpoint.name.to_string(), faults)),
    }
}

/// Reads the object of a file in pieces, and verifies its length and its checksum.
fn read_object(
    store: &dyn ObjectStore,
    file: &FileEntry,
    out: &mut dyn Write,
    progress: &dyn Progress,
) -> Result<(), Failed> {
    let mut digest = Sha256::new();
    let mut from = 0;
    while from < file.bytes {
        let to = (from + PIECE_BYTES).min(file.bytes);
        let piece = store
            .get_range(&file.object, from..to)
            .map_err(|error| match error {
                ObjectError::NotFound(_) | ObjectError::Short(..) => Failed::Fault(error.to_string()),
                error => Failed::Store(error),
            })?;
        digest.update(&piece);
        let written = |error| Failed::Disk(RemoteError::Write(file.local.clone().into(), error));
        out.write_all(&piece).map_err(written)?;
        progress.advance(to - from);
        from = to;
    }
    match Bytes(digest.finalize().into()) == file.sha256 {
        true => Ok(()),
        false => Err(Failed::Fault(format!(
            "the object {} does not have the checksum of what was stored",
            file.object
        ))),
    }
}
