//! `tidewatch backup` and `tidewatch restore`: a verifiable copy of a whole data directory, taken while the server
//! runs. Documented in FORMAT.md.
//!
//! The backup does not communicate with the server. Files of a data directory are never changed in place, so it opens a
//! consistent set of them ([`collect`](self)) and copies them at its own pace, at a low priority. It writes nothing
//! into the data directory and takes no lock; if either process dies meanwhile, the other is not affected. Called only
//! by the command line.

mod collect;
mod content;
mod error;
mod manifest;
mod pins;
mod restore;
mod source;
mod target;

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, absolute};
use std::sync::Arc;
use std::time::{Duration, Instant};

use disk::{Disk, StdDisk, list_existing};

use crate::check;
use crate::checkpoint::Layout;
use crate::clock::Clock;
use crate::open_files;
use crate::priority;
use crate::progress::Progress;
use crate::startup::{DirectoryLock, LOCK_NAME};
use crate::timestamp::format_timestamp_ns;

use target::Form;

pub use collect::OnDamage;
pub use error::BackupError;
pub use manifest::{FileEntry, Manifest};

// Also for tests over a simulated disk.
pub(crate) use collect::{Collected, collect};
pub(crate) use pins::Pins;
pub(crate) use restore::{restore as restore_to, verify as verify_on};
pub(crate) use target::Target;

/// Pause between two attempts to collect files that change: removing a bucket's directory takes less.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(100);

/// A directory that file systems create in an empty volume.
const LOST_AND_FOUND: &str = "lost+found";

/// A backup that was made.
#[derive(Debug)]
pub struct BackupReport {
    pub manifest: Manifest,
    /// Bytes of the backup, compressed if it is compressed.
    pub written_bytes: u64,
    /// Time until the contents were fixed. What is acknowledged later is not in the backup.
    pub fixed_after: Duration,
    /// Total duration.
    pub took: Duration,
}

/// Backs up a data directory, whose server may be running, to a target that must not exist: a directory, or an archive
/// if the name ends in `.tar` or `.tar.zst`. Everything that was acknowledged before this call is included. Every file
/// is verified with its checksums while it is copied; `on_damage` decides what happens to a damaged one.
///
/// # Errors
/// See [`BackupError`]. After an error there is no target, unless it existed before.
pub fn back_up(
    data_dir: &Path,
    target: &Path,
    on_damage: OnDamage,
    clock: &dyn Clock,
    progress: &dyn Progress,
) -> Result<BackupReport, BackupError> {
    priority::lower();
    open_files::raise_limit();
    let started = Instant::now();
    let now_ns = clock.now_ns();
    refuse_inside(data_dir, target)?;
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    let layout = Layout::of(data_dir);
    let collected = collect(&disk, &layout, on_damage, || std::thread::sleep(ATTEMPT_PAUSE))?;
    let fixed_after = started.elapsed();
    reserve(target)?;
    let begun = Target::begin(&disk, target, now_ns)?;
    let written = write(&collected, &layout, begun, now_ns, progress);
    let (manifest, written_bytes) = written.inspect_err(|_| discard(target))?;
    Ok(BackupReport {
        manifest,
        written_bytes,
        fixed_after,
        took: started.elapsed(),
    })
}

/// Copies the collected files. Returns the manifest, and the bytes written.
pub(crate) fn write(
    collected: &Collected,
    layout: &Layout,
    mut target: Target,
    now_ns: i64,
    progress: &dyn Progress,
) -> Result<(Manifest, u64), BackupError> {
    let named = collected.manifest.files(layout);
    let mut damages = collected.damages.clone();
    let files = collected.pins.files();
    progress.expect(files.values().map(|pin| pin.bytes).sum());
    for (path, pin) in files {
        // Verify each file right before it is copied, so that it is read from disk once.
        if let Some(file) = named.get(&path) {
            let found = check::damages(&collected.pins, layout, file);
            damages.extend(found.map_err(BackupError::Damaged)?);
        }
        // Verify all files, so that all damage is reported.
        if damages.is_empty() || collected.on_damage == OnDamage::Copy {
            let name = path.strip_prefix(&layout.data_dir).unwrap_or(&path);
            target.add(&name.to_string_lossy(), &pin, &path, progress)?;
        }
    }
    if !damages.is_empty() && collected.on_damage == OnDamage::Refuse {
        return Err(BackupError::DamagedFiles(layout.data_dir.clone(), damages));
    }
    let created_at = format_timestamp_ns(now_ns).as_str().to_owned();
    target.finish(created_at, collected.last_record, damages)
}

