//! Buckets: containers of data sources.

use serde::{Deserialize, Serialize};

use crate::clock::DAY_NS;
use crate::ids::ObjectId;

/// A container of data sources with one retention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Identifies the bucket to clients.
    pub id: ObjectId,
    /// Identifies the bucket to the engine and in point ids: global, from 1, never reused.
    pub ordinal: u32,
    pub organization_id: ObjectId,
    /// Unique within the organization.
    pub name: Box<str>,
    pub description: Option<Box<str>>,
    /// How long points are kept, in days.
    pub retention_days: u32,
    /// Points before this time are expired and refused even if the retention is raised again. Set by changes of
    /// retention that were logged without a sequence; otherwise `i64::MIN`.
    pub expired_before_ns: i64,
    /// Points that had expired when the retention changed. They stay expired.
    #[serde(default)]
    pub expired: Vec<Expired>,
    /// UTC nanoseconds.
    pub created_at_ns: i64,
    /// UTC nanoseconds.
    pub updated_at_ns: i64,
}

/// Expired points: those with a timestamp before `before_ns` and a sequence below `before_sequence`. Points that arrive
/// later are visible, however old, if the present retention allows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// UTC nanoseconds.
    pub before_ns: i64,
    /// Sequence: the order of arrival within the bucket.
    pub before_sequence: u64,
}

/// Limit on the remembered changes of retention. A change matters only while the retention reaches back behind it, and
/// if points arrived since the change before. A longer list would need more raises than this, each by more than the
/// time since the last.
const EXPIRED_MAX: usize = 256;

impl Bucket {
    /// Makes what has expired so far, among the points below `next_sequence`, stay expired under any later retention.
    pub(super) fn expire(&mut self, at_ns: i64, next_sequence: u64) {
        let before_ns = self.retention_cutoff_ns(at_ns);
        let held = |it: &Expired| it.before_ns >= before_ns && it.before_sequence >= next_sequence;
        if self.expired.iter().any(held) {
            return;
        }
        // Earlier changes matter only if they reach further back: along the list, `before_ns` descends and sequences
        // ascend.
        self.expired.retain(|earlier| earlier.before_ns > before_ns);
        self.expired.push(Expired {
            before_ns,
            before_sequence: next_sequence,
        });
        if self.expired.len() > EXPIRED_MAX {
            // Drop the change that covers the fewest points of its own. Those points become visible again.
            let own = |index: &usize| {
                self.expired[*index]
                    .before_sequence
                    .saturating_sub(self.expired[*index - 1].before_sequence)
            };
            if let Some(index) = (1..self.expired.len()).min_by_key(own) {
                self.expired.remove(index);
            }
        }
    }

    /// Points that are within the retention at `now_ns`, but expired nevertheless.
    pub fn expired_at(&self, now_ns: i64) -> impl Iterator<Item = Expired> {
        let cutoff_ns = self.retention_cutoff_ns(now_ns);
        self.expired
            .iter()
            .copied()
            .filter(move |it| it.before_ns > cutoff_ns)
    }

    /// Points older than this are expired at `now_ns`. At least 1678-01-01, the earliest timestamp: a retention of
    /// centuries keeps everything.
    pub fn retention_cutoff_ns(&self, now_ns: i64) -> i64 {
        let cutoff = i128::from(now_ns) - i128::from(self.retention_days) * i128::from(DAY_NS);
        let cutoff = i64::try_from(cutoff).unwrap_or(EARLIEST_NS).max(EARLIEST_NS);
        self.expired_before_ns.max(cutoff)
    }
}

/// 1678-01-01T00:00:00Z, the earliest timestamp that the API accepts.
const EARLIEST_NS: i64 = -9_214_560_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MINUTE_NS;

    const NOON_NS: i64 = 1_700_000_000_000_000_000;

    fn bucket(retention_days: u32) -> Bucket {
        Bucket {
            id: ObjectId::from_bytes([1; 12]),
            ordinal: 1,
            organization_id: ObjectId::from_bytes([2; 12]),
            name: "b".into(),
            description: None,
            retention_days,
            expired_before_ns: i64::MIN,
            expired: Vec::new(),
            created_at_ns: 0,
            updated_at_ns: 0,
        }
    }

    /// Raises the retention by a day, a number of times, half an hour and one point apart. Returns how many expired
    /// points are visible again.
    fn revived_points(raises: u32) -> usize {
        let mut bucket = bucket(1);
        let (mut now_ns, mut points) = (NOON_NS, Vec::new());
        for sequence in 1..=u64::from(raises) {
            // About to expire.
            points.push((bucket.retention_cutoff_ns(now_ns) + MINUTE_NS, sequence));
            now_ns += 30 * MINUTE_NS;
            bucket.expire(now_ns, sequence + 1);
            bucket.retention_days += 1;
        }
        let gone = |(timestamp_ns, sequence): &(i64, u64)| {
            *timestamp_ns < bucket.retention_cutoff_ns(now_ns)
                || bucket
                    .expired_at(now_ns)
                    .any(|it| *timestamp_ns < it.before_ns && *sequence < it.before_sequence)
        };
        points.iter().filter(|point| !gone(point)).count()
    }

    /// Regression: from the seventeenth raise on, points that had expired between two earlier raises became visible
    /// again.
    #[test]
    fn points_that_expired_between_many_raises_stay_expired() {
        assert_eq!(revived_points(40), 0);
        assert_eq!(revived_points(EXPIRED_MAX as u32), 0);
        assert!(revived_points(EXPIRED_MAX as u32 + 3) <= 3, "the list is bounded");
    }

    #[test]
    fn raises_without_points_between_them_are_merged() {
        let mut bucket = bucket(1);
        for raise in 0..1_000 {
            bucket.expire(NOON_NS + raise, 5);
            bucket.retention_days += 1;
        }
        assert!(bucket.expired.len() <= 2, "{:?}", bucket.expired);
    }
}
