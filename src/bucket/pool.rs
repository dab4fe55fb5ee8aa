//! What the buckets of all shards of a node share: threads, memory and the block cache.

use std::io;
use std::sync::{Arc, Weak};

use engine::Cache;
use parking_lot::RwLock;

use super::budget::Budget;
use super::registry::Inner;
use super::sealer::Sealer;
use crate::pools::Arbiters;

/// Limits of the buckets of a node.
#[derive(Clone, Copy, Debug)]
pub struct BucketPoolOptions {
    /// Limit of the bytes queued for one bucket.
    pub mailbox_bytes_max: u64,
    /// Limit of the bytes of unsaved rows, and of ingests that will become rows, over all buckets.
    pub memory_bytes_max: u64,
    /// Limit of the cache of block summaries and rollups.
    pub cache_bytes_max: u64,
    /// Number of series that a bucket may have.
    pub series_max: u64,
    /// Threads on which the actors run.
    pub threads: usize,
}

/// The threads and the memory of the buckets of a node.
pub struct BucketPool {
    pub(super) options: BucketPoolOptions,
    pub(super) memory: Arc<Budget>,
    pub(super) sealer: Sealer,
    cache: Cache,
    arbiters: Arbiters,
    /// The buckets of each shard.
    registries: RwLock<Vec<Weak<Inner>>>,
}

impl BucketPool {
    /// Starts the threads. Must be called within an actix system.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(options: BucketPoolOptions) -> io::Result<Arc<Self>> {
        Ok(Arc::new(BucketPool {
            options,
            memory: Budget::new(options.memory_bytes_max),
            sealer: Sealer::start(1, || ())?,
            cache: Cache::new(options.cache_bytes_max),
            arbiters: Arbiters::start(options.threads)?,
            registries: RwLock::default(),
        }))
    }

    /// The cache of decoded block parts, shared by the stores of all buckets.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The threads of the actors.
    pub fn arbiters(&self) -> &Arbiters {
        &self.arbiters
    }

    pub(super) fn add(&self, registry: &Arc<Inner>) {
        let mut registries = self.registries.write();
        registries.retain(|registry| registry.strong_count() > 0);
        registries.push(Arc::downgrade(registry));
    }

    /// The memory is full: requests checkpoints of all shards, because any of them may hold it.
    pub(super) fn order_checkpoints(&self) {
        let registries = self.registries.read();
        let registries = registries.iter().filter_map(Weak::upgrade);
        registries.for_each(|registry| registry.order_checkpoint());
    }
}
