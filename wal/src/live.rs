//! Copies a log while its writer continues. Never writes.

use std::io;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::error::{Damage, DamageKind, LogError, OpenError};
use crate::file::{self, FILE_HEADER_BYTES};
use crate::frame;
use crate::reader::{FileReader, Found};
use crate::recover::Replay;
use disk::{Disk, list_existing};

/// The files of the log in `dir`, oldest first; empty if the directory does not exist. All but the last are complete: a
/// file is created only after the previous one has its last frame.
pub fn files(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    let names = list_existing(disk, dir).map_err(LogError::io("list", dir))?;
    // Names sort like their sequences.
    let ours = names.into_iter().filter(|name| file::parse_name(name).is_some());
    Ok(ours.map(|name| dir.join(name)).collect())
}

/// Length of a log's last file up to the end of its last valid frame, in bytes; 0 if it is being created. The
/// bytes before it never change again, so they can be copied while the writer continues; the bytes behind it may be
/// part of a frame. A frame that was written before this call lies before it.
///
/// Returns `None` if the file no longer exists.
///
/// # Errors
/// I/O errors. Damage, if a valid frame follows an invalid one, or frames follow an invalid header.
pub fn whole_bytes(disk: &dyn Disk, path: &Path) -> Result<Option<u64>, LogError> {
    let mut damage_at = None;
    loop {
        match read_to_end(disk, path) {
            // The file is read piece by piece, so a frame may appear before the one in front of it, but not twice at
            // the same offset.
            Err(LogError::Damaged(damage)) if damage_at != Some(damage.offset) => {
                damage_at = Some(damage.offset);
            }
            // The writer has truncated the preallocated zeros, which it does once per file. The length has changed;
            // read again.
            Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => return read.map(Some),
        }
    }
}

/// Passes the records after `after`, up to `until`, to `each`, in order, while the writer continues. All of them must
/// be durable, and none may be trimmed before this returns. Files before them are not read.
///
/// # Errors
/// Errors of `each`, I/O errors, and damage: a record is missing.
pub fn records<E>(
    disk: &dyn Disk,
    dir: &Path,
    (after, until): (Sequence, Sequence),
    each: &mut Replay<'_, E>,
) -> Result<(), OpenError<E>> {
    let files = files(disk, dir)?;
    let first_of = |path: &PathBuf| path.file_name().and_then(file::parse_name).unwrap_or(0);
    let mut due = after + 1;
    for (index, path) in files.iter().enumerate() {
        let ends_before = files.get(index + 1).is_some_and(|next| first_of(next) <= due);
        if ends_before || due > until {
            continue;
        }
        let mut read = records_of(disk, path, first_of(path), &mut due, until, each);
        if let Err(OpenError::Log(LogError::Io { source, .. })) = &read
            && source.kind() == io::ErrorKind::UnexpectedEof
        {
            // The writer has truncated the preallocated zeros in the meantime, which it does once per file.
            read = records_of(disk, path, first_of(path), &mut due, until, each);
        }
        read?;
    }
    if due <= until {
        let missing = io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("record {due} is not in the log"),
        );
        return Err(LogError::io("read", dir)(missing).into());
    }
    Ok(())
}

/// Reads one file from record `due` on, and advances `due` behind the last record passed on.
fn records_of<E>(
    disk: &dyn Disk,
    path: &Path,
    first_sequence: Sequence,
    due: &mut Sequence,
    until: Sequence,
    each: &mut Replay<'_, E>,
) -> Result<(), OpenError<E>> {
    let opened = disk.open_read(path).map_err(LogError::io("read", path))?;
    let mut reader = FileReader::new(opened, path, first_sequence)?;
    let mut offset = FILE_HEADER_BYTES;
    while *due <= until
        && let Found::Frame(header, payload) = reader.frame(offset)?
    {
        offset += header.frame_bytes();
        for (sequence, record) in (header.first_sequence..).zip(frame::records(payload).flatten()) {
            if sequence > *due {
                // The records in between are missing.
                return Ok(());
            }
            if sequence == *due && sequence <= until {
                each(sequence, record).map_err(|source| OpenError::Replay { sequence, source })?;
                *due += 1;
            }
        }
    }
    Ok(())
}

fn read_to_end(disk: &dyn Disk, path: &Path) -> Result<u64, LogError> {
    let opened = disk.open_read(path).map_err(LogError::io("read", path))?;
    let Some(first_sequence) = path.file_name().and_then(file::parse_name) else {
        return Ok(0);
    };
    let mut reader = FileReader::new(opened, path, first_sequence)?;
    if let Err(fault) = reader.header()? {
        // A header is synced before the first frame is written, so only a file without frames can be in creation.
        if reader.is_zero_from(FILE_HEADER_BYTES)? {
            return Ok(0);
        }
        return Err(Damage {
            path: path.to_owned(),
            offset: 0,
            sequence: first_sequence,
            kind: DamageKind::Header(fault),
        }
        .into());
    }
    let (mut end, mut due) = (FILE_HEADER_BYTES, first_sequence);
    let fault = loop {
        match reader.frame(end)? {
            Found::Frame(header, _) => {
                end += header.frame_bytes();
                due = header.first_sequence + u64::from(header.records);
            }
            Found::Bad { fault, .. } => break fault,
            Found::End => return Ok(end),
        }
    };
    match reader.next_valid(end + 1, due)? {
        None => Ok(end),
        next => Err(Damage {
            path: path.to_owned(),
            offset: end,
            sequence: due,
            kind: DamageKind::Frame { fault, next },
        }
        .into()),
    }
}
