//! The interface through which the program accesses its files: logs, segments, manifests, snapshots.
//!
//! It is small so that tests can replace it by a disk that loses power, and benchmarks by one that counts or delays. It
//! promises no more than POSIX does: written bytes are durable after [`DiskFile::sync_data`], names after
//! [`Disk::sync_dir`]. Nothing here retries, buffers or locks.

#![warn(missing_docs)]

mod fault;
mod map;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod std;

use ::std::ffi::OsString;
use ::std::io;
use ::std::path::{Path, PathBuf};
use ::std::sync::Arc;

pub use self::std::StdDisk;

/// The file-system operations that the log and the engine need. Shared between threads.
pub trait Disk: Send + Sync + 'static {
    /// Creates a file and opens it for reading and writing. Fails with `AlreadyExists` if the name is taken. The name
    /// is durable after [`Disk::sync_dir`] of its directory.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading only.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Reads a whole file. For small files only (manifests, snapshots).
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// A read-only view of an immutable file: one that is synced and will never be written, truncated or replaced in
    /// place again. It may be removed while it is mapped.
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>>;

    /// Renames a file, replacing any file of that name. Durable after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Durable after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with its content. Durable after [`Disk::sync_dir`] of its parent; until then a crash may
    /// leave any part of it.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Creates a directory and its missing parents durably: their names are synced when this returns.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Names of the files and directories in a directory, sorted by their bytes.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Length of a file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Makes the names in a directory durable: files created, renamed and removed in it.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Dropping it closes it without a sync.
pub trait DiskFile: Send + Sync {
    /// Writes all bytes at the offset and extends the file if needed. After an error any part of the bytes may have
    /// been written.
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills the buffer from the offset, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Makes the file's bytes and length durable (`fdatasync`). After an error the bytes written since the last sync
    /// must be considered lost: a second call may succeed without having written them.
    fn sync_data(&mut self) -> io::Result<()>;

    /// Truncates the file to the length, or extends it with zeros.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Length of the file in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Content of an immutable file.
pub trait Bytes: AsRef<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + Send + Sync> Bytes for T {}

/// Suffix of the file to which [`replace_file`] writes the new content. Files with this suffix are left over from a
/// crash, and the owner of the directory may remove them.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// Replaces or creates a small file atomically: after a crash the path has the complete old content or the complete new
/// one; after `Ok`, the new one. All manifests and snapshots are written this way.
///
/// On an error before the rename the old file is unchanged. If the last directory sync fails, a crash may leave either.
pub fn replace_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY_SUFFIX);
    let temporary = PathBuf::from(name);
    match disk.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_whole(disk, &temporary, bytes).and_then(|()| disk.rename(&temporary, path));
    if let Err(error) = written {
        // The first error is returned; a file left over under this name is tolerated everywhere.
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    disk.sync_dir(parent(path))
}

/// Lists a directory, sorted by name; empty if it does not exist.
///
/// # Errors
/// Those of [`Disk::list`], except for a missing directory.
pub fn list_existing(disk: &dyn Disk, dir: &Path) -> io::Result<Vec<OsString>> {
    match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

fn write_whole(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = disk.create(path)?;
    file.write_all_at(0, bytes)?;
    file.sync_data()
}

/// Whether an error means that the disk, or its quota, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Whether an error means that the process, or the machine, has reached its limit of open files.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The directory of a path; `.` for a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
