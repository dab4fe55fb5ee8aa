//! Collects a consistent set of files from a data directory, while a server may be writing to it.
//!
//! Nothing in a data directory is changed in place except the end of the log. Files are written under names of their
//! own, become valid when the manifest names them, and are removed when it no longer does (ARCHITECTURE.md, "A file
//! counts when a manifest names it"). Reading them in the following order therefore gives a state from which recovery
//! succeeds, whatever checkpoint, merge or trim the server makes in between:
//!
//! 1. The present files of the log. They reach back to what the manifest in force covers, and to what any later one
//!    covers, because the log is trimmed only after its manifest is written.
//! 2. The manifest.
//! 3. All files that it names: segments, runs, carried records, and directories of buckets that were not converted.
//!    They are complete, because the manifest was written after them. If one is missing, it was removed after a later
//!    manifest was written: then start over.
//! 4. The files of the log again. They include everything that this manifest covers, because a checkpoint makes the log
//!    durable before it writes the manifest, and everything that was acknowledged before the backup began.
//!
//! Each file is kept open from the moment it is found, so that it may be removed while it is copied.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use disk::{Disk, list_existing};
use wal::{LogError, Sequence};

use super::error::BackupError;
use super::pins::Pins;
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{Layout, Manifest, ManifestError, NamedFile, format_1};

/// Limit on attempts. One takes milliseconds, and a second one is hardly ever needed: so many failures are no
/// coincidence.
const ATTEMPTS_MAX: usize = 50;

/// A consistent set of files.
pub(crate) struct Collected {
    /// Sequence of the last record in the files.
    pub(crate) last_record: Sequence,
    /// The files.
    pub(super) pins: Pins,
    pub(super) manifest: Manifest,
    pub(super) on_damage: OnDamage,
    /// Damage found in the log.
    pub(super) damages: Vec<String>,
}

/// How a backup treats damaged files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    /// No backup is made.
    Refuse,
    /// They are copied as they are, and the backup records the damage.
    Copy,
}

#[cfg(test)]
impl Collected {
    /// Makes the files be copied without verification, as older programs did.
    pub(crate) fn forget_manifest(&mut self) {
        self.manifest = Manifest::default();
    }
}

/// Collects the files. If the server changed them meanwhile, tries again after a `pause`.
pub(crate) fn collect(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    on_damage: OnDamage,
    mut pause: impl FnMut(),
) -> Result<Collected, BackupError> {
    let mut what = String::new();
    for attempt in 1..=ATTEMPTS_MAX {
        // Concurrent changes may look like damage of the log, but not repeatedly.
        let takes_damaged_log = attempt == ATTEMPTS_MAX && on_damage == OnDamage::Copy;
        match attempt_once(disk, layout, on_damage, takes_damaged_log) {
            Err(BackupError::Changing(moved)) => what = moved,
            done => return done,
        }
        pause();
    }
    Err(BackupError::Changing(what))
}

/// Collects the files, or fails with [`BackupError::Changing`] if one was replaced meanwhile.
fn attempt_once(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    on_damage: OnDamage,
    takes_damaged_log: bool,
) -> Result<Collected, BackupError> {
    let pins = Pins::new(Arc::clone(disk));
    let log_dir = layout.log_dir();
    pin_log(&**disk, &pins, &log_dir)?;
    let manifest = Manifest::read(&pins, &layout.data_dir).map_err(of_manifest)?;
    let data_dir = &layout.data_dir;
    if manifest.is_none()
        && let Some(path) = format_1::exists(&**disk, data_dir).map_err(at(data_dir))?
    {
        // Its files are consistent in a different order that only its own programs implement.
        return Err(BackupError::Format1(path));
    }
    let manifest = manifest.unwrap_or_default();
    pin_named(&**disk, &pins, layout, &manifest)?;
    pin_log(&**disk, &pins, &log_dir)?;
    measure_log(&**disk, &pins, &log_dir, takes_damaged_log)?;
    let (last_record, damages) = check_log(&pins, layout, &manifest, takes_damaged_log)?;
    if pins.files().is_empty() {
        return Err(BackupError::Empty(data_dir.clone()));
    }
    Ok(Collected {
        last_record,
        pins,
        manifest,
        on_damage,
        damages,
    })
}

