//! Checkpoints and recovery: what keeps a restart short.
//!
//! A checkpoint seals what only the log holds into a segment and runs of the ledger, names them in the manifest, and only
//! then lets the log drop what they cover. Recovery reads the manifest, the catalog and the footers, and replays the
//! rest of the log through the same `apply` that serves live traffic. This room composes catalog, buckets and journal; it is
//! called at start and stop, by its own thread in between, and knows nothing of HTTP.

mod buckets;
mod checkpointer;
mod expiry;
pub mod format_1;
mod layout;
mod manifest;
mod merging;
mod open;
mod open_error;
mod schedule;
mod sealing;
mod segments;
mod set_apart;
mod start;
mod task;
mod usage;

pub use checkpointer::{CheckpointError, CheckpointStats, Checkpointer};
pub use format_1::{BucketDir, Damage, convert};
pub use layout::Layout;
pub use manifest::{BucketMark, Manifest, ManifestError, SEQUENCES_UNKNOWN_MAX, flip_of_manifest};
pub use open::{BucketFault, Opened, Recovered, RecoveryTimes, open};
pub use open_error::OpenError;
pub use segments::{SegmentError, SegmentsDir, shared};
#[cfg(test)]
pub(crate) use start::start_on;
pub use start::{Rooms, start};

#[cfg(test)]
pub(crate) mod tests;
