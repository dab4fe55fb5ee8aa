//! What the shards of a node share for their checkpoints: threads for checkpoints and merges, and the pool of the buckets.

use std::io;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::bucket::{BucketPool, BucketPoolOptions};
use crate::pools::Workers;
use crate::priority;

/// Sizes of the pools.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// Limits of the buckets.
    pub buckets: BucketPoolOptions,
    /// Checkpoints at the same time. Each one waits for its disk, and for nothing else most of the time.
    pub checkpoints: usize,
    /// Recoveries at the same time. Each one seals on all cores.
    pub recoveries: usize,
}

/// The pools of a node.
pub struct Pools {
    /// Threads and memory of the buckets.
    pub buckets: Arc<BucketPool>,
    pub(super) checkpoints: Workers,
    pub(super) merges: Workers,
    /// Places of recoveries.
    pub(super) recoveries: Semaphore,
}

impl Pools {
    /// Starts the threads. Must be called within an actix system.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(options: PoolOptions) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Pools {
            buckets: BucketPool::start(options.buckets)?,
            checkpoints: Workers::start("checkpoint", options.checkpoints, priority::lower)?,
            merges: Workers::start("merge", 1, priority::lower)?,
            recoveries: Semaphore::new(options.recoveries.max(1)),
        }))
    }
}
