//! Checkpoints and recovery, which keep restarts short.
//!
//! A checkpoint writes everything that only the log holds to a segment and to runs of the ledger, names these files in
//! the manifest, and only then trims the log. Recovery reads the manifest, the catalog and the segment footers, and
//! replays the rest of the log through the same `apply` that serves live traffic. This room composes catalog, buckets
//! and journal. It is called at start and stop, and by its own thread in between. It knows nothing of HTTP.

mod buckets;
mod checkpointer;
mod data_dir;
mod deleting;
mod error;
mod expiry;
mod forgetting;
pub mod format_1;
mod layout;
mod manifest;
mod merging;
mod open;
mod open_error;
mod pools;
mod publish;
mod restoring;
mod rewriting;
mod schedule;
mod sealing;
mod segments;
mod set_apart;
mod start;
mod task;
mod usage;

pub use checkpointer::{CheckpointStats, Checkpointer};
pub use data_dir::DataDir;
pub use deleting::DeletionRecord;
pub use error::CheckpointError;
pub use format_1::{Damage, convert};
pub use layout::{Layout, at, message};
pub use manifest::{
    BlocksVersion, BucketMark, Manifest, ManifestError, ManifestVersion, NamedFile, SEQUENCES_UNKNOWN_MAX,
    SegmentsVersion, flip_of_manifest,
};
pub use open::{Opened, Recovered, RecoveryTimes, load_catalog, open};
pub use open_error::OpenError;
pub use pools::{PoolOptions, Pools};
pub use publish::{Publish, PublishFigures};
pub(crate) use restoring::Restoring;
pub use segments::{HeldElsewhere, SegmentElsewhere, SegmentError, shared, write_segment};
#[cfg(test)]
pub(crate) use start::start_local;
pub use start::{Rooms, StoredHome, start, start_pools, start_stored};

#[cfg(test)]
pub(crate) mod tests;
