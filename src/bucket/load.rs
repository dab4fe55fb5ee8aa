//! How full the buckets are, and which of them are set apart: what operators are shown.

use std::collections::BTreeMap;

use parking_lot::RwLock;

use crate::error::ServiceError;

/// When to ask again for a bucket that is set apart: somebody has to repair it first.
const SET_APART_RETRY_SECONDS: u32 = 60;

/// How full the buckets are, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketsLoad {
    /// Actors that run.
    pub actors: u64,
    /// Buckets that are set apart.
    pub set_apart: u64,
    /// Bytes of unsaved rows and of what becomes some.
    pub memory_bytes: u64,
    /// Bytes of them above which ingests are refused.
    pub memory_bytes_max: u64,
    /// Bytes on their way into all buckets.
    pub mailbox_bytes: u64,
    /// Bytes on their way into the bucket that has most of them.
    pub fullest_mailbox_bytes: u64,
    /// Bytes that may be on their way into one bucket.
    pub mailbox_bytes_max: u64,
    /// Bytes that are kept of decoded block summaries and rollups.
    pub cache_bytes: u64,
    /// Bytes of them above which some are dropped.
    pub cache_bytes_max: u64,
    /// Damaged blocks that were met.
    pub damaged_blocks: u64,
    /// Queries that met one since the start.
    pub damaged_reads: u64,
    /// Ingests refused for want of room since the start.
    pub refused: u64,
}

/// Buckets that are set apart, and why, by ordinal.
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
