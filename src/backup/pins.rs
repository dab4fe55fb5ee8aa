//! Files of a data directory that are kept open. An open file keeps its bytes even if a checkpoint replaces, trims or
//! merges it meanwhile, so a set of open files can be copied at any pace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Bytes, Disk, DiskFile};
use parking_lot::Mutex;

/// A read-only disk that consists of the files opened through it.
pub(crate) struct Pins {
    disk: Arc<dyn Disk>,
    files: Mutex<BTreeMap<PathBuf, Pin>>,
}

/// An open file, and its valid length.
#[derive(Clone)]
pub(crate) struct Pin {
    file: Arc<dyn DiskFile>,
    pub(super) bytes: u64,
    /// Only for a file that never changes.
    map: Option<Arc<dyn Bytes>>,
}

impl Pins {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            files: Mutex::default(),
        }
    }

    /// Opens a file unless it is open already.
    ///
    /// # Errors
    /// A disk error.
    pub(super) fn pin(&self, path: &Path) -> io::Result<Pin> {
        let mut files = self.files.lock();
        if let Some(pin) = files.get(path) {
            return Ok(pin.clone());
        }
        let file: Arc<dyn DiskFile> = Arc::from(self.disk.open_read(path)?);
        let bytes = file.len()?;
        let pin = Pin {
            file,
            bytes,
            map: None,
        };
        files.insert(path.to_owned(), pin.clone());
        Ok(pin)
    }

    /// Opens a file that never changes. It is mapped, so it can be read however large it is, and even after it was
    /// removed.
    ///
    /// # Errors
    /// A disk error.
    pub(crate) fn pin_sealed(&self, path: &Path) -> io::Result<()> {
        self.pin(path)?;
        let map = self.disk.map(path)?;
        if let Some(pin) = self.files.lock().get_mut(path) {
            pin.map = Some(map);
        }
        Ok(())
    }

    /// Limits a file to this length; `None` means its present length.
    ///
    /// # Errors
    /// A disk error.
    pub(super) fn measure(&self, path: &Path, bytes: Option<u64>) -> io::Result<()> {
        if let Some(pin) = self.files.lock().get_mut(path) {
            pin.bytes = bytes.map_or_else(|| pin.file.len(), Ok)?;
        }
        Ok(())
    }

    pub(super) fn forget(&self, path: &Path) {
        self.files.lock().remove(path);
    }

    /// Sorted by path.
    pub(super) fn files(&self) -> BTreeMap<PathBuf, Pin> {
        self.files.lock().clone()
    }
}

impl DiskFile for Pin {
    fn write_all_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if offset + buffer.len() as u64 > self.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(offset, buffer)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn truncate(&mut self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }
}

impl Disk for Pins {
    fn create(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.pin(path)?))
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let pin = self.pin(path)?;
        let mut bytes = vec![0; usize::try_from(pin.bytes).map_err(io::Error::other)?];
        pin.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    }
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        match self.pin(path)?.map {
            Some(map) => Ok(map),
            None => Ok(Arc::new(self.read(path)?)),
        }
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let files = self.files.lock();
        let inside = files.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside
            .filter_map(|path| path.file_name())
            .map(OsString::from)
            .collect())
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.lock().contains_key(path))
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(self.pin(path)?.bytes)
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
