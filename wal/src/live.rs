//! What of a log can be copied while its writer goes on. Never writes.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::LogError;
use crate::file::{self, FILE_HEADER_BYTES, HeaderError};
use crate::reader::{FileReader, Found};

/// The files of the log in `dir`, oldest first; none when there is no such directory. All but the last are complete:
/// a file is begun when the one before it has its last frame.
pub fn files(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    let names = match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(LogError::io("list", dir))?,
    };
    // Their names sort as their sequences do.
    let ours = names.into_iter().filter(|name| file::parse_name(name).is_some());
    Ok(ours.map(|name| dir.join(name)).collect())
}

/// Length of a log's last file up to the end of its last whole frame, in bytes; 0 when not even its header is whole.
/// What lies before it never changes again, so it can be copied whatever the writer does; what lies behind it may be
/// half of a frame. A frame that was written before this was called is before it.
///
/// `None`: the file is gone.
pub fn whole_bytes(disk: &dyn Disk, path: &Path) -> Result<Option<u64>, LogError> {
    loop {
        match read_to_end(disk, path) {
            // The writer has cut the room off the file, as it does once for each: its length is another one now.
            Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(LogError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => return read.map(Some),
        }
    }
}

fn read_to_end(disk: &dyn Disk, path: &Path) -> Result<u64, LogError> {
    let opened = disk.open_read(path).map_err(LogError::io("read", path))?;
    let Some(first_sequence) = path.file_name().and_then(file::parse_name) else {
        return Ok(0);
    };
    let mut reader = FileReader::new(opened, path, first_sequence, Vec::new())?;
    match reader.header()? {
        Ok(_) => {}
        Err(HeaderError::Version(found)) => {
            return Err(LogError::UnsupportedVersion {
                path: path.to_owned(),
                found,
                supported: file::FORMAT_VERSION,
            });
        }
        Err(HeaderError::Fault(_)) => return Ok(0),
    }
    let mut end = FILE_HEADER_BYTES;
    while let Found::Frame(header, _) = reader.frame(end)? {
        end += header.frame_bytes();
    }
    Ok(end)
}
