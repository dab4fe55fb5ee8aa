//! The port through which everything of ours reaches files: logs, segments, manifests, snapshots.
//!
//! It is narrow so that a test can replace it by a disk that loses power, and a bench by one that counts
//! or waits. It promises no more than POSIX does: written bytes last after [`DiskFile::sync_data`], names
//! last after [`Disk::sync_dir`]. Nothing here retries, buffers or locks.

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

/// A file system, as narrow as the log and the engine need it. Shared between threads.
pub trait Disk: Send + Sync + 'static {
    /// Makes a new file, open for reading and writing. Fails with `AlreadyExists` when the name is taken.
    /// The name lasts after [`Disk::sync_dir`] of its directory.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file for reading only.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// The whole file. For small files only (manifests, snapshots).
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// A read-only view of a sealed file: one that is synced and will never be written, truncated or
    /// replaced in place again. Removing it while mapped is allowed.
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>>;

    /// Gives a file another name, replacing what had that name. Lasts after [`Disk::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Lasts after [`Disk::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and all that is in it. Lasts after [`Disk::sync_dir`] of its parent; until then
    /// a crash may leave any part of it.
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Makes a directory and its missing parents, durably: it returns after their names are synced.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Names of the files and directories in a directory, sorted by their bytes.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Whether a file or directory of that name is there.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Length of a file in bytes.
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Makes the names in a directory last: files created, renamed and removed in it.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Dropping it closes it and syncs nothing.
pub trait DiskFile: Send + Sync {
    /// Writes all bytes at the offset, growing the file when needed. After an error any part of the bytes
    /// may have been written.
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills the buffer from the offset, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Makes the file's bytes and length last (`fdatasync`). After an error the bytes written since the
    /// last sync must be taken as lost: a second call may succeed without having written them.
    fn sync_data(&mut self) -> io::Result<()>;

    /// Cuts or grows (with zeros) the file to the length.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Length of the file in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Bytes of a sealed file.
pub trait Bytes: AsRef<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + Send + Sync> Bytes for T {}

/// What [`replace_file`] adds to a file's name while the new content is not yet whole. Files with this
/// ending are leftovers of a crash and may be removed by whoever owns the directory.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// Replaces (or makes) a small file as one step: after a crash the path holds the whole old content or the
/// whole new one, and after `Ok` the new one. The one way a manifest or snapshot is written.
///
/// On an error before the rename the old file stands; on an error of the last directory sync either may
/// be found after a crash.
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
        // The first error is the one to tell; a leftover of this name is tolerated everywhere.
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    disk.sync_dir(parent(path))
}

/// What is in a directory, sorted; nothing when it does not exist.
///
/// # Errors
/// Those of [`Disk::list`], but for a missing directory.
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

/// Whether an error says that the disk, or the quota on it, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Whether an error says that the process, or the machine, has as many files open as it may: none was opened.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The directory a path lies in; `.` for a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
