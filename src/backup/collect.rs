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

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use disk::{Disk, list_existing};
use wal::{LogError, Sequence};

use super::error::BackupError;
use super::pins::{Pin, Pins};
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{BucketDir, Layout, Manifest, ManifestError, NamedFile};

/// Limit on attempts. One takes milliseconds, and a second one is hardly ever needed: so many failures are no
/// coincidence.
const ATTEMPTS_MAX: usize = 50;

/// A consistent set of files.
pub(crate) struct Collected {
    /// By their path within the data directory, with `/`.
    pub(crate) files: BTreeMap<String, Pin>,
    /// Sequence of the last record in the files.
    pub(crate) last_record: Sequence,
    /// A disk view with the same files and no others.
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

/// Why an attempt failed.
enum AttemptError {
    /// A file was replaced meanwhile.
    Changed(String),
    Failed(BackupError),
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
            Ok(collected) => return Ok(collected),
            Err(AttemptError::Failed(error)) => return Err(error),
            Err(AttemptError::Changed(moved)) => what = moved,
        }
        pause();
    }
    Err(BackupError::Changing(what))
}

fn attempt_once(
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    on_damage: OnDamage,
    takes_damaged_log: bool,
) -> Result<Collected, AttemptError> {
    let pins = Pins::new(Arc::clone(disk));
    let log_dir = layout.log_dir();
    pin_log(&**disk, &pins, &log_dir)?;
    let manifest = Manifest::read(&pins, &layout.data_dir).map_err(AttemptError::of_manifest)?;
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
        return Err(AttemptError::Failed(BackupError::Empty(layout.data_dir.clone())));
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

/// Refuses format 1, whose files are consistent in a different order that only its own programs implement.
fn refuse_format_1(disk: &dyn Disk, layout: &Layout) -> Result<(), AttemptError> {
    let found = layout.file_of_format_1(disk);
    match found.map_err(AttemptError::at(&layout.data_dir))? {
        None => Ok(()),
        Some(path) => Err(AttemptError::Failed(BackupError::Format1(path))),
    }
}

/// Opens all files that a manifest names.
fn pin_named(disk: &dyn Disk, pins: &Pins, layout: &Layout, manifest: &Manifest) -> Result<(), AttemptError> {
    for (path, file) in manifest.files(layout) {
        match file {
            NamedFile::Carried(_) => pin(pins, &path)?,
            // They never change, so they can be mapped.
            NamedFile::Segment(_) | NamedFile::Run(_) => {
                pins.pin_sealed(&path).map_err(AttemptError::at(&path))?
            }
        }
    }
    for ordinal in &manifest.unconverted {
        let dir = BucketDir::of(&layout.data_dir, *ordinal);
        // The directory was not converted if it is missing.
        for name in list_existing(disk, dir.path()).map_err(AttemptError::at(dir.path()))? {
            pin(pins, &dir.path().join(name))?;
        }
    }
    Ok(())
}

fn pin(pins: &Pins, path: &Path) -> Result<(), AttemptError> {
    pins.pin(path).map(drop).map_err(AttemptError::at(path))
}

/// Opens the present files of the log.
fn pin_log(disk: &dyn Disk, pins: &Pins, dir: &Path) -> Result<(), AttemptError> {
    let files = wal::files(disk, dir).map_err(AttemptError::of_log)?;
    files.iter().try_for_each(|path| pin(pins, path))
}

/// Ends the log after the last whole frame of its last file. All other files are complete by now, even if they have
/// been dropped.
fn measure_log(disk: &dyn Disk, pins: &Pins, dir: &Path, takes_damaged: bool) -> Result<(), AttemptError> {
    let files = wal::files(pins, dir).map_err(AttemptError::of_log)?;
    let Some((last, complete)) = files.split_last() else {
        return Ok(());
    };
    let measure = |path: &Path, bytes| pins.measure(path, bytes).map_err(AttemptError::at(path));
    complete.iter().try_for_each(|path| measure(path, None))?;
    match wal::whole_bytes(disk, last) {
        Err(LogError::Damaged(_)) if takes_damaged => measure(last, None),
        Err(error) => Err(AttemptError::of_log(error)),
        Ok(None) => Err(AttemptError::at(last)(ErrorKind::NotFound.into())),
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
) -> Result<(Sequence, Vec<String>), AttemptError> {
    let found = wal::check(pins, &layout.log_dir()).map_err(AttemptError::of_log)?;
    if takes_damaged {
        let damages = found.damages.iter().map(ToString::to_string);
        return Ok((found.last_sequence, damages.collect()));
    }
    if let Some(damage) = found.damages.first() {
        // A file that was created and dropped between the two listings of the log leaves such a gap, too.
        return Err(AttemptError::Changed(damage.to_string()));
    }
    let covered = manifest.newest_covered();
    let (first, needed) = (found.first_sequence.unwrap_or(1), manifest.covered + 1);
    if first > needed || found.last_sequence < covered {
        return Err(AttemptError::Changed(format!(
            "the log has records {first} to {}, but {needed} to {covered} are needed",
            found.last_sequence,
        )));
    }
    Ok((found.last_sequence, Vec::new()))
}

impl AttemptError {
    /// Adds the path to a disk error.
    fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        |error| match error.kind() {
            ErrorKind::NotFound => Self::Changed(format!("{} is missing", path.display())),
            _ => Self::Failed(BackupError::Read(path.to_owned(), error)),
        }
    }

    fn of_log(error: LogError) -> Self {
        match error {
            LogError::Io { path, source, .. } => Self::at(&path)(source),
            // If the log's last file is really damaged, later attempts fail in the same way.
            LogError::Damaged(damage) => Self::Changed(damage.to_string()),
            error => Self::Failed(BackupError::Damaged(error.to_string())),
        }
    }

    fn of_manifest(error: ManifestError) -> Self {
        match error {
            ManifestError::File(CheckedFileError::Io(path, error)) => Self::at(&path)(error),
            error => Self::Failed(BackupError::Damaged(error.to_string())),
        }
    }
}
