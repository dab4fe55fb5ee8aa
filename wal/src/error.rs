//! What can go wrong with a log, in words that tell an operator what to do. Structured, with a source
//! chain; the server maps these to its own kinds.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Sequence;

/// Why a log did not do what it was asked.
#[derive(Debug)]
pub enum LogError {
    /// The disk or its quota is full. The log was cut back to its last whole frame and stays usable: free
    /// some space and append again.
    Full {
        /// File that could not grow.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// Too many files are open to begin another one. Nothing was written; append again when some are closed.
    Descriptors {
        /// File or directory that could not be opened.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The records are more than one frame may hold. Nothing was written; append them in smaller groups.
    FrameTooLarge {
        /// Bytes the frame would have.
        bytes: u64,
        /// Bytes a frame of this log may have.
        bytes_max: u32,
    },
    /// A write or sync failed, now or earlier. Nothing will be appended until the log is opened again.
    Poisoned {
        /// The first failure.
        cause: Arc<LogError>,
    },
    /// The disk failed while the log was read, opened or written.
    Io {
        /// What was being done: "write", "sync", "read" …
        action: &'static str,
        /// File or directory it was done to.
        path: PathBuf,
        /// What the disk said.
        source: io::Error,
    },
    /// The log is not what was written. Nothing on disk was altered.
    Damaged(Box<Damage>),
    /// A file was written by a later version of the program. Nothing on disk was altered.
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The latest version this program reads.
        supported: u32,
    },
}

/// Why a log could not be opened.
#[derive(Debug)]
pub enum OpenError<E> {
    /// The log itself.
    Log(LogError),
    /// The caller's replay refused a record.
    Replay {
        /// The record.
        sequence: Sequence,
        /// What the caller said.
        source: E,
    },
}

/// One place where a log is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The damaged file, or the file before which one is missing.
    pub path: PathBuf,
    /// Offset in the file from which on it cannot be trusted, in bytes.
    pub offset: u64,
    /// Sequence of the first record that should have stood there.
    pub sequence: Sequence,
    /// What is wrong.
    pub kind: DamageKind,
}

/// What is wrong at one place of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DamageKind {
    /// A frame is bad, and it is no torn tail.
    Frame {
        /// What is wrong with it.
        fault: FrameFault,
        /// Offset and first sequence of the next valid frame in the same file; none when nothing valid
        /// follows in it, but something does, or later files do.
        next: Option<(u64, Sequence)>,
    },
    /// The header of a file is bad.
    Header(HeaderFault),
    /// A valid frame has another sequence than the one due.
    Gap {
        /// First sequence the frame has.
        found: Sequence,
    },
    /// Records before this file are missing: it begins later than the one due (or earlier, when files
    /// were mixed up).
    MissingFile {
        /// First sequence of the file.
        found: Sequence,
    },
    /// The file names another predecessor than the one that stands before it.
    Predecessor {
        /// First sequence of the predecessor it was written behind.
        expected: Sequence,
        /// Length of that predecessor in bytes.
        expected_bytes: u64,
        /// First sequence of the file that stands before it.
        found: Sequence,
        /// Valid length of that file in bytes.
        found_bytes: u64,
    },
    /// The log ends before what its owner says it once held.
    EndsEarly {
        /// Last sequence the owner has from this log.
        covered: Sequence,
    },
}

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault {
    /// The file ends before the frame does.
    Short {
        /// Bytes the frame needs.
        needed: u64,
        /// Bytes that are left in the file.
        found: u64,
    },
    /// No frame begins here.
    Magic {
        /// The bytes found instead.
        found: [u8; 4],
    },
    /// The frame's header does not match its checksum.
    HeaderChecksum {
        /// The checksum stored.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The frame's payload does not match its checksum.
    PayloadChecksum {
        /// The checksum stored.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The frame claims to be larger than any frame may be.
    TooLarge {
        /// Bytes it claims.
        bytes: u64,
    },
    /// The checksums hold, but kind, count and lengths do not fit together.
    Layout,
}

/// What is wrong with the header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// The file is shorter than its header.
    Short {
        /// Length of the file in bytes.
        found: u64,
    },
    /// The file does not begin as a log file does.
    Magic,
    /// The header does not match its checksum.
    Checksum {
        /// The checksum stored.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The header has another first sequence than the file's name.
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

    /// Whether the log may be used again once there is room on the disk.
    pub fn is_full(&self) -> bool {
        matches!(self, LogError::Full { .. })
    }

    /// Whether the log may be used again once there is room on the disk, or files are closed.
    pub fn is_passing(&self) -> bool {
        matches!(self, LogError::Full { .. } | LogError::Descriptors { .. })
    }
}

impl From<Damage> for LogError {
    fn from(damage: Damage) -> Self {
        LogError::Damaged(Box::new(damage))
    }
}

impl<E> From<LogError> for OpenError<E> {
    fn from(error: LogError) -> Self {
        OpenError::Log(error)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Full { path, .. } => {
                write!(
                    f,
                    "the disk is full: log file {} cannot grow; free some space",
                    path.display()
                )
            }
            LogError::Descriptors { path, .. } => {
                write!(
                    f,
                    "too many files are open to open {}; raise the limit of open files, or have fewer connections",
                    path.display()
                )
            }
            LogError::FrameTooLarge { bytes, bytes_max } => write!(
                f,
                "the records take {bytes} bytes in one frame, at most {bytes_max} are allowed; append fewer at once"
            ),
            LogError::Poisoned { .. } => f.write_str(
                "the log takes no more records since a write or sync failed; mend the disk, then restart",
            ),
            LogError::Io { action, path, .. } => {
                write!(
                    f,
                    "cannot {action} {}; mend the disk, then restart",
                    path.display()
                )
            }
            LogError::Damaged(damage) => write!(
                f,
                "{damage}; nothing was altered: restore the file, or check the log and repair it explicitly"
            ),
            LogError::UnsupportedVersion {
                path,
                found,
                supported,
            } => write!(
                f,
                "log file {} has format version {found}, this program reads up to {supported}; start the version that wrote it",
                path.display()
            ),
        }
    }
}

impl Error for LogError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LogError::Full { source, .. }
            | LogError::Descriptors { source, .. }
            | LogError::Io { source, .. } => Some(source),
            LogError::Poisoned { cause } => Some(cause.as_ref()),
            LogError::FrameTooLarge { .. } | LogError::Damaged(_) | LogError::UnsupportedVersion { .. } => {
                None
            }
        }
    }
}

