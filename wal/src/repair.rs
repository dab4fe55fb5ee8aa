//! Makes a damaged log usable by cutting it at the first damage. Runs only on explicit request, because it gives up
//! acknowledged records. Everything that is cut is kept in another file.

use std::io;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::create;
use crate::error::{Damage, DamageKind, LogError};
use crate::file::{FILE_HEADER_BYTES, Predecessor};
use crate::walk::{AtDamage, walk};
use disk::Disk;

/// Suffix of the files that keep the cut parts. They are not log files and are ignored from then on.
const ASIDE_SUFFIX: &str = ".cut";

/// Copy buffer size in bytes.
const COPY_BYTES: usize = 256 << 10;

/// Result of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// Where the log was cut; `None` if it was sound and not modified.
    pub damage: Option<Damage>,
    /// Last sequence of the log now; the records after it are lost.
    pub last_sequence: Sequence,
    /// First record that was given up.
    pub lost_from: Option<Sequence>,
    /// Last record given up that was still readable; there may have been more. Smaller than `lost_from` if none was.
    pub lost_to: Option<Sequence>,
    /// Files that keep everything that was cut.
    pub kept_aside: Vec<PathBuf>,
}

/// Cuts the log in `dir` at its first damage, so that opening it with the same `from` succeeds. A sound log is not
/// modified, even if it has a torn tail. An interrupted repair can be repeated.
pub fn repair(disk: &dyn Disk, dir: &Path, from: Sequence) -> Result<RepairReport, LogError> {
    let report = walk::<LogError>(disk, dir, Some(from), AtDamage::Continue, |_, _| Ok(()))?;
    let mut files: Vec<PathBuf> = report.files.iter().map(|file| file.path.clone()).collect();
    // A last file that was torn at its creation is not part of the log, but would conflict with a new one.
    let newborn = report.torn_tail.filter(|tail| tail.offset == 0);
    files.extend(newborn.map(|tail| tail.path));
    let mut kept_aside = Vec::new();
    let Some(damage) = report.damages.first().cloned() else {
        return Ok(RepairReport {
            last_sequence: report.last_sequence,
            ..RepairReport::default()
        });
    };
    // Newest first, each made durable before the next, so that what is left never has a gap.
    let whole_file = damage.offset < FILE_HEADER_BYTES;
    while let Some(path) = files.pop_if(|path| *path > damage.path || (whole_file && *path == damage.path)) {
        kept_aside.push(move_aside(disk, dir, &path)?);
    }
    if !whole_file && !matches!(damage.kind, DamageKind::EndsEarly { .. }) {
        kept_aside.push(copy_aside(disk, dir, &damage.path)?);
        cut(disk, &damage.path, damage.offset)?;
    }
    let mut last_sequence = damage.sequence.saturating_sub(1);
    if last_sequence < from || files.is_empty() {
        // Nothing that the owner needs is left: the log continues behind what the owner has stored elsewhere.
        while let Some(path) = files.pop() {
            kept_aside.push(move_aside(disk, dir, &path)?);
        }
        create::create_file(disk, dir, from + 1, Predecessor::default(), &mut None)?;
        last_sequence = from;
    }
    Ok(RepairReport {
        lost_from: Some(last_sequence + 1),
        lost_to: Some(report.highest_sequence),
        damage: Some(damage),
        last_sequence,
        kept_aside,
    })
}

fn move_aside(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<PathBuf, LogError> {
    let aside = free_name(disk, path)?;
    disk.rename(path, &aside).map_err(LogError::io("rename", path))?;
    disk.sync_dir(dir).map_err(LogError::io("sync", dir))?;
    Ok(aside)
}

fn copy_aside(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<PathBuf, LogError> {
    let aside = free_name(disk, path)?;
    copy(disk, path, &aside).map_err(LogError::io("copy", path))?;
    disk.sync_dir(dir).map_err(LogError::io("sync", dir))?;
    Ok(aside)
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> io::Result<()> {
    let (source, mut target) = (disk.open_read(from)?, disk.create(to)?);
    let bytes = source.len()?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let part = &mut buffer[..COPY_BYTES.min((bytes - offset) as usize)];
        source.read_exact_at(offset, part)?;
        target.write_all_at(offset, part)?;
        offset += part.len() as u64;
    }
    target.sync_data()
}

fn cut(disk: &dyn Disk, path: &Path, offset: u64) -> Result<(), LogError> {
    let mut file = disk.open(path).map_err(LogError::io("open", path))?;
    file.truncate(offset).map_err(LogError::io("truncate", path))?;
    file.sync_data().map_err(LogError::io("sync", path))
}

/// `<file>.cut`, or `<file>.cut.2` and so on if an earlier repair used that name.
fn free_name(disk: &dyn Disk, path: &Path) -> Result<PathBuf, LogError> {
    for number in 1_u64.. {
        let mut name = path.as_os_str().to_owned();
        name.push(ASIDE_SUFFIX);
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let aside = PathBuf::from(name);
        if !disk.exists(&aside).map_err(LogError::io("look up", &aside))? {
            return Ok(aside);
        }
    }
    unreachable!("BUG: every number is taken")
}
