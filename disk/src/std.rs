//! The real disk: `std::fs` and a memory map, nothing else. Used by the server; tests use the simulated disk.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Bytes, Disk, DiskFile, fault, map, parent};

/// The operating system's file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct StdDisk;

/// Syncs of files and directories since the process started.
static SYNCS: AtomicU64 = AtomicU64::new(0);

impl StdDisk {
    /// Syncs of files and directories since the process started, including those that failed.
    pub fn syncs() -> u64 {
        SYNCS.load(Ordering::Relaxed)
    }

    /// Pages of mapped files that the disk could not read since the process started. They read as zeros.
    pub fn unreadable_pages() -> u64 {
        fault::unreadable_pages()
    }
}

impl Disk for StdDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            // Files contain secrets and points: only the owner may read them.
            .mode(0o600)
            .open(path)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            // Mapping an empty file is an error on Linux.
            return Ok(Arc::new([0_u8; 0]));
        }
        Ok(Arc::new(map::map(&file)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir_all(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            // A kill between `mkdir` and the sync during an earlier start may have left the name unsynced. If we may
            // not read the parent, it is not ours, and its owner is responsible for syncing it.
            return match self.sync_dir(parent(dir)) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                other => other,
            };
        }
        self.create_dir_all(parent(dir))?;
        match fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !dir.is_dir() => Err(error),
            _ => self.sync_dir(parent(dir)),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let mut names = fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        SYNCS.fetch_add(1, Ordering::Relaxed);
        File::open(dir)?.sync_all()
    }
}

impl DiskFile for File {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        SYNCS.fetch_add(1, Ordering::Relaxed);
        File::sync_data(self)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn new_files_are_accessible_to_the_owner_only() {
        let path = std::env::temp_dir().join(format!("tidewatch-mode-{}", std::process::id()));
        drop(StdDisk.create(&path).unwrap());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        fs::remove_file(&path).unwrap();
        assert_eq!(mode & 0o777, 0o600);
    }
}
