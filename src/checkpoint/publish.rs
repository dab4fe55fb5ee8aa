//! Where checkpoints are kept besides the data directory: an interface that the checkpointer calls, so that this room
//! knows no object store.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::manifest::Manifest;

/// Keeps checkpoints besides the data directory. Called by the checkpointer's thread.
pub trait Publish: Send {
    /// A manifest is in force. Its files exist during this call; they may be removed afterwards, so what is still
    /// needed of them must be kept open. Must not wait for another machine.
    fn offer(&mut self, manifest: &Manifest);

    /// Called before the log is trimmed to what the offered manifest covers. In a cluster, where a disk may be lost with
    /// its node, this returns the name of what holds the manifest elsewhere, once it is stored; the log notes it together with
    /// the trim. A server on one machine does not wait.
    ///
    /// # Errors
    /// It is not stored. The log keeps its records, and the next checkpoint tries again.
    fn before_trim(&mut self) -> Result<Option<String>, Box<dyn Error + Send + Sync>>;

    /// The log is trimmed, and names what `before_trim` returned.
    fn trimmed(&mut self) {}

    /// A checkpoint is taken at least this often, so that what is only in the data directory is bounded.
    fn period(&self) -> Duration;

    /// What was published so far.
    fn figures(&self) -> Arc<PublishFigures>;
}

/// Counters of what was published, since the start of the server.
#[derive(Debug, Default)]
pub struct PublishFigures {
    /// Checkpoints published.
    pub published: AtomicU64,
    /// Attempts that failed.
    pub failures: AtomicU64,
    /// Objects stored.
    pub uploads: AtomicU64,
    /// Bytes of these.
    pub upload_bytes: AtomicU64,
    /// Objects deleted, because no kept checkpoint needs them.
    pub deleted: AtomicU64,
    /// Files that the last published checkpoint names.
    pub files: AtomicU64,
    /// Last record that the last published checkpoint covers.
    pub covered: AtomicU64,
    /// When everything that the last checkpoint covers was published, in monotonic nanoseconds; 0 before the first.
    pub published_at_ns: AtomicI64,
}

impl PublishFigures {
    /// The sum over two shards of a node. The age is that of the one that was published longer ago.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |own: &AtomicU64, more: &AtomicU64| {
            AtomicU64::new(own.load(Ordering::Relaxed) + more.load(Ordering::Relaxed))
        };
        let at_ns = |figures: &Self| figures.published_at_ns.load(Ordering::Relaxed);
        PublishFigures {
            published: sum(&self.published, &other.published),
            failures: sum(&self.failures, &other.failures),
            uploads: sum(&self.uploads, &other.uploads),
            upload_bytes: sum(&self.upload_bytes, &other.upload_bytes),
            deleted: sum(&self.deleted, &other.deleted),
            files: sum(&self.files, &other.files),
            covered: sum(&self.covered, &other.covered),
            published_at_ns: AtomicI64::new(match (at_ns(self), at_ns(other)) {
                (0, at_ns) | (at_ns, 0) => at_ns,
                (own_ns, other_ns) => own_ns.min(other_ns),
            }),
        }
    }
}
