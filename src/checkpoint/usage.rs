//! Live rows of each segment by bucket: decides what is merged, and when a file can be removed.

use std::collections::{BTreeMap, HashMap};

/// Live rows by bucket and by segment. The cost of an update depends on the number of segments that the bucket uses.
#[derive(Default)]
pub(super) struct Usage {
    /// Segments with the number of live rows, by bucket ordinal.
    by_bucket: HashMap<u32, Vec<(u64, u64)>>,
    /// Live rows, by segment.
    live_rows: BTreeMap<u64, u64>,
}

impl Usage {
    /// Replaces the usage of a bucket.
    pub(super) fn set(&mut self, bucket: u32, segments: Vec<(u64, u64)>) {
        self.remove(bucket);
        for (segment, rows) in &segments {
            *self.live_rows.entry(*segment).or_default() += rows;
        }
        if !segments.is_empty() {
            self.by_bucket.insert(bucket, segments);
        }
    }

    /// Removes the usage of a bucket.
    pub(super) fn remove(&mut self, bucket: u32) {
        for (segment, rows) in self.by_bucket.remove(&bucket).unwrap_or_default() {
            if let Some(live) = self.live_rows.get_mut(&segment) {
                *live -= rows;
                if *live == 0 {
                    self.live_rows.remove(&segment);
                }
            }
        }
    }

    /// Removes these segments from the usage of all buckets.
    pub(super) fn forget(&mut self, segments: &[u64]) {
        for used in self.by_bucket.values_mut() {
            used.retain(|(id, _)| !segments.contains(id));
        }
        self.live_rows.retain(|id, _| !segments.contains(id));
    }

    /// Removes the usage of all buckets except those to `keep`.
    pub(super) fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        let gone = self.by_bucket.keys().copied().filter(|bucket| !keep(*bucket));
        let gone: Vec<u32> = gone.collect();
        gone.into_iter().for_each(|bucket| self.remove(bucket));
    }

    /// The segments that a bucket uses.
    pub(super) fn of(&self, bucket: u32) -> impl Iterator<Item = u64> {
        self.of_with_rows(bucket).map(|(id, _)| id)
    }

    /// The segments that a bucket uses, with its live rows in each.
    pub(super) fn of_with_rows(&self, bucket: u32) -> impl Iterator<Item = (u64, u64)> {
        self.by_bucket.get(&bucket).into_iter().flatten().copied()
    }

    /// The segments in use.
    pub(super) fn segments(&self) -> impl Iterator<Item = u64> {
        self.live_rows.keys().copied()
    }

    /// Live rows of a segment.
    pub(super) fn live_rows(&self, segment: u64) -> u64 {
        self.live_rows.get(&segment).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_segments_and_those_of_deleted_buckets_are_not_in_use() {
        let mut usage = Usage::default();
        usage.set(1, vec![(10, 5), (11, 1)]);
        usage.set(2, vec![(10, 7), (12, 1)]);
        usage.forget(&[10]);
        assert_eq!(usage.segments().collect::<Vec<_>>(), [11, 12]);
        usage.retain(|bucket| bucket == 2);
        assert_eq!(usage.segments().collect::<Vec<_>>(), [12]);
        usage.remove(2);
        assert_eq!(usage.segments().count(), 0);
    }

    #[test]
    fn a_segment_is_in_use_until_its_last_bucket_releases_it() {
        let mut usage = Usage::default();
        usage.set(1, vec![(10, 5), (11, 1)]);
        usage.set(2, vec![(10, 7)]);
        assert_eq!((usage.live_rows(10), usage.live_rows(11)), (12, 1));
        usage.set(1, vec![(10, 2)]);
        assert_eq!(usage.segments().collect::<Vec<_>>(), [10]);
        assert_eq!(usage.live_rows(10), 9);
        usage.remove(2);
        usage.set(1, Vec::new());
        assert_eq!(usage.segments().count(), 0);
    }
}
