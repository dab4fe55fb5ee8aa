//! Checkpoints in an object store: published as the server goes, and restored into an empty data directory. Documented
//! in FORMAT.md.
//!
//! A checkpoint is a *root*, an object that names all others: the manifest, and for each file that it names an object
//! with its length and SHA-256. Publishing uploads the files that no object has yet, then the root, so that a checkpoint
//! is there completely or not at all. No name is ever used twice. Called by the checkpointer through
//! [`crate::checkpoint::Publish`], by start and stop, and by the command line. It never reads the log: what is behind
//! the last checkpoint is not published.

mod background;
mod checkpoints;
mod counted;
mod epoch;
mod error;
mod held;
mod kept;
mod names;
mod offer;
mod publisher;
mod restore;
mod root;
mod sweep;
mod synchronous;
mod take_over;

pub use background::Publishing;
pub use checkpoints::{Checkpoint, Choice, checkpoints};
pub use epoch::Epochs;
pub use error::RemoteError;
pub use publisher::{Published, Publisher, PublisherOptions};
pub use restore::{fetch, restore, verify};
pub use root::Root;
pub use synchronous::PublishAndWait;
pub use take_over::{TakenOver, take_over};

#[cfg(test)]
pub(crate) use restore::restore_to;

/// The shard of a server on one machine.
pub const THE_SHARD: u16 = 0;

#[cfg(test)]
mod tests;
