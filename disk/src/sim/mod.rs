//! An in-memory disk that behaves as badly as a real one may: it loses what was not synced, tears writes, fills up,
//! fails to sync and corrupts data. For tests of this crate and of the server; never part of a release.
//!
//! All randomness comes from one seed, so a failing run can be repeated. Operations that modify the disk are numbered
//! from 1, so that a test can cut the power at each of them.

mod file;
mod image;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::file::SimFile;
use self::image::{Change, FileId, Image, Random};
use super::{Bytes, Disk, DiskFile, parent};

/// Which unsynced operations a crash keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// All of them: the process was killed, the machine kept running.
    All,
    /// None of them.
    None,
    /// The first few, in order; the last write among them in part.
    Prefix,
    /// Any of them, independently for each sector of a write and each name; a file may have its new length without the
    /// new bytes, which then read as zeros.
    RandomSubset,
}

/// How a power loss behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crash {
    /// Which unsynced operations are kept.
    pub keep: Keep,
    /// Whether a sector of 512 bytes may itself be written partially.
    pub torn: bool,
}

impl Crash {
    /// Every kind of crash.
    pub const KINDS: [Crash; 6] = [
        Crash::new(Keep::All, false),
        Crash::new(Keep::None, false),
        Crash::new(Keep::Prefix, false),
        Crash::new(Keep::Prefix, true),
        Crash::new(Keep::RandomSubset, false),
        Crash::new(Keep::RandomSubset, true),
    ];

    const fn new(keep: Keep, torn: bool) -> Crash {
        Crash { keep, torn }
    }
}

