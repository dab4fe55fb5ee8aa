//! Large files that are written once, synced, and then mapped: segments, answers files, runs of the ledger. A file is
//! in use when a manifest names it; the caller writes the manifest afterwards.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use disk::{Bytes, Disk, DiskFile};

/// Writes a new file and makes it and its directory entry durable. Returns its bytes.
///
/// # Errors
/// A disk error, or an error of `write`. The incomplete file is removed.
pub fn write<R, E: From<io::Error>>(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<R, E>,
) -> Result<Arc<dyn Bytes>, E> {
    let dir = path.parent().unwrap_or(Path::new("."));
    disk.create_dir_all(dir)?;
    let bytes = write_unnamed(disk, path, write)?;
    if let Err(error) = disk.sync_dir(dir) {
        drop(disk.remove(path));
        return Err(error.into());
    }
    Ok(bytes)
}

/// Writes a new file in an existing directory, without syncing the directory: the file's name becomes durable when the
/// caller syncs it. For several files, sync once after all of them.
///
/// # Errors
/// A disk error, or an error of `write`. The incomplete file is removed.
pub fn write_unnamed<R, E: From<io::Error>>(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<R, E>,
) -> Result<Arc<dyn Bytes>, E> {
    let attempt = || -> Result<Arc<dyn Bytes>, E> {
        let mut out = FileWriter::new(disk.create(path)?);
        write(&mut out)?;
        out.finish()?;
        Ok(disk.map(path)?)
    };
    let written = attempt();
    if written.is_err() {
        // Report the first error. The next start removes a leftover.
        drop(disk.remove(path));
    }
    written
}

/// Combines small writes into large ones. The data is durable when [`FileWriter::finish`] returns.
pub struct FileWriter {
    file: Box<dyn DiskFile>,
    offset: u64,
    buffer: Vec<u8>,
}

const WRITE_BYTES: usize = 1 << 20;

impl FileWriter {
    /// Writes to a new file, from its beginning.
    pub fn new(file: Box<dyn DiskFile>) -> Self {
        FileWriter {
            file,
            offset: 0,
            buffer: Vec::with_capacity(64 << 10),
        }
    }

    /// Writes the rest of the buffer and syncs. Returns the file's length in bytes.
    ///
    /// # Errors
    /// A disk error.
    pub fn finish(mut self) -> io::Result<u64> {
        self.flush()?;
        self.file.sync_data()?;
        Ok(self.offset)
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.offset, &self.buffer)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
