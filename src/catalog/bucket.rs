//! Buckets: the containers of data sources.

use serde::{Deserialize, Serialize};

use crate::clock::DAY_NS;
use crate::ids::ObjectId;

/// A container of data sources with one retention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Identifies it to clients.
    pub id: ObjectId,
    /// Identifies it to the engine and in point ids: global, from 1, never reused.
    pub ordinal: u32,
    /// Its owner.
    pub organization_id: ObjectId,
    /// Unique within the organization.
    pub name: Box<str>,
    /// Free text.
    pub description: Option<Box<str>>,
    /// How long its points are kept.
    pub retention_days: u32,
    /// Points before this moment stay expired even when the retention grows again. `i64::MIN` until
    /// the retention first changes.
    pub expired_before_ns: i64,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}

impl Bucket {
    /// Points older than this are expired at `now_ns`. Never before the earliest timestamp there is, 1678-01-01: a
    /// retention of centuries keeps everything.
    pub fn retention_cutoff_ns(&self, now_ns: i64) -> i64 {
        let cutoff = i128::from(now_ns) - i128::from(self.retention_days) * i128::from(DAY_NS);
        let cutoff = i64::try_from(cutoff).unwrap_or(EARLIEST_NS).max(EARLIEST_NS);
        self.expired_before_ns.max(cutoff)
    }
}

/// 1678-01-01T00:00:00Z, the earliest timestamp the API takes.
const EARLIEST_NS: i64 = -9_214_560_000_000_000_000;
