//! Large files that are written once, synced, and then mapped: segments, and runs of the ledger. Each kind has a
//! directory, in which the files are named by number. A file is in use when a manifest names it; the caller writes the
//! manifest afterwards. Files that no manifest names are leftovers and are removed. Numbers are never reused, so that
//! an object store would need no more than a prefix for the shard and the epoch.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Bytes, Disk, DiskFile, list_existing};

/// A directory of sealed files of one kind.
#[derive(Clone, Debug)]
pub struct SealedDir {
    path: PathBuf,
    suffix: &'static str,
}

/// The contents of the directory, by kind of name.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Numbers of the files, in ascending order.
    pub ids: Vec<u64>,
    /// Names that are not those of such files.
    pub others: Vec<OsString>,
}

impl SealedDir {
    /// The directory at `path` with the files whose names end in `suffix`.
    pub fn new(path: PathBuf, suffix: &'static str) -> Self {
        Self { path, suffix }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file_path(&self, id: u64) -> PathBuf {
        self.path.join(format!("{id:012}{}", self.suffix))
    }

    /// Lists the directory; empty if it does not exist.
    ///
    /// # Errors
    /// A disk error.
    pub fn list(&self, disk: &dyn Disk) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for name in list_existing(disk, &self.path)? {
            let id = name.to_str().and_then(|name| name.strip_suffix(self.suffix));
            match id.and_then(|id| id.parse().ok()) {
                Some(id) => listing.ids.push(id),
                None => listing.others.push(name),
            }
        }
        listing.ids.sort_unstable();
        Ok(listing)
    }
}

/// The files that exist in a directory. Owned by the only writer of the directory.
pub struct SealedFiles {
    pub disk: Arc<dyn Disk>,
    pub dir: SealedDir,
    present: BTreeSet<u64>,
    next: u64,
}

impl SealedFiles {
    /// Lists the directory. A new file gets at least the number `next`, and one above those of the files that are
    /// listed or `named` by the manifest.
    ///
    /// # Errors
    /// A disk error.
    pub fn list(disk: Arc<dyn Disk>, dir: SealedDir, named: &[u64], next: u64) -> io::Result<Self> {
        let listed = dir.list(&*disk)?.ids;
        let present: BTreeSet<u64> = listed.into_iter().chain(named.iter().copied()).collect();
        Ok(Self {
            disk,
            dir,
            next: next.max(present.last().map_or(1, |last| last + 1)),
            present,
        })
    }

    /// Allocates the number of a new file.
    pub fn take_id(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The number that the next new file will get.
    pub fn next_id(&self) -> u64 {
        self.next
    }

    /// Adds a file that was written.
    pub fn add(&mut self, id: u64) {
        self.present.insert(id);
    }

    /// Removes the files that are not `used`: leftovers of a crash, and files that were replaced. A failed removal is
    /// only logged and retried by the next call.
    pub fn retain(&mut self, used: impl Fn(u64) -> bool) {
        let (disk, dir) = (&self.disk, &self.dir);
        self.present.retain(|id| {
            if used(*id) {
                return true;
            }
            let path = dir.file_path(*id);
            // Readers may have the file mapped: its bytes remain until they unmap it.
            match disk.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "an obsolete file could not be removed; it is retried later");
                    true
                }
                _ => false,
            }
        });
    }
}

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
