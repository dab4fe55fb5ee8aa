//! Reads a whole log and reports on it in bounded memory, without modifying it. Used by the operator's `check` command,
//! and by `repair` to find out what to cut.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::error::{Damage, LogError};
use crate::recover::TornTail;
use crate::walk::{Visitor, Walk, walk};
use disk::Disk;

/// Maximum number of damages listed. Further ones are only counted, so that a fully corrupt log cannot fill memory.
const DAMAGES_LISTED_MAX: usize = 1_000;

/// Contents of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The log's files, oldest first.
    pub files: Vec<FileReport>,
    /// Valid frames.
    pub frames: u64,
    /// Valid records.
    pub records: u64,
    /// First sequence; `None` for a log without files.
    pub first_sequence: Option<Sequence>,
    /// Last sequence; 0 when there is none.
    pub last_sequence: Sequence,
    /// Size of all files in bytes.
    pub bytes: u64,
    /// What a crash left behind the last complete frame; opening the log will cut it off.
    pub torn_tail: Option<TornTail>,
    /// Where the log differs from what was written, in order; empty for a sound log. At most 1,000 are listed.
    pub damages: Vec<Damage>,
    /// Number of damages, listed or not.
    pub damages_total: u64,
    /// Names in the directory that are not log files. They are ignored.
    pub ignored: Vec<OsString>,
}

/// Contents of one log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Path of the file.
    pub path: PathBuf,
    /// First sequence, from the file's name.
    pub first_sequence: Sequence,
    /// Last valid sequence; one before the first if the file has no records.
    pub last_sequence: Sequence,
    /// Number of valid frames.
    pub frames: u64,
    /// Number of valid records.
    pub records: u64,
    /// End of the last valid frame, in bytes.
    pub bytes: u64,
}

impl CheckReport {
    /// Whether the log can be opened. A torn tail does not prevent that.
    pub fn is_sound(&self) -> bool {
        self.damages_total == 0
    }
}

/// Reads the log in `dir` and reports on it. Continues behind damage, to report what is still readable. Fails only on
/// I/O errors, or if the log was written by a later version.
pub fn check(disk: &dyn Disk, dir: &Path) -> Result<CheckReport, LogError> {
    survey(disk, dir, None).map(|(report, _)| report)
}

/// Like [`check`], given the last sequence that the log's owner does not need. Also returns the highest valid sequence.
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
        torn_tail: torn,
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
