//! Begins a log file, durably, and removes what could not be begun.

use std::io;
use std::path::Path;

use crate::Sequence;
use crate::disk::{Disk, DiskFile, is_full};
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
/// `Full` leaves the directory as it was; after any other error it may hold a torn file, which the next
/// opening removes.
pub(crate) fn create_file(
    disk: &dyn Disk,
    dir: &Path,
    first_sequence: Sequence,
    predecessor: Predecessor,
) -> Result<OpenFile, LogError> {
    let path = dir.join(file::name(first_sequence));
    let mut file = disk.create(&path).map_err(full_or_io("create", &path))?;
    let (header, crc) = FileHeader {
        first_sequence,
        predecessor,
    }
    .encode();
    if let Err(error) = file.write_all_at(0, &header) {
        if is_full(&error) {
            remove_file(disk, dir, &path)?;
        }
        return Err(full_or_io("write", &path)(error));
    }
    file.sync_data().map_err(LogError::io("sync", &path))?;
    disk.sync_dir(dir).map_err(LogError::io("sync", dir))?;
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
    disk.sync_dir(dir).map_err(LogError::io("sync", dir))
}

/// Tells a full disk, after which the log may go on, from any other failure.
pub(crate) fn full_or_io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| match is_full(&source) {
        true => LogError::Full {
            path: path.to_owned(),
            source,
        },
        false => LogError::io(action, path)(source),
    }
}
