//! Resource usage of the buckets, shown to operators.

/// Resource usage of all buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketsLoad {
    /// Running actors.
    pub actors: u64,
    pub set_apart: u64,
    /// Bytes of unsaved rows, and of ingests that will become rows.
    pub memory_bytes: u64,
    /// Limit of `memory_bytes`, above which ingests are refused.
    pub memory_bytes_max: u64,
    /// Bytes of ingests queued for all buckets.
    pub mailbox_bytes: u64,
    /// Bytes queued for the bucket that has most of them.
    pub fullest_mailbox_bytes: u64,
    /// Limit of the bytes queued for one bucket.
    pub mailbox_bytes_max: u64,
    /// Bytes of cached block summaries and rollups.
    pub cache_bytes: u64,
    /// Limit of `cache_bytes`, above which entries are evicted.
    pub cache_bytes_max: u64,
    /// Damaged blocks found.
    pub damaged_blocks: u64,
    /// Queries that met a damaged block since the start.
    pub damaged_reads: u64,
    /// Ingests refused because of overload since the start.
    pub refused: u64,
}
