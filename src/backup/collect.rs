//! Which files of a data directory belong together, while a server may be writing to it.
//!
//! Nothing in a data directory is changed in place but the log's end: files are written under names of their own,
//! count once the manifest names them, and go once it does not (ARCHITECTURE.md, "A file counts when a manifest names
//! it"). Looking at them in this order therefore gives a state that recovery takes, whatever checkpoint, merge or trim
//! the server makes between two looks:
//!
//! 1. the log's files as they are: they reach back to what the manifest in force covers, and to what any later one
//!    does, for the log is trimmed behind its manifest;
//! 2. the manifest;
//! 3. all that it names: segments, runs, records carried on, and directories of buckets that were not converted. They
//!    are whole, for the manifest came behind them. One that is gone was removed behind a later manifest: then all is
//!    looked at anew;
//! 4. the log's files again: they reach up to what this manifest covers, for a checkpoint makes the log last before its
//!    manifest, and to all that was acknowledged before the backup began.
//!
//! Each file is held open from the moment it is found, so that it may be removed while it is copied.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use wal::disk::Disk;
use wal::{LogError, Sequence};

use super::error::BackupError;
use super::pins::{Pin, Pins};
use crate::bucket::CarriedDir;
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{BucketDir, Layout, Manifest, ManifestError, OpenError, SegmentsDir};
use crate::ledger::LedgerDir;

/// A look takes milliseconds, and hardly a second one is ever needed: what fails so often is no coincidence.
const LOOKS_MAX: usize = 50;

/// Files that belong together.
pub(crate) struct Collected {
    /// By their path within the data directory, with `/`.
    pub(crate) files: BTreeMap<String, Pin>,
    /// Sequence of the last record they hold.
    pub(crate) last_record: Sequence,
    /// The same files, and no others.
    pub(super) pins: Pins,
    pub(super) manifest: Manifest,
    pub(super) on_damage: OnDamage,
    /// What of the log is not what was written.
    pub(super) damages: Vec<String>,
}

/// What becomes of a backup of files that are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    /// None is made.
    Refuse,
    /// They are copied as they are, and the backup says so.
    Copy,
}

#[cfg(test)]
impl Collected {
    /// Has the files copied as programs did that did not look into them.
    pub(crate) fn forget_manifest(&mut self) {
        self.manifest = Manifest::default();
    }
}

/// Why a look gave no files.
enum Missed {
    /// Something was replaced meanwhile.
    Moved(String),
    Failed(BackupError),
}

/// Finds the files, looking again after a `pause` where the server was quicker.
pub(crate) fn collect(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    on_damage: OnDamage,
    mut pause: impl FnMut(),
) -> Result<Collected, BackupError> {
    let mut what = String::new();
    for looks in 1..=LOOKS_MAX {
        // What the server does meanwhile may look like damage of the log, but not again and again.
        let is_settled = looks == LOOKS_MAX && on_damage == OnDamage::Copy;
        match look(disk, layout, on_damage, is_settled) {
            Ok(collected) => return Ok(collected),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Moved(moved)) => what = moved,
        }
        pause();
    }
    Err(BackupError::Moving(what))
}

fn look(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    on_damage: OnDamage,
    takes_damaged_log: bool,
) -> Result<Collected, Missed> {
    let pins = Pins::new(Arc::clone(disk));
    let log_dir = layout.log_dir();
    pin_log(&**disk, &pins, &log_dir)?;
    let manifest = Manifest::read(&pins, &layout.data_dir).map_err(Missed::of_manifest)?;
    if manifest.is_none() {
        refuse_format_1(&**disk, layout)?;
    }
    let manifest = manifest.unwrap_or_default();
    pin_named(&**disk, &pins, layout, &manifest)?;
    pin_log(&**disk, &pins, &log_dir)?;
    measure_log(&**disk, &pins, &log_dir, takes_damaged_log)?;
    let (last_record, damages) = check_log(&pins, layout, &manifest, takes_damaged_log)?;
    let files = pins.files();
    if files.is_empty() {
        return Err(Missed::Failed(BackupError::Empty(layout.data_dir.clone())));
    }
    let files = files.into_iter().map(|(path, pin)| {
        let inside = path.strip_prefix(&layout.data_dir).unwrap_or(&path);
        (inside.to_string_lossy().into_owned(), pin)
    });
    Ok(Collected {
        files: files.collect(),
        last_record,
        pins,
        manifest,
        on_damage,
        damages,
    })
}

/// Its files belong together in another order, which only its own programs know.
fn refuse_format_1(disk: &dyn Disk, layout: &Layout) -> Result<(), Missed> {
    match layout.file_of_format_1(disk) {
        Ok(None) => Ok(()),
        Ok(Some(path)) => Err(Missed::Failed(BackupError::Format1(path))),
        Err(OpenError::Io(path, error)) => Err(Missed::of_io(&path, error)),
        Err(error) => Err(Missed::Failed(BackupError::Damaged(error.to_string()))),
    }
}

