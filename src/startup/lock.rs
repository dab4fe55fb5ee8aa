//! Limits a data directory to one process by an advisory lock on `LOCK`, taken before anything is read.
//!
//! The file is never deleted: if it were deleted while another process waits, two processes could hold locks on two
//! files of the same name. The kernel releases the lock when the process ends, so a kill leaves nothing to clean up.
//! The process id in the file is only informational.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Name of the lock file within a data directory.
pub const LOCK_NAME: &str = "LOCK";

/// The holder writes its process id right after taking the lock. A process that reads the file before that retries,
/// this often and with this pause.
const HOLDER_READS_MAX: usize = 20;
const HOLDER_PAUSE: Duration = Duration::from_millis(10);

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
    path: PathBuf,
}

/// Why the directory cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("data directory {data_dir} is in use by {}", describe(*.pid))]
    Held {
        data_dir: PathBuf,
        /// The process id in the lock file.
        pid: Option<u32>,
    },
    /// A disk error.
    #[error("cannot lock {path}: {source}")]
    Io {
        /// The path of the failed operation.
        path: PathBuf,
        source: io::Error,
    },
}

fn describe(pid: Option<u32>) -> String {
    pid.map_or("another process".to_owned(), |pid| {
        format!("process {pid}; stop it or choose another with --data-dir")
    })
}

impl DirectoryLock {
    /// Locks a directory, and creates it if it does not exist. Does not wait if the lock is held.
    ///
    /// # Errors
    /// Another process holds the lock, or a disk error.
    pub fn take(data_dir: &Path) -> Result<Self, LockError> {
        // Only for the owner, because it contains password hashes and secrets.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data_dir)
            .map_err(io(data_dir))?;
        let path = data_dir.join(LOCK_NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io(&path))?;
        let locked = file.try_lock();
        check_locked(locked, &mut file, data_dir)?;
        write_pid(&mut file).map_err(io(&path))?;
        Ok(Self { file, path })
    }

    /// Whether the locked file is still the one at its path. Otherwise the directory was removed or replaced, and
    /// writes go to files that can no longer be found. If the check itself fails, the answer is yes.
    pub fn is_in_place(&self) -> bool {
        let identity = |found: &Metadata| (found.dev(), found.ino());
        let Ok(held) = self.file.metadata() else {
            return true;
        };
        match fs::metadata(&self.path) {
            Ok(found) => identity(&found) == identity(&held),
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ),
        }
    }

    /// Keeps servers out while a directory is only read; works for a read-only directory, too. Returns `None` if no
    /// server ever ran there, so that there is no file to lock.
    ///
    /// # Errors
    /// A server holds the lock, or a disk error.
    pub fn take_to_read(data_dir: &Path) -> Result<Option<Self>, LockError> {
        let path = data_dir.join(LOCK_NAME);
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io(&path))?,
        };
        let locked = file.try_lock_shared();
        check_locked(locked, &mut file, data_dir)?;
        Ok(Some(Self { file, path }))
    }
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> LockError {
    let path = path.to_owned();
    move |source| LockError::Io { path, source }
}

fn check_locked(locked: Result<(), TryLockError>, file: &mut File, data_dir: &Path) -> Result<(), LockError> {
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => LockError::Held {
            data_dir: data_dir.to_owned(),
            pid: holder(file),
        },
        TryLockError::Error(source) => LockError::Io {
            path: data_dir.join(LOCK_NAME),
            source,
        },
    })
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    file.sync_all()
}

fn holder(file: &mut File) -> Option<u32> {
    for _ in 0..HOLDER_READS_MAX {
        let mut text = String::new();
        if file.rewind().is_ok() && file.read_to_string(&mut text).is_ok() && text.ends_with('\n') {
            return text.trim().parse().ok();
        }
        sleep(HOLDER_PAUSE);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_learns_which_one_holds_the_lock() {
        let data_dir = std::env::temp_dir().join(format!("tidewatch-lock-{}", std::process::id()));
        let held = DirectoryLock::take(&data_dir).unwrap();
        let refused = DirectoryLock::take(&data_dir).unwrap_err();
        assert!(matches!(refused, LockError::Held { pid: Some(pid), .. } if pid == std::process::id()));
        assert!(refused.to_string().contains(&std::process::id().to_string()));
        DirectoryLock::take_to_read(&data_dir).unwrap_err();
        drop(held);
        let read = std::fs::read(data_dir.join(LOCK_NAME)).unwrap();
        let reading = DirectoryLock::take_to_read(&data_dir).unwrap();
        assert!(reading.is_some());
        DirectoryLock::take(&data_dir).unwrap_err();
        drop(reading);
        assert_eq!(std::fs::read(data_dir.join(LOCK_NAME)).unwrap(), read);
        drop(DirectoryLock::take(&data_dir).unwrap());
        assert!(data_dir.join(LOCK_NAME).exists());
        std::fs::remove_dir_all(&data_dir).unwrap();
    }
}