/// The operations that modify a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// [`Disk::create`].
    Create,
    /// [`DiskFile::write_all_at`].
    Write,
    /// [`DiskFile::truncate`].
    Truncate,
    /// [`DiskFile::sync_data`] and [`Disk::sync_dir`], counted together.
    Sync,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove`] and [`Disk::remove_dir_all`].
    Remove,
    /// [`Disk::create_dir_all`].
    CreateDir,
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `EIO`. A failed sync of a file loses what it should have written, as on Linux: the bytes can be read until the
    /// power loss, but later syncs do not write them. A failed sync of a directory loses nothing by itself. Other
    /// operations have no effect.
    Io,
    /// `ENOSPC`. A write stores its first bytes; other operations behave as for [`Fault::Io`].
    Full {
        /// Bytes of the write that are stored.
        bytes: u64,
    },
    /// `EMFILE`: nothing was opened, and the operation has no effect.
    Descriptors,
}

/// An in-memory disk. Clones share the same state.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    /// What running processes see.
    live: Image,
    /// What certainly survives a power loss.
    durable: Image,
    /// The changes from `durable` to `live`, in order, without those that failed syncs have lost.
    pending: Vec<Change>,
    random: Random,
    next_file: FileId,
    operations: u64,
    counts: BTreeMap<Operation, u64>,
    stop_at: Option<u64>,
    faults: Vec<(Operation, u64, Fault)>,
    budget_bytes: Option<u64>,
}

impl SimDisk {
    /// An empty disk whose randomness comes from the seed.
    pub fn new(seed: u64) -> SimDisk {
        SimDisk::found(Image::default(), Random::new(seed))
    }

    fn found(image: Image, random: Random) -> SimDisk {
        let state = State {
            live: image.clone(),
            next_file: image.next_file(),
            durable: image,
            pending: Vec::new(),
            random,
            operations: 0,
            counts: BTreeMap::new(),
            stop_at: None,
            faults: Vec::new(),
            budget_bytes: None,
        };
        SimDisk {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The disk as found after a power loss at this moment, without injected faults. This disk is not modified, except
    /// for its random state, so one moment can be crashed in many ways.
    pub fn crash(&self, crash: Crash) -> SimDisk {
        let mut state = self.state();
        let mut random = state.random.fork();
        let image = image::crashed(&state.durable, &state.pending, crash, &mut random);
        SimDisk::found(image, random)
    }

    /// Number of modifying operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Number of operations of one kind so far.
    pub fn count(&self, operation: Operation) -> u64 {
        self.state().counts.get(&operation).copied().unwrap_or(0)
    }

    /// Makes everything fail from the modifying operation with that number on, which itself has no effect.
    pub fn stop_at(&self, operation: u64) {
        self.state().stop_at = Some(operation);
    }

    /// Makes the `nth` operation of its kind from now on (1 is the next) fail, once.
    pub fn fail(&self, operation: Operation, nth: u64, fault: Fault) {
        let mut state = self.state();
        let at = state.counts.get(&operation).copied().unwrap_or(0) + nth;
        state.faults.push((operation, at, fault));
    }

    /// Makes writes fail with `ENOSPC` when all files together would exceed the budget; what still fits is written.
    /// `None` is unlimited.
    pub fn set_budget_bytes(&self, budget_bytes: Option<u64>) {
        self.state().budget_bytes = budget_bytes;
    }

    /// Total size of all files in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.state().live.used_bytes()
    }

    /// Flips one bit of a file, durably: simulated bit rot.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) {
        self.edit(path, |bytes| bytes[offset as usize] ^= 1 << bit);
    }

    /// Modifies a file directly and durably, bypassing the file interface.
    pub fn edit(&self, path: &Path, edit: impl Fn(&mut Vec<u8>)) {
        let mut state = self.state();
        let State { live, durable, .. } = &mut *state;
        for image in [live, durable] {
            if let Some(bytes) = image.file_mut(path) {
                edit(bytes);
            }
        }
    }

    /// Stores a file, durably, and creates its directories.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let id = state.new_file();
        let State { live, durable, .. } = &mut *state;
        for image in [live, durable] {
            image.make_dir(parent(path));
            image.put(path, id, bytes);
        }
    }

    /// All files, as running processes see them.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.state().live.contents()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a test must not cause a second one that hides it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, id: FileId, path: &Path, writable: bool) -> Box<dyn DiskFile> {
        Box::new(SimFile {
            disk: self.clone(),
            id,
            path: path.to_owned(),
            writable,
        })
    }
}

impl State {
    /// Counts a modifying operation and returns the fault to inject, if any.
    fn operate(&mut self, operation: Operation) -> io::Result<Option<Fault>> {
        self.alive()?;
        self.operations += 1;
        self.alive()?;
        let count = self.counts.entry(operation).or_insert(0);
        *count += 1;
        let due = |(sort, at, _): &(Operation, u64, Fault)| *sort == operation && *at == *count;
        let fault = self
            .faults
            .iter()
            .position(due)
            .map(|index| self.faults.remove(index).2);
        Ok(fault)
    }

    /// Like [`State::operate`], for operations that have no effect when they fail.
    fn operate_whole(&mut self, operation: Operation) -> io::Result<()> {
        match self.operate(operation)? {
            None => Ok(()),
            Some(fault) => Err(fault.error()),
        }
    }

    fn alive(&self) -> io::Result<()> {
        match self.stop_at {
            Some(stop_at) if self.operations >= stop_at => {
                Err(io::Error::other("the simulated power is off"))
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: Change) {
        self.live.apply(&change);
        self.pending.push(change);
    }

    fn new_file(&mut self) -> FileId {
        self.next_file += 1;
        self.next_file
    }

    fn find_file(&self, path: &Path) -> io::Result<FileId> {
        self.alive()?;
        self.live.id(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn find_dir(&self, dir: &Path) -> io::Result<()> {
        match self.live.is_dir(dir) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Makes the pending changes durable that the filter selects.
    fn commit(&mut self, picked: impl Fn(&Change) -> bool) {
        let State { pending, durable, .. } = self;
        pending.retain(|change| {
            let commits = picked(change);
            if commits {
                durable.apply(change);
            }
            !commits
        });
    }
}

impl Fault {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Fault::Io => libc::EIO,
            Fault::Full { .. } => libc::ENOSPC,
            Fault::Descriptors => libc::EMFILE,
        })
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.operate_whole(Operation::Create)?;
        if state.live.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.find_dir(parent(path))?;
        let id = state.new_file();
        state.change(Change::Create {
            path: path.to_owned(),
            id,
        });
        drop(state);
        Ok(self.handle(id, path, true))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let id = self.state().find_file(path)?;
        Ok(self.handle(id, path, true))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let id = self.state().find_file(path)?;
        Ok(self.handle(id, path, false))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        let id = state.find_file(path)?;
        Ok(state.live.bytes(id).to_vec())
    }

    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        Ok(Arc::new(self.read(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::Rename)?;
        let id = state.find_file(from)?;
        state.change(Change::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
            id,
        });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::Remove)?;
        state.find_file(path)?;
        state.change(Change::Remove {
            path: path.to_owned(),
        });
        Ok(())
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::Remove)?;
        state.find_dir(dir)?;
        // Deepest first, each by itself: a crash may remove any part of them.
        for path in state.live.below(dir) {
            state.change(Change::Remove { path });
        }
        state.change(Change::Remove { path: dir.to_owned() });
        Ok(())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::CreateDir)?;
        let State { live, durable, .. } = &mut *state;
        live.make_dir(dir);
        durable.make_dir(dir);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let state = self.state();
        state.alive()?;
        state.find_dir(dir)?;
        Ok(state.live.list(dir))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.alive()?;
        Ok(state.live.exists(path))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        let id = state.find_file(path)?;
        Ok(state.live.bytes(id).len() as u64)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::Sync)?;
        state.find_dir(dir)?;
        let removed: Vec<PathBuf> = state
            .pending
            .iter()
            .filter_map(|change| change.removed_in(dir))
            .collect();
        // When a directory is removed durably, so is what was in it.
        state.commit(|change| match change.name() {
            Some(path) => parent(path) == dir || removed.iter().any(|gone| path.starts_with(gone)),
            None => false,
        });
        Ok(())
    }
}