/// Opens all files that a manifest names.
fn pin_named(disk: &dyn Disk, pins: &Pins, layout: &Layout, manifest: &Manifest) -> Result<(), BackupError> {
    for (path, file) in manifest.files(layout) {
        match file {
            NamedFile::Carried(_) => pin(pins, &path)?,
            // They never change, so they can be mapped.
            NamedFile::Segment(_) | NamedFile::Run(_) => pins.pin_sealed(&path).map_err(at(&path))?,
        }
    }
    for ordinal in &manifest.unconverted {
        let dir = format_1::bucket_dir(&layout.data_dir, *ordinal);
        // The directory was not converted if it is missing.
        for name in list_existing(disk, &dir).map_err(at(&dir))? {
            pin(pins, &dir.join(name))?;
        }
    }
    Ok(())
}

fn pin(pins: &Pins, path: &Path) -> Result<(), BackupError> {
    pins.pin(path).map(drop).map_err(at(path))
}

/// Opens the present files of the log.
fn pin_log(disk: &dyn Disk, pins: &Pins, dir: &Path) -> Result<(), BackupError> {
    let files = wal::files(disk, dir).map_err(of_log)?;
    files.iter().try_for_each(|path| pin(pins, path))
}

/// Ends the log after the last whole frame of its last file. All other files are complete by now, even if they have
/// been dropped.
fn measure_log(disk: &dyn Disk, pins: &Pins, dir: &Path, takes_damaged: bool) -> Result<(), BackupError> {
    let files = wal::files(pins, dir).map_err(of_log)?;
    let Some((last, complete)) = files.split_last() else {
        return Ok(());
    };
    let measure = |path: &Path, bytes| pins.measure(path, bytes).map_err(at(path));
    complete.iter().try_for_each(|path| measure(path, None))?;
    match wal::whole_bytes(disk, last) {
        Err(LogError::Damaged(_)) if takes_damaged => measure(last, None),
        Err(error) => Err(of_log(error)),
        Ok(None) => Err(at(last)(ErrorKind::NotFound.into())),
        // The file was just being created.
        Ok(Some(0)) => {
            pins.forget(last);
            Ok(())
        }
        Ok(Some(bytes)) => measure(last, Some(bytes)),
    }
}

/// Checks that the log has no gap and includes the records that the manifest needs. Returns its last sequence, and the
/// damage, if damage is accepted.
fn check_log(
    pins: &Pins,
    layout: &Layout,
    manifest: &Manifest,
    takes_damaged: bool,
) -> Result<(Sequence, Vec<String>), BackupError> {
    let found = wal::check(pins, &layout.log_dir()).map_err(of_log)?;
    if takes_damaged {
        let damages = found.damages.iter().map(ToString::to_string);
        return Ok((found.last_sequence, damages.collect()));
    }
    if let Some(damage) = found.damages.first() {
        // A file that was created and dropped between the two listings of the log leaves such a gap, too.
        return Err(BackupError::Changing(damage.to_string()));
    }
    let covered = manifest.newest_covered();
    let (first, needed) = (found.first_sequence.unwrap_or(1), manifest.covered + 1);
    if first > needed || found.last_sequence < covered {
        return Err(BackupError::Changing(format!(
            "the log has records {first} to {}, but {needed} to {covered} are needed",
            found.last_sequence,
        )));
    }
    Ok((found.last_sequence, Vec::new()))
}

/// Adds the path to a disk error.
fn at(path: &Path) -> impl Fn(io::Error) -> BackupError {
    |error| match error.kind() {
        ErrorKind::NotFound => BackupError::Changing(format!("{} is missing", path.display())),
        _ => BackupError::Read(path.to_owned(), error),
    }
}

fn of_log(error: LogError) -> BackupError {
    match error {
        LogError::Io { path, source, .. } => at(&path)(source),
        // If the log's last file is really damaged, later attempts fail in the same way.
        LogError::Damaged(damage) => BackupError::Changing(damage.to_string()),
        error => BackupError::Damaged(error.to_string()),
    }
}

fn of_manifest(error: ManifestError) -> BackupError {
    match error {
        ManifestError::File(CheckedFileError::Io(path, error)) => at(&path)(error),
        error => BackupError::Damaged(error.to_string()),
    }
}
