//! `wal.sync = "interval"` and `"never"`: a disk whose syncs of the log are put off. An operator who asks for it trades
//! the last moments before a power cut for speed; a killed process still loses nothing, because the writes were made.
//!
//! Only the last moments: a file is whole on the disk before the next one is begun, and the log is before anything that
//! says to have covered a part of it ([`RelaxedDisk::flush`]). So the log never ends before what a checkpoint has
//! covered. But several of its frames may be unsynced at once: a disk that wrote them out of order leaves what cannot
//! be told from damage, and then the start is refused until the log is repaired.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use wal::disk::{Bytes, Disk, DiskFile};

/// Passes all on, but syncs a file at most once an interval.
pub struct RelaxedDisk {
    disk: Arc<dyn Disk>,
    interval: Option<Duration>,
    /// The file last opened for writing.
    active: Mutex<Weak<Mutex<Relaxed>>>,
}

impl RelaxedDisk {
    /// `None` never syncs a file's bytes by itself.
    pub fn new(disk: Arc<dyn Disk>, interval: Option<Duration>) -> Self {
        RelaxedDisk {
            disk,
            interval,
            active: Mutex::default(),
        }
    }

    /// Makes durable what was put off.
    ///
    /// # Errors
    /// The disk's; the log is told with its next sync, too.
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

/// An open file and what is put off of it.
struct Relaxed {
    file: Box<dyn DiskFile>,
    dirty: bool,
    /// `None` before the first sync, which is of a header and is made at once.
    synced_at: Option<Instant>,
    /// A sync that failed behind the log's back.
    failed: Option<io::ErrorKind>,
}

impl Relaxed {
    fn flush(&mut self) -> io::Result<()> {
        if let Some(failed) = self.failed {
            return Err(failed.into());
        }
        if self.dirty {
            // What a failed sync should have written is lost; asking again would hide it.
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
