//! Reads a whole log and reports on it, without altering a byte and in bounded memory. For the operator's
//! `check` command; also how `repair` finds out what to cut.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::disk::Disk;
use crate::error::{Damage, LogError};
use crate::recover::TornTail;
use crate::walk::{Visitor, Walk, walk};

/// Damages that are listed; further ones are only counted, so that a wholly rotten log cannot fill memory.
const DAMAGES_LISTED_MAX: usize = 1_000;

/// What a log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// Its files, oldest first.
    pub files: Vec<FileReport>,
    /// Valid frames.
    pub frames: u64,
    /// Valid records.
    pub records: u64,
    /// First sequence; `None` for a log without files.
    pub first_sequence: Option<Sequence>,
    /// Last sequence; 0 when there is none.
    pub last_sequence: Sequence,
    /// Bytes of all its files.
    pub bytes: u64,
    /// What a crash left behind the last whole frame; opening the log will cut it off.
    pub torn_tail: Option<TornTail>,
    /// Where the log is not what was written, in order; empty for a sound log. At most 1,000 are listed.
    pub damages: Vec<Damage>,
    /// How many there are.
    pub damages_total: u64,
    /// Names in the directory that are no log files. They are left alone.
    pub ignored: Vec<OsString>,
}

/// What one log file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Its first sequence.
    pub first_sequence: Sequence,
    /// Its last valid sequence; one before its first when it has no records.
    pub last_sequence: Sequence,
    /// Its valid frames.
    pub frames: u64,
    /// Its valid records.
    pub records: u64,
    /// End of its last valid frame, in bytes.
    pub bytes: u64,
}

impl CheckReport {
    /// Whether the log can be opened (a torn tail does not hinder it).
    pub fn is_sound(&self) -> bool {
        self.damages_total == 0
    }
}

/// Reads the log in `dir` and reports. Goes on behind damage, to tell what would still be readable.
/// Fails only when the disk does, or the log is of a later version.
pub fn check(disk: &dyn Disk, dir: &Path) -> Result<CheckReport, LogError> {
    survey(disk, dir, None).map(|(report, _)| report)
}

/// [`check`], told what the owner of the log does not need; also answers the highest valid sequence.
pub(crate) fn survey(
    disk: &dyn Disk,
    dir: &Path,
    from: Option<Sequence>,
) -> Result<(CheckReport, Sequence), LogError> {
    let mut checker = Checker {
        damages: Vec::new(),
        damages_total: 0,
        highest: 0,
    };
    let Walk {
        files,
        torn,
        ignored,
        last_sequence,
        bytes,
    } = walk(disk, dir, from, &mut checker)?;
    let report = CheckReport {
        frames: files.iter().map(|file| file.frames).sum(),
        records: files.iter().map(|file| file.records).sum(),
        first_sequence: files.first().map(|file| file.first_sequence),
        last_sequence,
        bytes,
        torn_tail: torn.map(|torn| torn.tail),
        damages: checker.damages,
        damages_total: checker.damages_total,
        ignored,
        files: files
            .into_iter()
            .map(|file| FileReport {
                path: file.path,
                first_sequence: file.first_sequence,
                last_sequence: file.last_sequence,
                frames: file.frames,
                records: file.records,
                bytes: file.bytes,
            })
            .collect(),
    };
    Ok((report, checker.highest))
}

struct Checker {
    damages: Vec<Damage>,
    damages_total: u64,
    highest: Sequence,
}

impl Visitor for Checker {
    type Error = LogError;

    fn record(&mut self, sequence: Sequence, _payload: &[u8]) -> Result<(), LogError> {
        self.highest = self.highest.max(sequence);
        Ok(())
    }

    fn damage(&mut self, damage: Damage) -> Result<(), LogError> {
        self.damages_total += 1;
        if self.damages.len() < DAMAGES_LISTED_MAX {
            self.damages.push(damage);
        }
        Ok(())
    }
}
