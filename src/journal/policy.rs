//! `wal.sync = "interval"` and `"never"`: a disk whose syncs are put off. An operator who asks for it trades the last
//! moments before a power cut for speed; a killed process still loses nothing, because the writes were made.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wal::disk::{Bytes, Disk, DiskFile};

/// Passes all on, but syncs a file at most once an interval.
pub struct RelaxedDisk {
    disk: Arc<dyn Disk>,
    interval: Option<Duration>,
}

impl RelaxedDisk {
    /// `None` never syncs a file's bytes.
    pub fn new(disk: Arc<dyn Disk>, interval: Option<Duration>) -> Self {
        RelaxedDisk { disk, interval }
    }

    fn relaxed(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(RelaxedFile {
            file,
            interval: self.interval,
            synced_at: Instant::now(),
        })
    }
}

impl Disk for RelaxedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
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

struct RelaxedFile {
    file: Box<dyn DiskFile>,
    interval: Option<Duration>,
    synced_at: Instant,
}

impl DiskFile for RelaxedFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(offset, bytes)
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buffer)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        if self
            .interval
            .is_some_and(|interval| self.synced_at.elapsed() >= interval)
        {
            self.file.sync_data()?;
            self.synced_at = Instant::now();
        }
        Ok(())
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
