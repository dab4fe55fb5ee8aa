//! Checkpoints and recovery: what keeps a restart short.
//!
//! A checkpoint seals what only the log holds into segment files, writes the catalog's snapshot, and only then lets
//! the log drop what both cover. Recovery reads the snapshot, the manifests and the footers, and replays the rest of
//! the log through the same `apply` that serves live traffic. This room composes catalog, buckets and journal; it is
//! called at start and stop, by its own thread in between, and knows nothing of HTTP.

mod checkpointer;
mod expiry;
mod layout;
mod merging;
mod open;
mod schedule;
mod sealing;
mod set_apart;
mod start;
mod task;

pub use checkpointer::{CheckpointError, CheckpointStats, Checkpointer};
pub use layout::{CatalogError, Layout, Snapshot};
pub use open::{BucketFault, OpenError, Opened, Recovered, open};
#[cfg(test)]
pub(crate) use start::start_on;
pub use start::{Rooms, start};

#[cfg(test)]
pub(crate) mod tests;