/// Reads a backup and verifies its checksums.
///
/// # Errors
/// See [`BackupError`].
pub fn verify(backup: &Path, progress: &dyn Progress) -> Result<Manifest, BackupError> {
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    verify_on(&disk, backup, progress)
}

/// Restores a backup to a data directory that is empty or does not exist. A server then finds all of it, or nothing.
///
/// # Errors
/// See [`BackupError`]. After an error nothing of the backup is left in the directory.
pub fn restore(backup: &Path, data_dir: &Path, progress: &dyn Progress) -> Result<Manifest, BackupError> {
    let _lock = take_empty(data_dir)?;
    let disk: Arc<dyn Disk> = Arc::new(StdDisk);
    let layout = Layout::of(data_dir);
    restore_to(&disk, backup, &*disk, &layout, progress)
}

/// Creates a data directory to restore to, or takes an empty one, and locks it.
///
/// # Errors
/// [`BackupError::Lock`], [`BackupError::Occupied`], or the directory cannot be read.
pub(crate) fn take_empty(data_dir: &Path) -> Result<DirectoryLock, BackupError> {
    // Check before taking the lock, which would leave a file there.
    DirectoryLock::take_to_read(data_dir).map_err(BackupError::Lock)?;
    refuse_occupied(data_dir)?;
    let lock = DirectoryLock::take(data_dir).map_err(BackupError::Lock)?;
    refuse_occupied(data_dir)?;
    Ok(lock)
}

/// Refuses a target within the data directory, where the backup would be lost together with it.
fn refuse_inside(data_dir: &Path, target: &Path) -> Result<(), BackupError> {
    let unread = |path: &Path, error| BackupError::Read(path.to_owned(), error);
    let whole = absolute(target).map_err(|error| unread(target, error))?;
    let parent = whole.parent().unwrap_or(&whole);
    let parent = fs::canonicalize(parent).map_err(|error| BackupError::Write(parent.to_owned(), error))?;
    match fs::canonicalize(data_dir) {
        Ok(data_dir) if parent.starts_with(&data_dir) => Err(BackupError::Inside(target.to_owned())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(BackupError::Empty(data_dir.to_owned())),
        Err(error) => Err(unread(data_dir, error)),
    }
}

/// Ensures that the target is new, and reserves it. An archive is reserved when it is created.
fn reserve(target: &Path) -> Result<(), BackupError> {
    if Form::of(target) != Form::Directory {
        return Ok(());
    }
    // Only for the owner, because it contains password hashes and secrets.
    DirBuilder::new()
        .mode(0o700)
        .create(target)
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => BackupError::Exists(target.to_owned()),
            _ => BackupError::Write(target.to_owned(), error),
        })
}

fn refuse_occupied(data_dir: &Path) -> Result<(), BackupError> {
    let unread = |error: io::Error| BackupError::Read(data_dir.to_owned(), error);
    let names = list_existing(&StdDisk, data_dir).map_err(unread)?;
    let mut held = names
        .into_iter()
        .filter(|name| name != LOCK_NAME && name != LOST_AND_FOUND);
    held.next().map_or(Ok(()), |name| {
        Err(BackupError::Occupied(
            data_dir.to_owned(),
            name.to_string_lossy().into_owned(),
        ))
    })
}

/// Removes the files of a backup that failed. If that fails, the remains have no manifest.
fn discard(target: &Path) {
    let _ = match Form::of(target) {
        Form::Directory => fs::remove_dir_all(target),
        Form::Tar | Form::ZstdTar => fs::remove_file(target),
    };
}

#[cfg(test)]
mod tests;
