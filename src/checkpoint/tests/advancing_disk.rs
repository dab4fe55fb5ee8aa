//! A disk whose state advances at every read: the states of a trace, recorded before each operation that altered the
//! real disk, so that each operation of a reader sees a later state.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::sim::SimDisk;
use disk::{Bytes, Disk, DiskFile};
use fastrand::Rng;
use parking_lot::Mutex;

#[derive(Clone)]
pub(super) struct AdvancingDisk {
    moments: Arc<Vec<SimDisk>>,
    /// The current state, and a generator for the speed of time.
    now: Arc<Mutex<(usize, Rng)>>,
}

impl AdvancingDisk {
    /// Starts at the given state.
    pub(super) fn new(moments: Arc<Vec<SimDisk>>, at: usize, seed: u64) -> Self {
        AdvancingDisk {
            moments,
            now: Arc::new(Mutex::new((at, Rng::with_seed(seed)))),
        }
    }

    /// Advances the time: mostly a little, sometimes by several checkpoints.
    fn advance(&self) -> usize {
        let (now, rng) = &mut *self.now.lock();
        let steps = match rng.u8(0..12) {
            0..4 => 0,
            4..11 => rng.usize(0..4),
            _ => rng.usize(0..120),
        };
        *now = (*now + steps).min(self.moments.len() - 1);
        *now
    }

    fn disk(&self) -> &SimDisk {
        &self.moments[self.advance()]
    }
}

impl Disk for AdvancingDisk {
    fn create(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open(&self, _: &Path) -> io::Result<Box<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let opened = self.advance();
        let file = self.moments[opened].open_read(path)?;
        if path.extension().is_none_or(|extension| extension != "log") {
            // No file of this name is written again.
            return Ok(file);
        }
        Ok(Box::new(GrowingLogFile {
            advancing_disk: self.clone(),
            path: path.to_owned(),
        }))
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.disk().read(path)
    }
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        self.disk().map(path)
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
        self.disk().list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk().exists(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk().len(path)
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A log file that is still written while it is open, and keeps its bytes when it is removed.
struct GrowingLogFile {
    advancing_disk: AdvancingDisk,
    path: PathBuf,
}

impl GrowingLogFile {
    fn bytes(&self) -> Vec<u8> {
        let now = self.advancing_disk.advance();
        let mut earlier = self.advancing_disk.moments[..=now].iter().rev();
        earlier
            .find_map(|disk| disk.read(&self.path).ok())
            .unwrap_or_default()
    }
}

impl DiskFile for GrowingLogFile {
    fn write_all_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Reads in two parts, between which time passes.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let half = buffer.len() / 2;
        let (first, second) = buffer.split_at_mut(half);
        for (start, piece) in [(offset as usize, first), (offset as usize + half, second)] {
            let bytes = self.bytes();
            let found = bytes.get(start..start + piece.len());
            piece.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        }
        Ok(())
    }
    fn sync_data(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn truncate(&mut self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }
}
