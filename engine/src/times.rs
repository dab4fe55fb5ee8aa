//! Ascending timestamps of the rows of a block or a chunk. Those of a sensor with a fixed period are represented by the
//! first timestamp and the step, and are never expanded.

use std::borrow::Cow;
use std::ops::Range;

/// One timestamp per row, UTC nanoseconds.
pub(crate) enum Times<'a> {
    /// Evenly spaced; the last one does not overflow.
    Even {
        /// Timestamp of the first row.
        first_ns: i64,
        /// Distance between rows; not negative.
        step_ns: i64,
        /// Number of rows.
        rows: usize,
    },
    /// Arbitrary ascending timestamps.
    Listed(Cow<'a, [i64]>),
}

impl Times<'_> {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Times::Even { rows, .. } => *rows,
            Times::Listed(listed) => listed.len(),
        }
    }

    /// Timestamp of an existing row.
    pub(crate) fn get(&self, row: usize) -> i64 {
        match self {
            Times::Even {
                first_ns, step_ns, ..
            } => first_ns + step_ns * row as i64,
            Times::Listed(listed) => listed[row],
        }
    }

    /// The first of these rows at or after a time; the end if there is none. Searches near the start first, because
    /// cells have few rows.
    pub(crate) fn first_at(&self, rows: Range<usize>, moment_ns: i64) -> usize {
        match self {
            Times::Even {
                first_ns, step_ns, ..
            } => {
                let row = match moment_ns > *first_ns {
                    false => 0,
                    true if *step_ns == 0 => usize::MAX,
                    true => moment_ns.abs_diff(*first_ns).div_ceil(*step_ns as u64) as usize,
                };
                row.clamp(rows.start, rows.end)
            }
            Times::Listed(listed) => {
                let listed = &listed[rows.clone()];
                let (mut near, mut far) = (0, 1);
                while far < listed.len() && listed[far] < moment_ns {
                    (near, far) = (far, far * 2);
                }
                let far = listed.len().min(far + 1);
                rows.start + near + listed[near..far].partition_point(|timestamp| *timestamp < moment_ns)
            }
        }
    }

    /// The same as [`Times::first_at`], without a search if exactly `expected` of the rows are before the time: a cell
    /// often has as many rows as the one before.
    #[inline]
    pub(crate) fn first_near(&self, rows: Range<usize>, moment_ns: i64, expected: usize) -> usize {
        let row = rows.start.saturating_add(expected);
        let is_past = |row: usize| row >= rows.end || self.get(row) >= moment_ns;
        if row <= rows.end && is_past(row) && (expected == 0 || !is_past(row - 1)) {
            return row;
        }
        self.first_at(rows, moment_ns)
    }

    /// The rows with timestamps in this range, both ends inclusive.
    pub(crate) fn within(&self, (start_ns, end_ns): (i64, i64)) -> Range<usize> {
        let first = self.first_at(0..self.len(), start_ns);
        let past = match end_ns.checked_add(1) {
            Some(behind_ns) => self.first_at(first..self.len(), behind_ns),
            None => self.len(),
        };
        first..past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_and_listed_times_agree() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..2_000 {
            let (rows, step_ns) = (random.usize(1..50), random.i64(0..4));
            let first_ns = match random.u8(..3) {
                0 => i64::MIN,
                1 => i64::MAX - step_ns * (rows as i64 - 1),
                _ => random.i64(-100..100),
            };
            let even = Times::Even {
                first_ns,
                step_ns,
                rows,
            };
            let listed = (0..rows).map(|row| even.get(row)).collect::<Vec<_>>();
            let plain = Times::Listed(Cow::Borrowed(&listed));
            assert_eq!(even.len(), plain.len());
            for _ in 0..20 {
                let mut moment = || match random.u8(..5) {
                    0 => i64::MIN,
                    1 => i64::MAX,
                    _ => first_ns.saturating_add(random.i64(-5..200)),
                };
                let (one, other) = (moment(), moment());
                let expected = listed.partition_point(|it| *it < one)
                    ..listed
                        .partition_point(|it| *it <= other)
                        .max(listed.partition_point(|it| *it < one));
                assert_eq!(even.within((one, other)), expected, "{listed:?} {one} {other}");
                assert_eq!(plain.within((one, other)), expected, "{listed:?} {one} {other}");
                let start = random.usize(..=rows);
                let (rest, near) = (start..random.usize(start..=rows), random.usize(..6));
                let first = even.first_at(rest.clone(), one);
                assert_eq!(even.first_near(rest.clone(), one, near), first);
                assert_eq!(plain.first_near(rest, one, near), first);
            }
        }
    }
}
