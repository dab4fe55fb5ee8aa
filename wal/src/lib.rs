//! A write-ahead log of byte records, on the file-system interface of the `disk` crate.
//!
//! The crate handles bytes, sequence numbers and checksums. It does not know what the records mean: typed records are
//! defined by its users. It never reads a clock, spawns a thread or retries a failed sync. `FORMAT.md` describes the
//! bytes.
//!
//! Reading order: `frame` and `file` (the bytes), `reader` and `walk` (reading a
//! log, and the one place that tells a torn tail from damage), `recover` (opening a log), [`Log`] (append, sync, trim),
//! [`check()`], [`flip_of_file`] and [`repair()`] (the operator's tools), `live` (copying a log that is in use).

#![warn(missing_docs)]

mod check;
mod create;
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
pub use create::begin;
pub use error::{Damage, DamageKind, FrameFault, HeaderFault, LogError, OpenError};
pub use file::FORMAT_VERSION;
pub use flip::{FLIP_BYTES_MAX, Flip};
pub use frame::FRAME_BYTES_LIMIT;
pub use live::{files, records, whole_bytes};
pub use log::{Counters, Log, LogOptions, SyncPolicy};
pub use mend::flip_of_file;
pub use recover::{Recovery, Replay, TornTail};
pub use repair::{RepairReport, repair};

/// Sequence number of a record in its log. Sequences have no gaps; the first record is 1, 0 means "before the first".
pub type Sequence = u64;

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
