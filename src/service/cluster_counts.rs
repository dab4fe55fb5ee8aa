//! What a node of a cluster counts, since its start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters, which requests and the node's tasks add to.
#[derive(Debug, Default)]
pub struct ClusterCounts {
    opened: AtomicU64,
    opening_ns: AtomicU64,
    handed_over: AtomicU64,
    paused_ns: AtomicU64,
    dropped: AtomicU64,
    forwarded: AtomicU64,
    unanswered: AtomicU64,
}

/// The counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    /// Shards of the cluster.
    pub shards: u64,
    /// Shards that this node serves.
    pub served: u64,
    /// Whether the lease holds.
    pub holds_lease: bool,
    /// Shards opened, and the time from their claims until they were served.
    pub opened: u64,
    pub opening_ns: u64,
    /// Shards handed over, and the time in which nobody served them because of this node.
    pub handed_over: u64,
    pub paused_ns: u64,
    /// Shards that another node has taken, or whose log had to be read again.
    pub dropped: u64,
    /// Requests that the owner of their shard has answered.
    pub forwarded: u64,
    /// Requests whose owner did not answer in time.
    pub unanswered: u64,
}

fn add(counter: &AtomicU64, time: Duration) {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    counter.fetch_add(nanoseconds, Ordering::Relaxed);
}

impl ClusterCounts {
    pub fn opened(&self, took: Duration) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        add(&self.opening_ns, took);
    }

    pub fn handed_over(&self, paused: Duration) {
        self.handed_over.fetch_add(1, Ordering::Relaxed);
        add(&self.paused_ns, paused);
    }

    pub fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub fn forwarded(&self) {
        self.forwarded.fetch_add(1, Ordering::Relaxed);
    }

    pub fn unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> ClusterFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ClusterFigures {
            opened: read(&self.opened),
            opening_ns: read(&self.opening_ns),
            handed_over: read(&self.handed_over),
            paused_ns: read(&self.paused_ns),
            dropped: read(&self.dropped),
            forwarded: read(&self.forwarded),
            unanswered: read(&self.unanswered),
            ..ClusterFigures::default()
        }
    }
}
