//! Resource usage of the buckets, and which of them are set apart: shown to operators.

use std::collections::BTreeMap;

use parking_lot::RwLock;

use crate::error::ServiceError;

/// Retry delay for requests to a bucket that is set apart: an operator has to repair it first.
const SET_APART_RETRY_SECONDS: u32 = 60;

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

/// Buckets that are set apart, with the reason, by ordinal.
pub(super) struct SetApart(RwLock<BTreeMap<u32, String>>);

impl SetApart {
    pub(super) fn new(reasons: BTreeMap<u32, String>) -> Self {
        SetApart(RwLock::new(reasons))
    }

    /// # Errors
    /// 503 for a bucket that is set apart.
    pub(super) fn refuse(&self, ordinal: u32) -> Result<(), ServiceError> {
        match self.0.read().get(&ordinal) {
            None => Ok(()),
            Some(reason) => Err(ServiceError::unavailable(
                "the bucket is set apart, as its files or its state failed; nothing acknowledged is lost, and the \
                 operator has to repair it and restart the server",
                SET_APART_RETRY_SECONDS,
            )
            .caused_by(reason.clone())),
        }
    }

    pub(super) fn contains(&self, ordinal: u32) -> bool {
        self.0.read().contains_key(&ordinal)
    }

    pub(super) fn insert(&self, ordinal: u32, reason: String) {
        self.0.write().insert(ordinal, reason);
    }

    pub(super) fn all(&self) -> BTreeMap<u32, String> {
        self.0.read().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.0.read().len()
    }
}
