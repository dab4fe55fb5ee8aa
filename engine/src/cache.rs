//! What is decoded of blocks' footer entries and rollup levels, kept for the next question: one cache for all stores,
//! with a bound in bytes. What falls out is decoded again, so the bound costs time and never an answer.

use std::sync::Arc;

use quick_cache::sync::DefaultLifecycle;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::aggregate::Aggregate;
use crate::block::{BlockId, BlockSummary, FieldSummary};
use crate::segment::FooterEntry;

/// Bytes of a shard, at least: each has its own lock and its own part of the bound, and an entry must fit into it.
const SHARD_BYTES_MIN: u64 = 1 << 20;
const SHARDS_MAX: u64 = 16;
/// About what an entry takes; the crate sizes its memory of evicted keys by it.
const ENTRY_BYTES: u64 = 512;
/// What an entry takes besides what it points to: key, value, links of the eviction's queue, place in the hash table,
/// the head of the allocation, and its share of the keys that are remembered when they are evicted.
const ENTRY_OVERHEAD_BYTES: usize = 160;

/// A bounded cache of decoded block summaries and rollup levels. Cheap to clone; the clones are one cache.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    entries: quick_cache::sync::Cache<Key, Value, Weigh>,
    bytes_max: u64,
}

/// Names one decoded part of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) block: BlockId,
    pub(crate) part: Part,
}

/// What of a block is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// Its entry in the footer of its segment.
    Footer,
    /// The starts of the cells of a rollup level.
    Starts { level: u8 },
    /// The rows in the cells of a rollup level.
    Rows { level: u8 },
    /// A field's aggregates in the cells of a rollup level.
    Aggregates { level: u8, field: u16 },
    /// The same of a level that the block does not keep, made of its rows.
    Derived { level: u8, field: u16 },
}

/// What is kept; cheap to clone.
#[derive(Clone)]
pub(crate) enum Value {
    Footer(FooterEntry),
    /// `None`: the block does not keep the level.
    Starts(Option<Arc<[i64]>>),
    /// `None`: the block does not tell.
    Rows(Option<Arc<[u64]>>),
    /// With the starts, so that a question about one field looks here only.
    Aggregates {
        starts_ns: Arc<[i64]>,
        aggregates: Arc<[Aggregate]>,
    },
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Key, Value> for Weigh {
    fn weight(&self, _: &Key, value: &Value) -> u64 {
        let bytes = match value {
            Value::Footer(entry) => {
                size_of::<BlockSummary>() + size_of_val::<[FieldSummary]>(&entry.summary.fields)
            }
            Value::Starts(starts) => starts.as_deref().map_or(0, size_of_val),
            Value::Rows(rows) => rows.as_deref().map_or(0, size_of_val),
            // The starts are shared, perhaps with nobody who is still here.
            Value::Aggregates {
                starts_ns,
                aggregates,
            } => size_of_val::<[i64]>(starts_ns) + size_of_val::<[Aggregate]>(aggregates),
        };
        (ENTRY_OVERHEAD_BYTES + bytes) as u64
    }
}

impl Cache {
    /// An empty cache that will never hold more than so many bytes.
    pub fn new(bytes_max: u64) -> Self {
        // A power of two, which is how many there are then.
        let shards = 1 << (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX).ilog2();
        // The crate rounds a shard's part up.
        let capacity = bytes_max / shards * shards;
        let options = OptionsBuilder::new()
            .shards(shards as usize)
            .weight_capacity(capacity)
            .estimated_items_capacity((capacity / ENTRY_BYTES) as usize)
            .build();
        let entries = match options {
            Ok(options) => quick_cache::sync::Cache::with_options(
                options,
                Weigh,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // Both capacities are given above, so this does not happen; it is the same cache with the crate's shards.
            Err(_) => {
                quick_cache::sync::Cache::with_weighter((capacity / ENTRY_BYTES) as usize, capacity, Weigh)
            }
        };
        Cache(Arc::new(Inner { entries, bytes_max }))
    }

    /// Bytes it may hold.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// About the bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.0.entries.weight()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Value> {
        self.0.entries.get(key)
    }

    pub(crate) fn insert(&self, key: Key, value: Value) {
        self.0.entries.insert(key, value);
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("bytes", &self.bytes())
            .field("bytes_max", &self.bytes_max())
            .finish()
    }
}
