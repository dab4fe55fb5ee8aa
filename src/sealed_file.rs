//! Large files that are written once, synced, and mapped from then on: segments, answers files, runs of the ledger.
//! Which of them count, a manifest says; whoever writes them names them there afterwards.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use wal::disk::{Bytes, Disk, DiskFile};

/// Writes a new file and makes it last, its name included; answers its bytes.
///
/// # Errors
/// The disk's, or those of `write`; what was written of the file is removed.
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

/// The same in a directory that exists, but for the name: it lasts once the caller has synced the directory. Whoever
/// writes several files syncs it once behind them all.
///
/// # Errors
/// The disk's, or those of `write`; what was written of the file is removed.
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
        // The first error is the one to tell. A leftover is removed at the next start.
        drop(disk.remove(path));
    }
    written
}

/// Gathers small writes into large ones. What was written lasts once [`FileWriter::finish`] returns.
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

    /// Writes what is left and syncs; answers the file's length in bytes.
    ///
    /// # Errors
    /// The disk's.
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
