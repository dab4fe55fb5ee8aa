//! Which files of a data directory belong together, while a server may be writing to it.
//!
//! Nothing in a data directory is changed in place but the log's end: files are replaced by renaming and removed, and
//! always in the order of ARCHITECTURE.md ("A file counts when a manifest names it"). Looking at them in the same order
//! therefore gives a state that recovery takes, whatever the server does between two looks:
//!
//! 1. the log's files as they are: they reach back to the mark that is there, and to any later one;
//! 2. the mark, then the catalog's snapshot, which covers at least as much, with the runs it names;
//! 3. each bucket's manifest with the files it names; the answers to what a manifest covers are in runs that a snapshot
//!    named before, so that a snapshot that names other runs by then has all looked at anew;
//! 4. the records carried on of buckets that are set apart, which are written before the mark moves;
//! 5. the log's files again: they reach up to what any of these covers, and to all that is acknowledged by then.
//!
//! Each file is held open from the moment it is found. One that is gone by then was replaced meanwhile: then all is
//! looked at anew.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use wal::disk::Disk;
use wal::{LogError, Sequence};

use super::error::BackupError;
use super::pins::{Pin, Pins};
use crate::bucket::{BucketDir, BucketFileError, CarriedDir, CarriedFile};
use crate::checked_file::CheckedFileError;
use crate::checkpoint::{CatalogError, Layout, Snapshot};
use crate::ledger::LedgerDir;

/// A look takes milliseconds, and hardly a second one is ever needed: what fails so often is no coincidence.
const LOOKS_MAX: usize = 50;

/// Files that belong together.
pub(crate) struct Collected {
    /// By their path within the data directory, with `/`.
    pub(crate) files: BTreeMap<String, Pin>,
    /// Sequence of the last record they hold.
    pub(crate) last_record: Sequence,
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
    mut pause: impl FnMut(),
) -> Result<Collected, BackupError> {
    let mut what = String::new();
    for _ in 0..LOOKS_MAX {
        match look(disk, layout) {
            Ok(collected) => return Ok(collected),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Moved(moved)) => what = moved,
        }
        pause();
    }
    Err(BackupError::Moving(what))
}

fn look(disk: &Arc<dyn Disk>, layout: &Layout) -> Result<Collected, Missed> {
    let pins = Pins::new(Arc::clone(disk));
    let log_dir = layout.log_dir();
    pin_log(&**disk, &pins, &log_dir)?;
    let mark = layout.read_mark(&pins).map_err(Missed::of_file)?;
    let Snapshot {
        catalog, mut covered, ..
    } = layout.read_catalog(&pins).map_err(Missed::of_catalog)?;
    let ledger = LedgerDir::of(&layout.data_dir);
    for id in catalog.ledger().runs() {
        pin(&pins, &ledger.run_path(*id))?;
    }
    for ordinal in ordinals(&**disk, layout)? {
        let dir = BucketDir::of(&layout.data_dir, ordinal);
        let Some(manifest) = dir.read_manifest(&pins).map_err(Missed::of_bucket)? else {
            continue;
        };
        covered = covered.max(manifest.covered);
        let segments = manifest.segments.iter().map(|id| dir.segment_path(*id));
        let answers = manifest.answers.iter().map(|id| dir.answers_path(*id));
        for path in segments.chain(answers) {
            pin(&pins, &path)?;
        }
    }
    let now = layout.read_catalog(&**disk).map_err(Missed::of_catalog)?;
    if now.catalog.ledger().runs() != catalog.ledger().runs() {
        return Err(Missed::Moved("the catalog's snapshot was replaced".to_owned()));
    }
    for file in carried_files(&**disk, layout)? {
        pin(&pins, &file.path)?;
    }
    pin_log(&**disk, &pins, &log_dir)?;
    measure_log(&**disk, &pins, &log_dir)?;
    let last_record = check_log(&pins, layout, mark, covered)?;
    let files = pins.into_files();
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
    })
}

fn pin(pins: &Pins, path: &Path) -> Result<(), Missed> {
    pins.pin(path)
        .map(drop)
        .map_err(|error| Missed::of_io(path, error))
}

/// Opens the log's files that are there.
fn pin_log(disk: &dyn Disk, pins: &Pins, dir: &Path) -> Result<(), Missed> {
    for path in wal::files(disk, dir).map_err(Missed::of_log)? {
        pin(pins, &path)?;
    }
    Ok(())
}

/// Has the log end with what is whole in its last file. All others are complete by now, dropped or not.
fn measure_log(disk: &dyn Disk, pins: &Pins, dir: &Path) -> Result<(), Missed> {
    let files = wal::files(pins, dir).map_err(Missed::of_log)?;
    let Some((last, complete)) = files.split_last() else {
        return Ok(());
    };
    for path in complete {
        let measured = pins.measure(path, None);
        measured.map_err(|error| Missed::of_io(path, error))?;
    }
    match wal::whole_bytes(disk, last).map_err(Missed::of_log)? {
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

/// That the log has no hole and spans what the other files need of it; answers its last sequence.
fn check_log(pins: &Pins, layout: &Layout, mark: Sequence, covered: Sequence) -> Result<Sequence, Missed> {
    let found = wal::check(pins, &layout.log_dir()).map_err(Missed::of_log)?;
    if let Some(damage) = found.damages.first() {
        // A file begun and dropped between the two looks at the log leaves such a hole, too.
        return Err(Missed::Moved(damage.to_string()));
    }
    let first = found.first_sequence.unwrap_or(1);
    if first > mark + 1 || found.last_sequence < covered {
        return Err(Missed::Moved(format!(
            "the log has records {first} to {} where {} to {covered} are needed",
            found.last_sequence,
            mark + 1
        )));
    }
    Ok(found.last_sequence)
}

fn carried_files(disk: &dyn Disk, layout: &Layout) -> Result<Vec<CarriedFile>, Missed> {
    let listed = CarriedDir::of(&layout.data_dir).list(disk);
    listed.map_err(|error| Missed::of_io(&layout.data_dir, error))
}

/// Ordinals of the buckets that have a directory.
fn ordinals(disk: &dyn Disk, layout: &Layout) -> Result<Vec<u32>, Missed> {
    let dir = layout.buckets_dir();
    match disk.list(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Missed::of_io(&dir, error)),
        Ok(names) => Ok(names.iter().filter_map(BucketDir::ordinal).collect()),
    }
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

    fn of_catalog(error: CatalogError) -> Self {
        match error {
            CatalogError::File(error) => Self::of_file(error),
            error @ CatalogError::Content(..) => Self::Failed(BackupError::Damaged(error.to_string())),
        }
    }

    fn of_bucket(error: BucketFileError) -> Self {
        match error {
            BucketFileError::Manifest(error) => Self::of_file(error),
            error => Self::Failed(BackupError::Damaged(error.to_string())),
        }
    }
}
