//! The samples of a label set: values of its series in order of time, and where these have ended.

use std::collections::{BTreeMap, HashMap};

use engine::query::{Held, Position, for_each_end};
use promql::{Error, Labels, STALE_MARKER, Samples, is_stale_marker};
use roaring::RoaringBitmap;

use super::storage::{BucketStorage, Column, of_engine};
use crate::clock::MILLISECOND_NS;

/// Where the selected series have ended, within the range of the samples.
pub(super) struct Ends<'q> {
    by_series: HashMap<u32, Vec<Position>>,
    _held: Held<'q>,
}

impl Ends<'_> {
    /// The ends of a column's series, in order.
    pub(super) fn of(&self, column: &Column) -> &[Position] {
        let ends = self
            .by_series
            .get(&column.series.ordinal)
            .filter(|_| column.has_ends);
        ends.map_or(&[], Vec::as_slice)
    }
}

impl BucketStorage<'_> {
    /// The ends of these columns' series in the range. Reads those of their sources once.
    pub(super) fn ends_of(
        &self,
        found: &BTreeMap<Labels, Vec<Column>>,
        range_ns: (i64, i64),
    ) -> Result<Ends<'_>, Error> {
        let mut wanted: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
        for column in found.values().flatten().filter(|column| column.has_ends) {
            let of_source = wanted.entry(column.series.source).or_default();
            of_source.insert(column.series.ordinal);
        }
        let budget = self.stop.budget();
        let (mut by_series, mut held) = (HashMap::<u32, Vec<Position>>::new(), budget.hold());
        for (source, wanted) in wanted {
            let ends = self.indexed.view.ends(source);
            let Some(ends) = ends.filter(|ends| ends.overlaps(range_ns)) else {
                continue;
            };
            let mut grown = Ok(());
            let each = |position, ordinal| {
                if wanted.contains(ordinal) && grown.is_ok() {
                    grown = held.grow(END_BYTES);
                    by_series.entry(ordinal).or_default().push(position);
                }
            };
            for_each_end(&ends, range_ns, budget, &|| self.stop.now(), each).map_err(of_engine)?;
            grown.map_err(of_engine)?;
        }
        Ok(Ends {
            by_series,
            _held: held,
        })
    }
}

/// Approximate memory of an end: vectors grow to twice their length, and most have one.
const END_BYTES: usize = 2 * size_of::<Position>() + 64;

/// Samples by the millisecond, in order of time.
#[derive(Default)]
pub(super) struct Collected {
    times: Vec<i64>,
    values: Vec<f64>,
}

impl Collected {
    pub(super) fn clear(&mut self) {
        self.times.clear();
        self.values.clear();
    }

    /// Adds a sample that is behind the others by time and arrival. Of several at one instant the last counts. But an end
    /// and a value do not replace each other, as in Prometheus, which takes no second sample at an instant.
    pub(super) fn push(&mut self, (timestamp_ns, _): Position, value: f64) {
        let time_ms = timestamp_ns.div_euclid(MILLISECOND_NS);
        if self.times.last() == Some(&time_ms)
            && let Some(last) = self.values.last_mut()
        {
            if is_stale_marker(*last) == is_stale_marker(value) {
                *last = value;
            }
            return;
        }
        self.times.push(time_ms);
        self.values.push(value);
    }

    /// The samples; `None` if no value is among them.
    pub(super) fn samples(&self) -> Option<Samples<'_>> {
        let has_value = self.values.iter().any(|value| !is_stale_marker(*value));
        has_value.then_some(Samples {
            times: &self.times,
            values: &self.values,
        })
    }
}

/// Puts the ends of a series between its values.
pub(super) struct WithEnds<'e> {
    ends: &'e [Position],
    collected: &'e mut Collected,
}

impl<'e> WithEnds<'e> {
    pub(super) fn new(ends: &'e [Position], collected: &'e mut Collected) -> Self {
        WithEnds { ends, collected }
    }

    pub(super) fn value(&mut self, position: Position, value: f64) {
        let before = self.ends.iter().take_while(|end| **end < position).count();
        if before > 0 {
            self.ends(before);
        }
        self.collected.push(position, value);
    }

    pub(super) fn finish(mut self) {
        self.ends(self.ends.len());
    }

    fn ends(&mut self, count: usize) {
        let (before, rest) = self.ends.split_at(count);
        before
            .iter()
            .for_each(|end| self.collected.push(*end, STALE_MARKER));
        self.ends = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(values: &[(Position, f64)], ends: &[Position]) -> Vec<(i64, Option<f64>)> {
        let mut collected = Collected::default();
        let mut with_ends = WithEnds::new(ends, &mut collected);
        for (position, value) in values {
            with_ends.value(*position, *value);
        }
        with_ends.finish();
        let Some(Samples { times, values }) = collected.samples() else {
            return Vec::new();
        };
        let shown = |value: &f64| (!is_stale_marker(*value)).then_some(*value);
        times.iter().copied().zip(values.iter().map(shown)).collect()
    }

    #[test]
    fn ends_stand_between_values() {
        const MS: i64 = MILLISECOND_NS;
        assert_eq!(
            collected(&[((MS, 1), 1.0), ((4 * MS, 3), 4.0)], &[(2 * MS, 2), (5 * MS, 9)]),
            [(1, Some(1.0)), (2, None), (4, Some(4.0)), (5, None)]
        );
        assert_eq!(
            collected(&[((MS, 1), 1.0), ((MS, 2), 2.0)], &[]),
            [(1, Some(2.0))],
            "of two values the later arrival"
        );
        assert_eq!(collected(&[], &[(MS, 1)]), [], "an end alone is nothing");
        assert_eq!(
            collected(&[((MS, 1), 1.0)], &[(MS, 2), (2 * MS, 3), (2 * MS, 4)]),
            [(1, Some(1.0)), (2, None)],
            "an end does not replace a value; repeats are one"
        );
        assert_eq!(
            collected(&[((0, 1), 0.0), ((MS, 3), 1.0)], &[(MS, 2)]),
            [(0, Some(0.0)), (1, None)],
            "nor a value an end"
        );
    }
}
