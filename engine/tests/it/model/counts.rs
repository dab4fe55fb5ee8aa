//! Counts of rows in a range and in its hours, compared with the naive model.

use std::collections::BTreeMap;

use engine::Unit;
use engine::query::HourCounts;

use super::SECOND;
use super::bucket::Bucket;
use crate::naive::Point;

impl Bucket {
    pub(super) fn check_counts(&mut self) {
        let (from, to) = self.range();
        // Each hour takes eight bytes, so the range is bounded.
        let range_ns = (
            from.max(self.clock_ns - 1_000_000 * SECOND),
            to.min(self.clock_ns),
        );
        let mut hours = HourCounts::new(range_ns);
        let mut expected = BTreeMap::new();
        let snapshot = self.snapshot(&self.sources);
        for series in &snapshot {
            let of_source = |point: &&Point| {
                point.source == series.source && (range_ns.0..=range_ns.1).contains(&point.timestamp_ns)
            };
            let mut rows = 0;
            for point in self.naive.points.iter().filter(of_source) {
                *expected
                    .entry(Unit::Hour.start_ns(point.timestamp_ns))
                    .or_insert(0) += 1;
                rows += 1;
            }
            assert_eq!(hours.add(series, &|| false).unwrap(), rows, "rows of a source");
            assert_eq!(
                series.stats_within(range_ns, &|| false, &mut Err).unwrap().points,
                rows,
                "rows of a source"
            );
        }
        assert_eq!(
            hours.hours().collect::<Vec<_>>(),
            expected.into_iter().collect::<Vec<_>>(),
            "rows of the hours within {range_ns:?}"
        );
    }
}
