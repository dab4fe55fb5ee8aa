//! A cache of decoded footer entries, rollup levels, and first and last values of blocks, shared by all stores and
//! bounded in bytes. Evicted entries are decoded again, so the bound affects only speed, never results.

use std::sync::Arc;

use quick_cache::sync::DefaultLifecycle;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::aggregate::Aggregate;
use crate::block::{BlockId, BlockSummary, FieldSummary, FirstLast, KeptCells};
use crate::segment::FooterEntry;
use crate::value::Ends;

/// Minimum size of a shard in bytes: each has its own lock and its own part of the bound, and an entry must fit into
/// it.
const SHARD_BYTES_MIN: u64 = 1 << 20;
const SHARDS_MAX: u64 = 16;
/// Estimated size of an entry in bytes; `quick_cache` sizes its memory of evicted keys by it.
const ENTRY_BYTES: u64 = 512;
/// Overhead of an entry in bytes, besides what it points to: key, value, links of the eviction queue, slot in the hash
/// table, the allocation's header, and its share of the remembered evicted keys.
const ENTRY_OVERHEAD_BYTES: usize = 160;

/// A bounded cache of decoded block summaries, rollup levels, and first and last values. Cheap to clone; clones share
/// their contents.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    entries: quick_cache::sync::Cache<Key, Value, Weigh>,
    bytes_max: u64,
}

/// Identifies one decoded part of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) block: BlockId,
    pub(crate) part: Part,
}

/// The part of a block that is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// Its entry in the footer of its segment.
    Footer,
    /// Start times of the cells of a rollup level.
    Starts { level: u8 },
    /// Row counts of the cells of a rollup level.
    Rows { level: u8 },
    /// A field's aggregates in the cells of a level; computed from its rows if the block does not store the level.
    Aggregates { level: u8, field: u16 },
    /// The first and the last values of its fields.
    FirstLast,
}

/// A cached value; cheap to clone.
#[derive(Clone)]
pub(crate) enum Value {
    Footer(FooterEntry),
    Starts(Arc<[i64]>),
    /// `None`: the block does not store row counts.
    Rows(Option<Arc<[u64]>>),
    /// Includes the start times, so that a query of one field needs only this entry.
    Aggregates(KeptCells),
    /// `None`: the block does not store them.
    FirstLast(Option<Arc<[FirstLast]>>),
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Key, Value> for Weigh {
    fn weight(&self, _: &Key, value: &Value) -> u64 {
        let bytes = match value {
            Value::Footer(entry) => {
                size_of::<BlockSummary>() + size_of_val::<[FieldSummary]>(&entry.summary.fields)
            }
            Value::Starts(starts) => size_of_val::<[i64]>(starts),
            Value::Rows(rows) => rows.as_deref().map_or(0, size_of_val),
            // The start times are shared, but the other owners may already have been evicted.
            Value::Aggregates(cells) => {
                size_of_val::<[i64]>(&cells.starts_ns) + size_of_val::<[Aggregate]>(&cells.aggregates)
            }
            Value::FirstLast(fields) => fields.as_deref().map_or(0, |fields| {
                let texts = fields.iter().filter_map(|field| field.ends.as_ref());
                size_of_val(fields) + texts.map(Ends::text_bytes).sum::<usize>()
            }),
        };
        (ENTRY_OVERHEAD_BYTES + bytes) as u64
    }
}

impl Cache {
    /// An empty cache with a limit in bytes.
    pub fn new(bytes_max: u64) -> Self {
        // The number of shards must be a power of two.
        let shards = 1 << (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX).ilog2();
        // Rounded down, because `quick_cache` rounds a shard's capacity up.
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
            // Cannot happen, because both capacities are set above; the fallback has the default number of shards.
            Err(_) => {
                quick_cache::sync::Cache::with_weighter((capacity / ENTRY_BYTES) as usize, capacity, Weigh)
            }
        };
        Cache(Arc::new(Inner { entries, bytes_max }))
    }

    /// Limit in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max
    }

    /// Approximate size in bytes.
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
