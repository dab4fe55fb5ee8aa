//! Errors of a log. The messages tell an operator what to do. Each has structured fields and a source chain; the server
//! maps them to its own error kinds.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::Sequence;

/// Why an operation on a log failed.
#[derive(Debug, Error)]
pub enum LogError {
    /// The disk or its quota is full. The log was cut back to its last complete frame and stays usable: free
    /// some space and append again.
    #[error("the disk is full: log file {path} cannot grow; free some space")]
    Full {
        /// File that could not grow.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Too many files are open to create another one. Nothing was written; append again when some are closed.
    #[error(
        "too many files are open to open {path}; raise the limit of open files, or use fewer connections"
    )]
    Descriptors {
        /// File or directory that could not be opened.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The records do not fit into one frame. Nothing was written; append them in smaller groups.
    #[error(
        "the records take {bytes} bytes in one frame, at most {bytes_max} are allowed; append fewer at once"
    )]
    FrameTooLarge {
        /// Size of the frame in bytes.
        bytes: u64,
        /// Maximum size of a frame of this log in bytes.
        bytes_max: u32,
    },
    /// A write or sync failed, now or earlier. The log accepts no more records until it is opened again.
    #[error("the log accepts no more records because a write or sync failed; fix the disk, then restart")]
    Poisoned {
        /// The first failure.
        #[source]
        cause: Arc<LogError>,
    },
    /// An I/O error while the log was read, opened or written.
    #[error("cannot {action} {path}; fix the disk, then restart")]
    Io {
        /// Operation that failed: "write", "sync", "read" …
        action: &'static str,
        /// File or directory that it was applied to.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The log differs from what was written. Nothing on disk was modified.
    #[error("{0}; nothing was modified: restore the file, or check the log and repair it explicitly")]
    Damaged(Box<Damage>),
    /// A file was written by a later version of the program. Nothing on disk was modified.
    #[error(
        "log file {path} has format version {found}, this program reads up to {supported}; \
         start the version that wrote it"
    )]
    UnsupportedVersion {
        /// The log file.
        path: PathBuf,
        /// Format version of the file.
        found: u32,
        /// Latest format version that this program reads.
        supported: u32,
    },
}

/// Why a log could not be opened.
#[derive(Debug, Error)]
pub enum OpenError<E> {
    /// The log could not be read or prepared.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The caller's replay callback rejected a record.
    #[error("record {sequence} of the log cannot be applied")]
    Replay {
        /// Sequence of the record.
        sequence: Sequence,
        /// Error of the callback.
        source: E,
    },
}

/// One place where a log differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The damaged file, or the file before which one is missing.
    pub path: PathBuf,
    /// Offset in the file at which the damage begins, in bytes.
    pub offset: u64,
    /// Sequence of the first record expected there.
    pub sequence: Sequence,
    /// Type of the damage.
    pub kind: DamageKind,
}

/// Type of a damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DamageKind {
    /// A frame is invalid, and it is not a torn tail.
    Frame {
        /// What is wrong with the frame.
        fault: FrameFault,
        /// Offset and first sequence of the next valid frame in the same file. `None` if the file has none, but
        /// other bytes or later files follow.
        next: Option<(u64, Sequence)>,
    },
    /// The header of a file is invalid.
    Header(HeaderFault),
    /// A valid frame has another sequence than expected.
    Gap {
        /// First sequence of the frame.
        found: Sequence,
    },
    /// Records before this file are missing: it begins later than expected (or earlier, if files were mixed up).
    MissingFile {
        /// First sequence of the file.
        found: Sequence,
    },
    /// The header of a file names another predecessor than the file before it.
    Predecessor {
        /// First sequence of the predecessor that the header names.
        expected: Sequence,
        /// Length of that predecessor in bytes.
        expected_bytes: u64,
        /// First sequence of the file before this one.
        found: Sequence,
        /// Valid length of that file in bytes.
        found_bytes: u64,
    },
    /// The log ends before a record that its owner has read from it.
    EndsEarly {
        /// Last sequence that the owner has read from this log.
        covered: Sequence,
    },
}

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// The file ends before the frame does.
    #[error("the frame needs {needed} bytes, the file has {found} left")]
    Short {
        /// Bytes that the frame needs.
        needed: u64,
        /// Bytes that are left in the file.
        found: u64,
    },
    /// No frame begins here.
    #[error("no frame begins here, found bytes {:08x}", u32::from_be_bytes(*found))]
    Magic {
        /// The bytes found instead.
        found: [u8; 4],
    },
    /// The frame's header does not match its checksum.
    #[error("frame header checksum expected {expected:08x}, found {found:08x}")]
    HeaderChecksum {
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The frame's payload does not match its checksum.
    #[error("frame payload checksum expected {expected:08x}, found {found:08x}")]
    PayloadChecksum {
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The header claims a frame size above the limit.
    #[error("the frame claims {bytes} bytes, which is over the limit")]
    TooLarge {
        /// Claimed size in bytes.
        bytes: u64,
    },
    /// The checksums match, but kind, count and lengths contradict each other.
    #[error("the frame's kind, count and lengths contradict each other")]
    Layout,
}

/// What is wrong with the header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderFault {
    /// The file is shorter than its header.
    #[error("the file has only {found} bytes")]
    Short {
        /// Length of the file in bytes.
        found: u64,
    },
    /// The file does not begin with the magic number of log files.
    #[error("it does not begin with the magic number of a log file")]
    Magic,
    /// The header does not match its checksum.
    #[error("checksum expected {expected:08x}, found {found:08x}")]
    Checksum {
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The header has another first sequence than the file's name.
    #[error("it says the file begins with record {found}")]
    Name {
        /// First sequence in the header.
        found: Sequence,
    },
}

impl LogError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
        move |source| LogError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the log stays usable once there is space on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self, LogError::Full { .. })
    }

    /// Whether the error is transient: the log stays usable once there is space on the disk, or files are closed.
    pub fn is_passing(&self) -> bool {
        matches!(self, LogError::Full { .. } | LogError::Descriptors { .. })
    }
}

impl From<Damage> for LogError {
    fn from(damage: Damage) -> Self {
        LogError::Damaged(Box::new(damage))
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, offset, sequence) = (self.path.display(), self.offset, self.sequence);
        match &self.kind {
            DamageKind::Frame { fault, next } => {
                write!(
                    f,
                    "log file {path} is damaged at offset {offset}, where record {sequence} was expected: {fault}; "
                )?;
                match next {
                    Some((at, found)) => {
                        write!(f, "a valid frame with record {found} follows at offset {at}")
                    }
                    None => f.write_str("later writes follow it"),
                }
            }
            DamageKind::Header(fault) => write!(
                f,
                "log file {path}, which must begin with record {sequence}, has a damaged header: {fault}"
            ),
            DamageKind::Gap { found } => write!(
                f,
                "log file {path} has a gap at offset {offset}: expected record {sequence}, found record {found}"
            ),
            DamageKind::MissingFile { found } => write!(
                f,
                "a log file is missing before {path}: expected record {sequence}, found record {found} at offset {offset}"
            ),
            DamageKind::Predecessor {
                expected,
                expected_bytes,
                found,
                found_bytes,
            } => write!(
                f,
                "log file {path} names another predecessor: expected one beginning with record {expected} and {expected_bytes} bytes long, found record {found} and {found_bytes} bytes"
            ),
            DamageKind::EndsEarly { covered } => write!(
                f,
                "the log ends too early: {path} ends at offset {offset}, expected record {sequence} in it because records up to {covered} were read from it before"
            ),
        }
    }
}
