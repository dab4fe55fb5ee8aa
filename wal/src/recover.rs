//! Opens a log: reads all of it and passes its records to the caller. Only when everything is valid does it cut a torn
//! tail and make durable what it found. Otherwise it returns an error and modifies nothing.

use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::check::FileReport;
use crate::create::{self, OpenFile};
use crate::error::{LogError, OpenError};
use crate::file::{FILE_HEADER_BYTES, Predecessor};
use crate::walk::{AtDamage, walk};
use disk::{Disk, DiskFile};

/// Result of opening a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Records passed to the caller.
    pub records: u64,
    /// Frames read.
    pub frames: u64,
    /// Size of the log's files in bytes, before a torn tail was cut off.
    pub bytes: u64,
    /// Last sequence of the log; 0 if it has no records.
    pub last_sequence: Sequence,
    /// What a crash left of a frame behind the last complete one; it has been cut off. It was never acknowledged,
    /// unless the disk itself damaged the last frame.
    pub torn_tail: Option<TornTail>,
}

/// The part of the last log file that was being written at a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The last log file.
    pub path: PathBuf,
    /// Offset at which the valid part ends, in bytes; 0 if the file was being created and has no valid header.
    pub offset: u64,
    /// Bytes from there to the end of the file, preallocated zeros included.
    pub bytes: u64,
}

/// Callback for each record of a log that is being opened; an error aborts the open.
pub type Replay<'a, E> = dyn FnMut(Sequence, &[u8]) -> Result<(), E> + 'a;

/// See [`crate::Log::open`]. Returns a log that is valid, durable and ready for appends: its closed files, oldest first,
/// and the file to append to.
pub(crate) fn recover<E>(
    disk: &dyn Disk,
    dir: &Path,
    from: Sequence,
    replay: &mut Replay<'_, E>,
) -> Result<(Vec<FileReport>, OpenFile, Recovery), OpenError<E>> {
    let mut records = 0;
    let found = walk(disk, dir, Some(from), AtDamage::Stop, |sequence, payload| {
        if sequence > from {
            replay(sequence, payload).map_err(|source| OpenError::Replay { sequence, source })?;
            records += 1;
        }
        Ok::<(), OpenError<E>>(())
    })?;
    let mut files = found.files;
    let active = make_ready(disk, dir, &mut files, found.torn_tail.as_ref())?;
    let recovery = Recovery {
        records,
        frames: found.frames,
        bytes: found.bytes,
        last_sequence: found.last_sequence,
        torn_tail: found.torn_tail,
    };
    Ok((files, active, recovery))
}

/// Modifies the disk, after everything that was read has been found valid. Returns the file to append to, which is
/// removed from the end of `files`.
fn make_ready(
    disk: &dyn Disk,
    dir: &Path,
    files: &mut Vec<FileReport>,
    torn: Option<&TornTail>,
) -> Result<OpenFile, LogError> {
    // The file was being created and contains nothing valid.
    if let Some(tail) = torn.filter(|tail| tail.offset == 0) {
        create::remove_file(disk, dir, &tail.path)?;
    }
    let Some(active) = files.pop() else {
        disk.create_dir_all(dir).map_err(LogError::io("create", dir))?;
        return create::create_file(disk, dir, 1, Predecessor::default(), &mut None);
    };
    let path = &active.path;
    let mut file = disk.open(path).map_err(LogError::io("open", path))?;
    // A torn tail, or preallocated zeros: they may not be on disk, so the next frames extend the file again.
    if file.len().map_err(LogError::io("read", path))? > active.bytes {
        file.truncate(active.bytes)
            .map_err(LogError::io("truncate", path))?;
    }
    rewrite_last(file.as_mut(), &active)?;
    file.sync_data().map_err(LogError::io("sync", path))?;
    // Also syncs the file's name: the process may have ended between creating the file and syncing the directory.
    disk.sync_dir(dir).map_err(LogError::io("sync", dir))?;
    Ok(OpenFile { file, state: active })
}

/// Rewrites the last frame, byte for byte. If its sync failed, the kernel has marked its pages clean: it can still be
/// read, but no later sync would write it, and after the next power loss it would be a gap before newer frames.
/// Everything before it was synced before it was written.
fn rewrite_last(file: &mut dyn DiskFile, active: &FileReport) -> Result<(), LogError> {
    let end = active.bytes.max(FILE_HEADER_BYTES);
    let mut bytes = vec![0; (end - active.last_offset) as usize];
    file.read_exact_at(active.last_offset, &mut bytes)
        .map_err(LogError::io("read", &active.path))?;
    file.write_all_at(active.last_offset, &bytes)
        .map_err(LogError::io("write", &active.path))
}
