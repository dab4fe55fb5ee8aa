//! `wal.sync = "interval"` and `"never"`: a disk that delays the syncs of the log. Operators who choose it trade the
//! last moments before a power loss for speed. A killed process loses nothing, because the writes were made.
//!
//! The loss is bounded: a file is synced before the next one is created, and the log is synced before anything records
//! that it covers a part of it ([`RelaxedDisk::flush`]). So the log never ends before what a checkpoint has covered.
//! However, several frames may be unsynced at once. A disk that writes them out of order can leave a state that looks
//! like damage, and then the start is refused until the log is repaired.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use disk::{Bytes, Disk, DiskFile};
use parking_lot::Mutex;

/// Forwards all operations, but syncs a file at most once per interval.
pub struct RelaxedDisk {
    disk: Arc<dyn Disk>,
    interval: Option<Duration>,
    /// The file that was last opened for writing.
    active: Mutex<Weak<Mutex<Relaxed>>>,
}

impl RelaxedDisk {
    /// With `None`, a file is synced only after its header is written, and by [`RelaxedDisk::flush`].
    pub fn new(disk: Arc<dyn Disk>, interval: Option<Duration>) -> Self {
        RelaxedDisk {
            disk,
            interval,
            active: Mutex::default(),
        }
    }

    /// Performs the delayed sync.
    ///
    /// # Errors
    /// I/O errors; the log also receives the error with its next sync.
    pub fn flush(&self) -> io::Result<()> {
        let active = self.active.lock().upgrade();
        active.map_or(Ok(()), |active| active.lock().flush())
    }

    fn relaxed(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let relaxed = Relaxed {
            file,
            dirty: false,
            synced_at: None,
            failed: None,
        };
        let relaxed = Arc::new(Mutex::new(relaxed));
        *self.active.lock() = Arc::downgrade(&relaxed);
        Box::new(RelaxedFile {
            relaxed,
            interval: self.interval,
        })
    }
}

impl Disk for RelaxedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.flush()?;
        Ok(self.relaxed(self.disk.create(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.relaxed(self.disk.open(path)?))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open_read(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.disk.read(path)
    }
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        self.disk.map(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.remove_dir_all(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.disk.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk.len(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
}

/// An open file and its delayed sync.
struct Relaxed {
    file: Box<dyn DiskFile>,
    dirty: bool,
    /// `None` before the first sync, which is that of the header and is never delayed.
    synced_at: Option<Instant>,
    /// A delayed sync failed, which the log does not know yet.
    failed: Option<io::ErrorKind>,
}

impl Relaxed {
    fn flush(&mut self) -> io::Result<()> {
        if let Some(failed) = self.failed {
            return Err(failed.into());
        }
        if self.dirty {
            // A failed sync has lost its data; a second one could succeed and hide that.
            self.file
                .sync_data()
                .inspect_err(|error| self.failed = Some(error.kind()))?;
            self.dirty = false;
        }
        self.synced_at = Some(Instant::now());
        Ok(())
    }
}

struct RelaxedFile {
    relaxed: Arc<Mutex<Relaxed>>,
    interval: Option<Duration>,
}

impl DiskFile for RelaxedFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut relaxed = self.relaxed.lock();
        relaxed.dirty = true;
        relaxed.file.write_all_at(offset, bytes)
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.relaxed.lock().file.read_exact_at(offset, buffer)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        let mut relaxed = self.relaxed.lock();
        let due = relaxed
            .synced_at
            .is_none_or(|at| self.interval.is_some_and(|interval| at.elapsed() >= interval));
        match relaxed.failed {
            Some(failed) => Err(failed.into()),
            None if due => relaxed.flush(),
            None => Ok(()),
        }
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut relaxed = self.relaxed.lock();
        relaxed.dirty = true;
        relaxed.file.truncate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.relaxed.lock().file.len()
    }
}
