//! A disk that calls a function before each operation that alters it: every possible moment of a power cut.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use disk::sim::SimDisk;
use disk::{Bytes, Disk, DiskFile};

type Before = Arc<dyn Fn(&SimDisk) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct HookedDisk {
    disk: SimDisk,
    before: Before,
}

impl HookedDisk {
    pub(crate) fn new(disk: SimDisk, before: impl Fn(&SimDisk) + Send + Sync + 'static) -> Self {
        HookedDisk {
            disk,
            before: Arc::new(before),
        }
    }

    fn disk_after_hook(&self) -> &SimDisk {
        (self.before)(&self.disk);
        &self.disk
    }

    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(HookedFile {
            hooked_disk: self.clone(),
            file,
        })
    }
}

impl Disk for HookedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.disk_after_hook().create(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.disk.open(path)?))
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
        self.disk_after_hook().rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk_after_hook().remove(path)
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk_after_hook().remove_dir_all(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk_after_hook().create_dir_all(dir)
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
        self.disk_after_hook().sync_dir(dir)
    }
}

struct HookedFile {
    hooked_disk: HookedDisk,
    file: Box<dyn DiskFile>,
}

impl DiskFile for HookedFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.hooked_disk.disk_after_hook();
        self.file.write_all_at(offset, bytes)
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buffer)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        self.hooked_disk.disk_after_hook();
        self.file.sync_data()
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.hooked_disk.disk_after_hook();
        self.file.truncate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
