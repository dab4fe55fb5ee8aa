//! Begins a log file, durably, and removes what could not be begun.

use std::io;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::disk::{Disk, DiskFile, is_full, is_out_of_descriptors};
use crate::error::LogError;
use crate::file::{self, FILE_HEADER_BYTES, FileHeader, Predecessor};
use crate::walk::FileState;

/// A file to append to: what it holds is whole, and synced with its name.
pub(crate) struct OpenFile {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) state: FileState,
}

/// Begins the file whose first record is `first_sequence`. Header and name are synced before it returns, so
/// that a file with a torn header is known never to have had a frame.
///
/// `Full` and `Descriptors` leave the directory as it was, or with a file of which the caller is told in `begun`, to be
/// removed before anything is appended; after any other error it may hold a torn file, which the next opening removes.
pub(crate) fn create_file(
    disk: &dyn Disk,
    dir: &Path,
    first_sequence: Sequence,
    predecessor: Predecessor,
    begun: &mut Option<PathBuf>,
) -> Result<OpenFile, LogError> {
    let path = dir.join(file::name(first_sequence));
    let mut file = disk.create(&path).map_err(passing_or_io("create", &path))?;
    let (header, crc) = FileHeader {
        first_sequence,
        predecessor,
    }
    .encode();
    if let Err(error) = file.write_all_at(0, &header) {
        if is_full(&error) {
            match remove_file(disk, dir, &path) {
                Err(passing) if passing.is_passing() => *begun = Some(path.clone()),
                removed => removed?,
            }
        }
        return Err(passing_or_io("write", &path)(error));
    }
    file.sync_data().map_err(LogError::io("sync", &path))?;
    if let Err(error) = disk.sync_dir(dir) {
        if is_out_of_descriptors(&error) {
            // It has taken the last one.
            drop(file);
            *begun = Some(path);
        }
        return Err(descriptors_or_io("sync", dir)(error));
    }
    Ok(OpenFile {
        file,
        state: FileState::begun(path, first_sequence, FILE_HEADER_BYTES, crc),
    })
}

/// Removes a file, durably: were it to come back at a crash, it could stand behind records that its
/// predecessor got meanwhile, or in front of a hole.
pub(crate) fn remove_file(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<(), LogError> {
    match disk.remove(path) {
        // An earlier call removed it and failed later.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.map_err(LogError::io("remove", path))?,
    }
    disk.sync_dir(dir).map_err(descriptors_or_io("sync", dir))
}

/// Tells a full disk and too few descriptors, after which the log may go on, from any other failure.
pub(crate) fn passing_or_io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| match is_full(&source) {
        true => LogError::Full {
            path: path.to_owned(),
            source,
        },
        false => descriptors_or_io(action, path)(source),
    }
}

/// Tells too few descriptors from any other failure of a sync of a directory: it was not opened, and so lost nothing.
pub(crate) fn descriptors_or_io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| match is_out_of_descriptors(&source) {
        true => LogError::Descriptors {
            path: path.to_owned(),
            source,
        },
        false => LogError::io(action, path)(source),
    }
}
