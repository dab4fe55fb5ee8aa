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
    /// Points before this moment are expired and refused even when the retention grows again: of changes of retention
    /// that were logged without a sequence; else `i64::MIN`.
    pub expired_before_ns: i64,
    /// Points that had expired when the retention changed, and stay so.
    #[serde(default)]
    pub expired: Vec<Expired>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}

/// Points that are gone: those of a time before `before_ns` that were numbered below `before_sequence`. Points sent
/// later are there, however old, if the retention of then allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// UTC nanoseconds.
    pub before_ns: i64,
    /// Order of arrival within the bucket.
    pub before_sequence: u64,
}

/// Changes of retention remembered at once; each matters only while the retention reaches behind it.
const EXPIRED_MAX: usize = 16;

impl Bucket {
    /// What has expired among the points numbered below `next_sequence` stays so under any later retention.
    pub(super) fn expire(&mut self, at_ns: i64, next_sequence: u64) {
        let before_ns = self.retention_cutoff_ns(at_ns);
        // Earlier changes matter where they reach further.
        self.expired.retain(|earlier| earlier.before_ns > before_ns);
        self.expired.truncate(EXPIRED_MAX - 1);
        self.expired.push(Expired {
            before_ns,
            before_sequence: next_sequence,
        });
    }

    /// The points that the retention of `now_ns` reaches and that are gone all the same.
    pub fn expired_at(&self, now_ns: i64) -> impl Iterator<Item = Expired> {
        let cutoff_ns = self.retention_cutoff_ns(now_ns);
        self.expired
            .iter()
            .copied()
            .filter(move |it| it.before_ns > cutoff_ns)
    }

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
