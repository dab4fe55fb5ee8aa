//! A write-ahead log of byte records, and the narrow disk it stands on.
//!
//! The crate knows bytes, sequence numbers and checksums, and nothing of what the records mean: typed
//! records live above it. It never reads a clock, never spawns a thread and never retries a failed sync.
//! The bytes are drawn in `FORMAT.md`.
//!
//! Reading order: [`disk`] (the port to files), `frame` and `file` (the bytes), `reader` and `walk` (what
//! is found on disk, and the one decision about torn tails and damage), `recover` (how a log is opened),
//! [`Log`] (append, sync, trim), [`check`], [`flip_of_file`] and [`repair`] (the operator's tools), `live` (copying a log in
//! use).

#![warn(missing_docs)]

mod check;
mod create;
pub mod disk;
mod error;
mod file;
mod flip;
mod frame;
mod live;
mod log;
mod mend;
mod reader;
mod recover;
mod repair;
mod walk;

pub use check::{CheckReport, FileReport, check};
pub use error::{Damage, DamageKind, FrameFault, HeaderFault, LogError, OpenError};
pub use file::FORMAT_VERSION;
pub use flip::{FLIP_BYTES_MAX, Flip};
pub use frame::FRAME_BYTES_LIMIT;
pub use live::{files, records, whole_bytes};
pub use log::{Counters, Log, LogOptions};
pub use mend::flip_of_file;
pub use recover::{Recovery, Replay, TornTail};
pub use repair::{RepairReport, repair};

/// Number of a record within its log: dense, the first record is 1, 0 means "before the first".
pub type Sequence = u64;

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
