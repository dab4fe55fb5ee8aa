//! A bounded cache on the local disk of parts of objects, so that a segment can be read whose blocks are in an object
//! store. One cache for all shards of a node, in one file.
//!
//! An object is divided into *extents* of equal length. The cache's file is divided into slots of that length; each holds
//! an extent, or nothing. [`RemoteFile`] is an object as the engine reads it; [`ExtentCache`] finds its extents in the
//! file, or has them downloaded; `slots` decides which extent gives way. What a slot holds is not checked here: readers
//! compare the checksums of what they read, and ask for the original if one does not match. The file is worth nothing
//! after the process ends, and is never synced.

mod cache;
mod load;
mod remote_file;
mod slots;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use cache::{CacheOptions, ExtentCache};
pub use remote_file::RemoteFile;

/// Length of an extent: a few blocks, and a request that costs little more than a small one.
pub const EXTENT_BYTES: u64 = 256 << 10;

/// What a cache has done since it was created.
#[derive(Debug, Default)]
pub struct ExtentFigures {
    hits: AtomicU64,
    misses: AtomicU64,
    requests: AtomicU64,
    failures: AtomicU64,
    loaded_bytes: AtomicU64,
    held_bytes: AtomicU64,
    bytes_max: AtomicU64,
    take_over_requests: AtomicU64,
    take_over_bytes: AtomicU64,
    take_over_ns: AtomicU64,
}

/// A reading of [`ExtentFigures`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtentStats {
    /// Extents that were read from the cache.
    pub hits: u64,
    /// Extents that were not in it when they were read.
    pub misses: u64,
    /// Requests to the object store.
    pub requests: u64,
    /// Those that failed, or were not made because the one before had just failed.
    pub failures: u64,
    /// Bytes of the responses.
    pub loaded_bytes: u64,
    /// Bytes of the extents in the cache.
    pub held_bytes: u64,
    /// Limit of these.
    pub bytes_max: u64,
    /// Requests to the object store to take over shards, before they are opened.
    pub take_over_requests: u64,
    /// Bytes of the responses.
    pub take_over_bytes: u64,
    /// Time that reading and writing what they returned took, in nanoseconds.
    pub take_over_ns: u64,
}

impl ExtentFigures {
    /// The present values.
    pub fn read(&self) -> ExtentStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ExtentStats {
            hits: read(&self.hits),
            misses: read(&self.misses),
            requests: read(&self.requests),
            failures: read(&self.failures),
            loaded_bytes: read(&self.loaded_bytes),
            held_bytes: read(&self.held_bytes),
            bytes_max: read(&self.bytes_max),
            take_over_requests: read(&self.take_over_requests),
            take_over_bytes: read(&self.take_over_bytes),
            take_over_ns: read(&self.take_over_ns),
        }
    }

    /// Counts a request that was made to take over a shard.
    pub fn took_over(&self, bytes: u64) {
        count(&self.take_over_requests, 1);
        count(&self.take_over_bytes, bytes);
    }

    /// Counts the time of a take-over.
    pub fn took_over_within(&self, took: Duration) {
        count(
            &self.take_over_ns,
            u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        );
    }
}

/// Adds to a counter.
fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