/// Opens all that a manifest names.
fn pin_named(disk: &dyn Disk, pins: &Pins, layout: &Layout, manifest: &Manifest) -> Result<(), Missed> {
    let segments = SegmentsDir::of(&layout.data_dir);
    for id in &manifest.segments {
        pin_sealed(pins, &segments.segment_path(*id))?;
    }
    let ledger = LedgerDir::of(&layout.data_dir);
    for id in &manifest.runs {
        pin_sealed(pins, &ledger.run_path(*id))?;
    }
    let carried = CarriedDir::of(&layout.data_dir);
    for (bucket, first) in &manifest.carried {
        pin(pins, &carried.named(*bucket, *first).path)?;
    }
    for ordinal in &manifest.unconverted {
        let dir = BucketDir::of(&layout.data_dir, *ordinal);
        let names = match disk.list(dir.path()) {
            // Missing is what kept it from being converted.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            listed => listed.map_err(|error| Missed::of_io(dir.path(), error))?,
        };
        for name in names {
            pin(pins, &dir.path().join(name))?;
        }
    }
    Ok(())
}

fn pin(pins: &Pins, path: &Path) -> Result<(), Missed> {
    pins.pin(path)
        .map(drop)
        .map_err(|error| Missed::of_io(path, error))
}

/// The same of a file that never changes, so that it can be read where it lies.
fn pin_sealed(pins: &Pins, path: &Path) -> Result<(), Missed> {
    pins.pin_sealed(path).map_err(|error| Missed::of_io(path, error))
}

/// Opens the log's files that are there.
fn pin_log(disk: &dyn Disk, pins: &Pins, dir: &Path) -> Result<(), Missed> {
    for path in wal::files(disk, dir).map_err(Missed::of_log)? {
        pin(pins, &path)?;
    }
    Ok(())
}

/// Has the log end with what is whole in its last file. All others are complete by now, dropped or not.
fn measure_log(disk: &dyn Disk, pins: &Pins, dir: &Path, takes_damaged: bool) -> Result<(), Missed> {
    let files = wal::files(pins, dir).map_err(Missed::of_log)?;
    let Some((last, complete)) = files.split_last() else {
        return Ok(());
    };
    for path in complete {
        let measured = pins.measure(path, None);
        measured.map_err(|error| Missed::of_io(path, error))?;
    }
    let whole = match wal::whole_bytes(disk, last) {
        Err(LogError::Damaged(_)) if takes_damaged => {
            let measured = pins.measure(last, None);
            return measured.map_err(|error| Missed::of_io(last, error));
        }
        whole => whole.map_err(Missed::of_log)?,
    };
    match whole {
        None => Err(Missed::of_io(last, ErrorKind::NotFound.into())),
        // It was being begun.
        Some(0) => {
            pins.forget(last);
            Ok(())
        }
        Some(bytes) => {
            let measured = pins.measure(last, Some(bytes));
            measured.map_err(|error| Missed::of_io(last, error))
        }
    }
}

/// That the log has no hole and spans what the manifest needs of it; answers its last sequence, and what is
/// damaged where that is taken.
fn check_log(
    pins: &Pins,
    layout: &Layout,
    manifest: &Manifest,
    takes_damaged: bool,
) -> Result<(Sequence, Vec<String>), Missed> {
    let found = wal::check(pins, &layout.log_dir()).map_err(Missed::of_log)?;
    if takes_damaged {
        let damages = found.damages.iter().map(ToString::to_string);
        return Ok((found.last_sequence, damages.collect()));
    }
    if let Some(damage) = found.damages.first() {
        // A file begun and dropped between the two looks at the log leaves such a hole, too.
        return Err(Missed::Moved(damage.to_string()));
    }
    let marks = manifest.buckets.values().map(|mark| mark.covered);
    let covered = marks.fold(manifest.covered.max(manifest.catalog_covered), Sequence::max);
    let (first, needed) = (found.first_sequence.unwrap_or(1), manifest.covered + 1);
    if first > needed || found.last_sequence < covered {
        return Err(Missed::Moved(format!(
            "the log has records {first} to {} where {needed} to {covered} are needed",
            found.last_sequence,
        )));
    }
    Ok((found.last_sequence, Vec::new()))
}

impl Missed {
    fn of_io(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Moved(format!("{} is not there", path.display())),
            _ => Self::Failed(BackupError::Read(path.to_owned(), error)),
        }
    }

    fn of_log(error: LogError) -> Self {
        match error {
            LogError::Io { path, source, .. } => Self::of_io(&path, source),
            // Where the log's last file is damaged, a later look tells the same.
            LogError::Damaged(damage) => Self::Moved(damage.to_string()),
            error => Self::Failed(BackupError::Damaged(error.to_string())),
        }
    }

    fn of_file(error: CheckedFileError) -> Self {
        match error {
            CheckedFileError::Io(path, error) => Self::of_io(&path, error),
            damaged @ CheckedFileError::Damaged(..) => {
                Self::Failed(BackupError::Damaged(damaged.to_string()))
            }
        }
    }

    fn of_manifest(error: ManifestError) -> Self {
        match error {
            ManifestError::File(error) => Self::of_file(error),
            error => Self::Failed(BackupError::Damaged(error.to_string())),
        }
    }
}
