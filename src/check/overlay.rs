//! A disk that reads from another one and never changes it: writes, renames and removals are discarded. Sufficient for
//! a recovery, which reads before it writes and never reads what it has written.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use disk::{Bytes, Disk, DiskFile};

pub(super) struct Overlay(pub(super) Arc<dyn Disk>);

impl Disk for Overlay {
    fn create(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(Untouched(None)))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(Untouched(Some(self.0.open_read(path)?))))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.open_read(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        self.0.map(path)
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn remove_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.0.len(path)
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// A file to read from; `None` for a new one.
struct Untouched(Option<Box<dyn DiskFile>>);

impl DiskFile for Untouched {
    fn write_all_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match &self.0 {
            Some(file) => file.read_exact_at(offset, buffer),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    fn sync_data(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.0.as_ref().map_or(Ok(0), |file| file.len())
    }
}
