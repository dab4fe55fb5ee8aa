//! A disk in memory that behaves as badly as a real one may: it loses what was not synced, tears writes,
//! fills up, fails to sync and rots. For tests of this crate and of the server; never part of a release.
//!
//! Everything random comes from one seed, so that a failing run can be repeated. Operations that alter the
//! disk are numbered from 1, so that a test can cut the power at every one of them.

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

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What may be left of the operations that no sync has covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// All of them: the process was killed, the machine went on.
    All,
    /// None of them.
    None,
    /// The first few, in order; the last write among them in part.
    Prefix,
    /// Any of them, each sector of a write and each name by itself; a file may have got its new length
    /// without the bytes, which are then zero.
    RandomSubset,
}

/// How the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crash {
    /// What is left.
    pub keep: Keep,
    /// Whether a sector of 512 bytes may itself be written in part.
    pub torn: bool,
}

impl Crash {
    /// Every kind of crash.
    pub const KINDS: [Crash; 6] = [
        Crash {
            keep: Keep::All,
            torn: false,
        },
        Crash {
            keep: Keep::None,
            torn: false,
        },
        Crash {
            keep: Keep::Prefix,
            torn: false,
        },
        Crash {
            keep: Keep::Prefix,
            torn: true,
        },
        Crash {
            keep: Keep::RandomSubset,
            torn: false,
        },
        Crash {
            keep: Keep::RandomSubset,
            torn: true,
        },
    ];
}

/// The operations that alter a disk.
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
    /// `EIO`. A failed sync of a file loses what it should have written, as on Linux: the bytes can still
    /// be read until the power goes, but later syncs do not write them. A failed sync of a directory loses
    /// nothing by itself. Other operations do nothing.
    Io,
    /// `ENOSPC`. A write does its first bytes; other operations do what they do at [`Fault::Io`].
    Full {
        /// Bytes of the write that get through.
        bytes: u64,
    },
    /// `EMFILE`: nothing was opened, and nothing done.
    Descriptors,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    /// What the processes of the machine see.
    live: Image,
    /// What is certain to be found after the power went.
    durable: Image,
    /// What leads from the one to the other, in order, but for what failed syncs have lost.
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
    /// An empty disk on which all chance comes from the seed.
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

    /// The disk as a machine finds it after the power went now, without faults. This disk is not altered
    /// (but for its chance), so that one moment can be crashed in many ways.
    pub fn crash(&self, crash: Crash) -> SimDisk {
        let mut state = self.state();
        let mut random = state.random.fork();
        let image = image::crashed(&state.durable, &state.pending, crash, &mut random);
        SimDisk::found(image, random)
    }

    /// Altering operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Operations of one sort so far.
    pub fn count(&self, operation: Operation) -> u64 {
        self.state().counts.get(&operation).copied().unwrap_or(0)
    }

    /// Has everything fail from the altering operation of that number on, which is not done.
    pub fn stop_at(&self, operation: u64) {
        self.state().stop_at = Some(operation);
    }

    /// Has the `nth` operation of its sort from now on (1 is the next) fail, once.
    pub fn fail(&self, operation: Operation, nth: u64, fault: Fault) {
        let mut state = self.state();
        let at = state.counts.get(&operation).copied().unwrap_or(0) + nth;
        state.faults.push((operation, at, fault));
    }

    /// Has writes fail with `ENOSPC` when all files together would be larger; what still fits is written.
    /// `None` is a disk without end.
    pub fn set_budget_bytes(&self, budget_bytes: Option<u64>) {
        self.state().budget_bytes = budget_bytes;
    }

    /// Bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        self.state().live.used_bytes()
    }

    /// Turns one bit of a file over, durably: the disk rots.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) {
        self.edit(path, |bytes| bytes[offset as usize] ^= 1 << bit);
    }

    /// Alters a file behind everyone's back, durably.
    pub fn edit(&self, path: &Path, edit: impl Fn(&mut Vec<u8>)) {
        let mut state = self.state();
        let State { live, durable, .. } = &mut *state;
        for image in [live, durable] {
            if let Some(bytes) = image.file_mut(path) {
                edit(bytes);
            }
        }
    }

    /// Puts a file there, durably, with all its directories.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let id = state.new_file();
        let State { live, durable, .. } = &mut *state;
        for image in [live, durable] {
            image.make_dir(parent(path));
            image.put(path, id, bytes);
        }
    }

    /// All files as the processes of the machine see them.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.state().live.contents()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a test must not hide behind a second one.
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
    /// Numbers an altering operation; answers the fault it is to meet.
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

    /// As [`State::operate`], for operations that do nothing when they fail.
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

    fn file(&self, path: &Path) -> io::Result<FileId> {
        self.alive()?;
        self.live.id(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Makes the pending changes last that the filter picks.
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
            Fault::Io => EIO,
            Fault::Full { .. } => ENOSPC,
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
        if !state.live.is_dir(parent(path)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let id = state.new_file();
        state.change(Change::Create {
            path: path.to_owned(),
            id,
        });
        drop(state);
        Ok(self.handle(id, path, true))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let id = self.state().file(path)?;
        Ok(self.handle(id, path, true))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let id = self.state().file(path)?;
        Ok(self.handle(id, path, false))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        let id = state.file(path)?;
        Ok(state.live.bytes(id).to_vec())
    }

    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        Ok(Arc::new(self.read(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::Rename)?;
        let id = state.file(from)?;
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
        state.file(path)?;
        state.change(Change::Remove {
            path: path.to_owned(),
        });
        Ok(())
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::Remove)?;
        if !state.live.is_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Deepest first, each by itself: a crash may find any part of them gone.
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
        if !state.live.is_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(state.live.list(dir))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.alive()?;
        Ok(state.live.exists(path))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        let id = state.file(path)?;
        Ok(state.live.bytes(id).len() as u64)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.operate_whole(Operation::Sync)?;
        if !state.live.is_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let removed: Vec<PathBuf> = state
            .pending
            .iter()
            .filter_map(|change| change.removed_in(dir))
            .collect();
        // A directory that is gone for good takes with it what was in it.
        state.commit(|change| match change.name() {
            Some(path) => parent(path) == dir || removed.iter().any(|gone| path.starts_with(gone)),
            None => false,
        });
        Ok(())
    }
}
