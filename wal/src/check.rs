//! Reads a whole log and reports on it in bounded memory, without modifying it. Used by the operator's `check` command,
//! and by `repair` to find out what to cut.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Sequence;
use crate::error::{Damage, LogError};
use crate::recover::TornTail;
use crate::walk::{AtDamage, walk};
use disk::Disk;

/// Contents of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The log's files, oldest first: those with a valid header, and those behind damage that were read nevertheless.
    pub files: Vec<FileReport>,
    /// Valid frames.
    pub frames: u64,
    /// Valid records.
    pub records: u64,
    /// First sequence; `None` for a log without files.
    pub first_sequence: Option<Sequence>,
    /// Last sequence; 0 when there is none, and none were trimmed.
    pub last_sequence: Sequence,
    /// The highest sequence of a valid record; with damage it may be another than the last.
    pub(crate) highest_sequence: Sequence,
    /// Size of all files in bytes, valid or not.
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
    /// Offset of the last write, which may not have reached the disk: the last frame, or the header if there is none.
    pub(crate) last_offset: u64,
    /// Checksum of that frame or header.
    pub(crate) crc: u32,
    /// Whether everything up to the end of the last valid frame is valid.
    pub(crate) clean: bool,
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
    walk(disk, dir, None, AtDamage::Continue, |_, _| Ok(()))
}
