//! Histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in microseconds: from an acknowledgement without a sync to a request that is close to
/// its timeout. Few, because each route has all of them.
const BOUNDS_US: [u64; 10] = [
    250, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000,
];

/// Counts of durations by bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    /// The last one counts durations above all bounds.
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

/// A snapshot of one histogram, or the sum of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    counts: [u64; BOUNDS_US.len() + 1],
    sum_ns: u64,
}

impl Histogram {
    /// Records a duration.
    pub fn observe(&self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.iter().position(|bound_us| took_ns <= bound_us * 1_000);
        self.counts[bucket.unwrap_or(BOUNDS_US.len())].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(took_ns, Ordering::Relaxed);
    }

    /// Adds the present counts to `all`.
    pub fn add_to(&self, all: &mut Distribution) {
        for (sum, count) in all.counts.iter_mut().zip(&self.counts) {
            *sum += count.load(Ordering::Relaxed);
        }
        all.sum_ns = all.sum_ns.wrapping_add(self.sum_ns.load(Ordering::Relaxed));
    }
}

impl Distribution {
    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of the durations in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Each bound in seconds, with the number of durations up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        BOUNDS_US.iter().zip(self.counts).map(move |(bound_us, count)| {
            below += count;
            (*bound_us as f64 / 1e6, below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_every_bucket_that_contains_it() {
        let histogram = Histogram::default();
        for micros in [250, 251, 10_000_000, 10_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let mut all = Distribution::default();
        histogram.add_to(&mut all);
        let cumulative: Vec<_> = all.cumulative().collect();
        assert_eq!(cumulative[0], (0.000_25, 1), "a bound belongs to its bucket");
        assert_eq!(cumulative[1], (0.001, 2));
        assert_eq!(cumulative.last(), Some(&(10.0, 3)));
        assert_eq!(all.count(), 4);
        assert!((all.sum_seconds() - 20.000_502).abs() < 1e-9);
    }
}
