//! Threads that the shards of a node share. A shard has no thread of its own, so that an idle one costs none.

mod arbiters;
mod workers;

pub use arbiters::Arbiters;
pub use workers::Workers;
