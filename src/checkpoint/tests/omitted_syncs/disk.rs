//! A disk that omits the syncs of one class and reports success. A power cut then loses what the program would lose
//! without that sync.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::sim::{Fault, Operation, SimDisk};
use disk::{Bytes, Disk, DiskFile};
use parking_lot::Mutex;

/// Classes of syncs: what each makes durable, and before which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A frame of the log, before it is acknowledged.
    LogFrame,
    /// The header of a new log file, before its first frame.
    LogHeader,
    /// The name of a new log file, before its first frame.
    LogName,
    /// The removal of a log file, before the next one is removed.
    LogRemoval,
    /// The end of a log file without its room, before the next file is started.
    LogEnd,
    /// The end of a log file after a frame that did not fit on the disk, before the next frame is written there.
    LogCutBack,
    /// The frames rewritten and truncated when the log is opened, before they count as read.
    LogReopened,
    /// The name of the file that is appended to after the log was opened.
    LogReopenedName,
    /// Not a sync: rewriting the last frame when the log is opened.
    LogRewrite,
    /// A segment, before the manifest names it.
    Segment,
    /// The names in `segments/`.
    SegmentName,
    /// A run of the ledger, before the manifest names it.
    Run,
    /// The names in `ledger/`.
    RunName,
    /// The manifest under its temporary name, before it is renamed.
    Manifest,
    /// The manifest's name, before the log is trimmed and files are removed.
    ManifestName,
    /// Carried records, before the manifest names them.
    Carried,
    /// The names in `carried/`.
    CarriedName,
}

impl Class {
    pub(super) const ALL: [Class; 17] = [
        Class::LogFrame,
        Class::LogHeader,
        Class::LogName,
        Class::LogRemoval,
        Class::LogEnd,
        Class::LogCutBack,
        Class::LogReopened,
        Class::LogReopenedName,
        Class::LogRewrite,
        Class::Segment,
        Class::SegmentName,
        Class::Run,
        Class::RunName,
        Class::Manifest,
        Class::ManifestName,
        Class::Carried,
        Class::CarriedName,
    ];
}

/// A change of a directory's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameChange {
    Created,
    Removed,
}

/// Observed operations, shared by all handles of one disk.
#[derive(Default)]
struct Observed {
    /// The last rename or removal in each directory since the process started.
    name_changes: Mutex<BTreeMap<PathBuf, NameChange>>,
    /// Class of the sync that is to fail next.
    failing: Mutex<Option<Class>>,
}

/// The disk of one process; created for each start.
#[derive(Clone)]
pub(super) struct OmittingDisk {
    below: Arc<dyn Disk>,
    /// The innermost disk, which injects faults.
    sim: SimDisk,
    class: Option<Class>,
    /// Number of omitted syncs.
    left_out: Arc<AtomicU64>,
    observed: Arc<Observed>,
}

impl OmittingDisk {
    pub(super) fn new(
        below: Arc<dyn Disk>,
        sim: SimDisk,
        class: Option<Class>,
        left_out: Arc<AtomicU64>,
    ) -> Self {
        OmittingDisk {
            below,
            sim,
            class,
            left_out,
            observed: Arc::default(),
        }
    }

    /// Makes the next sync of a class fail with an I/O error.
    pub(super) fn fail_next(&self, class: Class) {
        *self.observed.failing.lock() = Some(class);
    }

    /// Whether that sync has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.observed.failing.lock().is_none()
    }

    /// Whether an operation of this class is to be executed; counts omitted ones.
    fn executes(&self, class: Option<Class>) -> bool {
        let mut failing = self.observed.failing.lock();
        if failing.is_some() && *failing == class {
            *failing = None;
            self.sim.fail(Operation::Sync, 1, Fault::Io);
            return true;
        }
        let left_out = class.is_some() && self.class == class;
        self.left_out.fetch_add(u64::from(left_out), Ordering::SeqCst);
        !left_out
    }

    fn record(&self, path: &Path, name_changes: NameChange) {
        if let Some(dir) = path.parent() {
            self.observed
                .name_changes
                .lock()
                .insert(dir.to_owned(), name_changes);
        }
    }

    fn file(&self, path: &Path, file: Box<dyn DiskFile>, created: bool) -> Box<dyn DiskFile> {
        Box::new(OmittingFile {
            disk: self.clone(),
            path: path.to_owned(),
            file,
            created,
            synced: false,
            truncated: false,
            failed: false,
        })
    }

    fn class_of_dir(&self, dir: &Path) -> Option<Class> {
        match dir.to_str()? {
            "data" => Some(Class::ManifestName),
            "data/segments" => Some(Class::SegmentName),
            "data/ledger" => Some(Class::RunName),
            "data/carried" => Some(Class::CarriedName),
            "data/log" => Some(match self.observed.name_changes.lock().get(dir) {
                Some(NameChange::Created) => Class::LogName,
                Some(NameChange::Removed) => Class::LogRemoval,
                None => Class::LogReopenedName,
            }),
            _ => None,
        }
    }
}

impl Disk for OmittingDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = self.below.create(path)?;
        self.record(path, NameChange::Created);
        Ok(self.file(path, file, true))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(path, self.below.open(path)?, false))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.below.open_read(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.below.read(path)
    }
    fn map(&self, path: &Path) -> io::Result<Arc<dyn Bytes>> {
        self.below.map(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.below.remove(path)?;
        self.record(path, NameChange::Removed);
        Ok(())
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.below.remove_dir_all(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.below.create_dir_all(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.below.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.below.exists(path)
    }
    fn len(&self, path: &Path) -> io::Result<u64> {
        self.below.len(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match self.executes(self.class_of_dir(dir)) {
            true => self.below.sync_dir(dir),
            false => Ok(()),
        }
    }
}

struct OmittingFile {
    disk: OmittingDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Whether the file was created through this handle.
    created: bool,
    /// Whether it was synced, or the sync omitted.
    synced: bool,
    /// Whether the last change was a truncation, not a write.
    truncated: bool,
    /// Whether the last write failed.
    failed: bool,
}

impl OmittingFile {
    fn class(&self) -> Option<Class> {
        let is_log = self.path.starts_with("data/log");
        match self.path.parent()?.to_str()? {
            "data" if self.path.ends_with("manifest.tmp") => Some(Class::Manifest),
            "data/segments" => Some(Class::Segment),
            "data/ledger" => Some(Class::Run),
            "data/carried" => Some(Class::Carried),
            _ if !is_log => None,
            _ if !self.synced && self.created => Some(Class::LogHeader),
            _ if !self.synced => Some(Class::LogReopened),
            _ if self.truncated && self.failed => Some(Class::LogCutBack),
            _ if self.truncated => Some(Class::LogEnd),
            _ => Some(Class::LogFrame),
        }
    }
}

impl DiskFile for OmittingFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.truncated = false;
        let rewrites = self.class() == Some(Class::LogReopened);
        match self.disk.executes(rewrites.then_some(Class::LogRewrite)) {
            true => {
                let written = self.file.write_all_at(offset, bytes);
                self.failed = written.is_err();
                written
            }
            false => Ok(()),
        }
    }
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buffer)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        let does = self.disk.executes(self.class());
        self.synced = true;
        match does {
            true => self.file.sync_data(),
            false => Ok(()),
        }
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.truncated = true;
        self.file.truncate(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