impl<E: fmt::Display> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Log(error) => error.fmt(f),
            OpenError::Replay { sequence, .. } => write!(f, "record {sequence} of the log cannot be applied"),
        }
    }
}

impl<E: Error + 'static> Error for OpenError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::Log(error) => error.source(),
            OpenError::Replay { source, .. } => Some(source),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage {
            path,
            offset,
            sequence,
            kind,
        } = self;
        let path = path.display();
        match kind {
            DamageKind::Frame {
                fault,
                next: Some((at, found)),
            } => write!(
                f,
                "log file {path} is damaged at offset {offset}, where record {sequence} was due: {fault}; a valid frame with record {found} follows at offset {at}"
            ),
            DamageKind::Frame { fault, next: None } => write!(
                f,
                "log file {path} is damaged at offset {offset}, where record {sequence} was due: {fault}; more was written behind it"
            ),
            DamageKind::Header(fault) => {
                write!(
                    f,
                    "log file {path}, due to begin with record {sequence}, has a damaged header: {fault}"
                )
            }
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
                "log file {path} was written behind another file: expected one beginning with record {expected} and {expected_bytes} bytes long, found record {found} and {found_bytes} bytes"
            ),
            DamageKind::EndsEarly { covered } => write!(
                f,
                "the log ends too early: {path} ends at offset {offset}, expected record {sequence} in it since records up to {covered} were read from it before"
            ),
        }
    }
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameFault::Short { needed, found } => {
                write!(f, "the frame needs {needed} bytes, the file has {found} left")
            }
            FrameFault::Magic { found } => {
                write!(
                    f,
                    "no frame begins here, found bytes {:08x}",
                    u32::from_be_bytes(*found)
                )
            }
            FrameFault::HeaderChecksum { expected, found } => {
                write!(
                    f,
                    "frame header checksum expected {expected:08x}, found {found:08x}"
                )
            }
            FrameFault::PayloadChecksum { expected, found } => {
                write!(
                    f,
                    "frame payload checksum expected {expected:08x}, found {found:08x}"
                )
            }
            FrameFault::TooLarge { bytes } => {
                write!(f, "the frame claims {bytes} bytes, more than any may have")
            }
            FrameFault::Layout => f.write_str("the frame's kind, count and lengths do not fit together"),
        }
    }
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderFault::Short { found } => write!(f, "the file has only {found} bytes"),
            HeaderFault::Magic => f.write_str("it does not begin as a log file does"),
            HeaderFault::Checksum { expected, found } => {
                write!(f, "checksum expected {expected:08x}, found {found:08x}")
            }
            HeaderFault::Name { found } => write!(f, "it says the file begins with record {found}"),
        }
    }
}
