//! Creates a log file durably, and removes files whose creation failed.

use std::io;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::check::FileReport;
use crate::error::LogError;
use crate::file::{self, FILE_HEADER_BYTES, FileHeader, Predecessor};
use disk::{Disk, DiskFile, is_full, is_out_of_descriptors};

/// A file that is ready for appends: its content is valid, and both content and name are synced.
pub(crate) struct OpenFile {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) state: FileReport,
}

/// Creates the file whose first record is `first_sequence`. Header and name are synced before this returns, so a file
/// with a torn header cannot have had a frame.
///
/// After `Full` and `Descriptors` the directory is unchanged, or `begun` names a file that the caller must remove
/// before it appends anything. After any other error the directory may contain a torn file, which the next open
/// removes.
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
            // Closes the file to free its descriptor.
            drop(file);
            *begun = Some(path);
        }
        return Err(descriptors_or_io("sync", dir)(error));
    }
    Ok(OpenFile {
        file,
        state: FileReport::begun(path, first_sequence, FILE_HEADER_BYTES, crc),
    })
}

/// Creates a log without records in `dir`, whose first record will have this sequence: for the owner of a state that
/// covers everything before it and has no log. The directory is created if missing, and must have no log.
///
/// # Errors
/// A disk error; `AlreadyExists` if the log exists.
pub fn begin(disk: &dyn Disk, dir: &Path, first_sequence: Sequence) -> Result<(), LogError> {
    disk.create_dir_all(dir).map_err(LogError::io("create", dir))?;
    if let Some(path) = crate::live::files(disk, dir)?.pop() {
        return Err(LogError::io("create", &path)(io::ErrorKind::AlreadyExists.into()));
    }
    create_file(disk, dir, first_sequence, Predecessor::default(), &mut None).map(drop)
}

/// Removes a file durably. If it came back after a crash, it could follow records that were added to its predecessor in
/// the meantime, or precede a gap.
pub(crate) fn remove_file(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<(), LogError> {
    match disk.remove(path) {
        // An earlier call removed it and failed later.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.map_err(LogError::io("remove", path))?,
    }
    disk.sync_dir(dir).map_err(descriptors_or_io("sync", dir))
}

/// Maps a full disk and a lack of descriptors, after which the log stays usable, to their own errors.
pub(crate) fn passing_or_io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| match is_full(&source) {
        true => LogError::Full {
            path: path.to_owned(),
            source,
        },
        false => descriptors_or_io(action, path)(source),
    }
}

/// Maps a lack of descriptors to its own error. A directory that could not be opened for a sync has lost nothing.
pub(crate) fn descriptors_or_io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| match is_out_of_descriptors(&source) {
        true => LogError::Descriptors {
            path: path.to_owned(),
            source,
        },
        false => LogError::io(action, path)(source),
    }
}
