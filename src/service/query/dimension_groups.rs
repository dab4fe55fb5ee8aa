//! The groups that the values of dimensions form.

use std::ops::Range;
use std::sync::Arc;

use engine::query::Held;
use roaring::RoaringBitmap;

use super::plan::{Plan, ReachedSeries};
use super::series_groups::{DimensionValue, SeriesGroup};
use crate::bucket::IndexedView;
use crate::error::ServiceError;
use crate::series::places_in_order;

/// The values of a dimension in the order of their bytes, behind `None` for series without it; and for each series the
/// place of its value among them.
struct Ranked {
    values: Vec<DimensionValue>,
    ranks: Vec<u32>,
}

impl Plan {
    /// Assigns series, which are sorted by source and ordinal, to groups by the values of dimensions, and by their
    /// sources unless these are merged. Sorts the series by their groups.
    pub(super) fn group_by_dimensions(
        &self,
        series: &mut [ReachedSeries],
        indexed: &IndexedView,
        held: &mut Held<'_>,
    ) -> Result<Vec<SeriesGroup>, ServiceError> {
        let before = held.bytes();
        let sources = runs_of_sources(series);
        let mut ordinals: Vec<u32> = Vec::new();
        held.reserve(&mut ordinals, series.len())?;
        ordinals.extend(series.iter().map(|it| it.series.ordinal));
        // Groups by the sources, of which each name makes finer ones, in their final order.
        let mut numbers: Vec<u32> = Vec::new();
        held.reserve(&mut numbers, series.len())?;
        for (number, run) in (0..).zip(&sources) {
            let number = if self.is_merged() { 0 } else { number };
            numbers.resize(run.end, number);
        }
        let mut dimensions: Vec<Ranked> = Vec::new();
        for name in &self.input.group_by_dimensions {
            let ranked = ranked(name, series, &ordinals, &sources, indexed, held)?;
            refine(&mut numbers, &ranked, held)?;
            dimensions.push(ranked);
        }
        let count = numbers.iter().max().map_or(0, |last| *last as usize + 1);
        let of_groups = count * (size_of::<SeriesGroup>() + dimensions.len() * size_of::<DimensionValue>());
        held.grow(of_groups)?;
        let mut groups: Vec<SeriesGroup> = Vec::with_capacity(count);
        // The first series of each group has its values.
        let mut firsts: Vec<usize> = Vec::new();
        held.reserve(&mut firsts, count)?;
        firsts.resize(count, series.len());
        for (at, (it, number)) in series.iter_mut().zip(&numbers).enumerate() {
            it.group = *number;
            let first = &mut firsts[*number as usize];
            *first = at.min(*first);
        }
        // Each number has a series.
        for first in firsts {
            let values = dimensions.iter().map(|ranked| ranked.value(first).clone());
            let it = &series[first];
            let of = (!self.is_merged()).then(|| (it.source.id, it.schema));
            groups.push(SeriesGroup::new(of, values.collect()));
        }
        for number in &numbers {
            groups[*number as usize].series += 1;
        }
        sort_by_group(series, &groups, held)?;
        let of_values: usize = dimensions.iter().map(Ranked::text_bytes).sum();
        held.set(before + of_values + of_groups)?;
        Ok(groups)
    }
}

impl Ranked {
    /// The value of the series at this place.
    fn value(&self, series: usize) -> &DimensionValue {
        &self.values[self.ranks[series] as usize]
    }

    fn text_bytes(&self) -> usize {
        let texts = self.values.iter().flatten();
        texts.map(|text| text.len() + VALUE_BYTES).sum()
    }
}

/// The values of a dimension. `ordinals`: of the series.
fn ranked(
    name: &str,
    series: &[ReachedSeries],
    ordinals: &[u32],
    sources: &[Range<usize>],
    indexed: &IndexedView,
    held: &mut Held<'_>,
) -> Result<Ranked, ServiceError> {
    // Values as they come, several times if they are those of several sources; ranks are their places plus one.
    let (mut found, mut ranks): (Vec<Arc<str>>, Vec<u32>) = (Vec::new(), Vec::new());
    held.reserve(&mut ranks, series.len())?;
    ranks.resize(series.len(), 0);
    for run in sources {
        let source = &series[run.start].source;
        if source.dimensions.is_none() {
            continue;
        }
        let (within, ranks) = (&ordinals[run.clone()], &mut ranks[run.clone()]);
        let among: RoaringBitmap = within.iter().copied().collect();
        let index = &indexed.index;
        index.for_each_series(source.ordinal, name, &among, |value, ordinal| {
            if found.last().is_none_or(|last| **last != *value) {
                held.grow(value.len() + VALUE_BYTES)?;
                held.reserve(&mut found, 1)?;
                found.push(value.into());
            }
            if let Ok(at) = within.binary_search(&ordinal) {
                ranks[at] = found.len() as u32;
            }
            Ok::<_, ServiceError>(())
        })?;
    }
    let (mut values, mut final_ranks): (Vec<DimensionValue>, Vec<u32>) = (Vec::new(), Vec::new());
    held.reserve(&mut values, found.len() + 1)?;
    held.reserve(&mut final_ranks, found.len() + 1)?;
    values.push(None);
    final_ranks.resize(found.len() + 1, 0);
    for place in places_in_order(&found, |value| value) {
        let value = &found[place];
        if values.last().is_none_or(|last| last.as_ref() != Some(value)) {
            values.push(Some(Arc::clone(value)));
        }
        final_ranks[place + 1] = values.len() as u32 - 1;
    }
    for rank in &mut ranks {
        *rank = final_ranks[*rank as usize];
    }
    Ok(Ranked { values, ranks })
}

/// Makes groups finer by the values of a dimension: numbers become those of the groups in the order of their former
/// numbers and, among these, of their values.
fn refine(numbers: &mut [u32], ranked: &Ranked, held: &mut Held<'_>) -> Result<(), ServiceError> {
    let values = ranked.values.len();
    let key = |number: u32, rank: u32| u64::from(number) * values as u64 + u64::from(rank);
    let keys = || {
        numbers
            .iter()
            .zip(&ranked.ranks)
            .map(|(number, rank)| key(*number, *rank))
    };
    let past = keys().max().map_or(0, |last| last + 1);
    if past <= DENSE_KEYS * numbers.len() as u64 {
        let mut numbers_of: Vec<u32> = Vec::new();
        held.reserve(&mut numbers_of, past as usize)?;
        numbers_of.resize(past as usize, 0);
        keys().for_each(|key| numbers_of[key as usize] = 1);
        let mut next = 0;
        for number in &mut numbers_of {
            let is_there = *number;
            *number = next;
            next += is_there;
        }
        for (number, rank) in numbers.iter_mut().zip(&ranked.ranks) {
            *number = numbers_of[key(*number, *rank) as usize];
        }
        held.shrink(numbers_of.capacity() * size_of::<u32>());
        return Ok(());
    }
    let mut all: Vec<u64> = Vec::new();
    held.reserve(&mut all, numbers.len())?;
    all.extend(keys());
    all.sort_unstable();
    all.dedup();
    for (number, rank) in numbers.iter_mut().zip(&ranked.ranks) {
        // Each key is among them.
        *number = all.partition_point(|other| *other < key(*number, *rank)) as u32;
    }
    held.shrink(all.capacity() * size_of::<u64>());
    Ok(())
}

/// Keys of groups are looked up in a table if it has at most so many entries for each series.
const DENSE_KEYS: u64 = 4;

/// Approximate memory of a value beside its text: two counts, its length, and its places in lists.
const VALUE_BYTES: usize = 64;

/// Sorts series by their groups, whose sizes are known, and keeps the order within each. Each series is swapped into its
/// place once; a sort by comparisons would move it several times.
fn sort_by_group(
    series: &mut [ReachedSeries],
    groups: &[SeriesGroup],
    held: &mut Held<'_>,
) -> Result<(), ServiceError> {
    let (mut next, mut places): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    held.reserve(&mut next, groups.len())?;
    held.reserve(&mut places, series.len())?;
    // The place of the next series of each group.
    let mut past = 0;
    for group in groups {
        next.push(past);
        past += group.series;
    }
    for it in series.iter() {
        let next = &mut next[it.group as usize];
        places.push(*next);
        *next += 1;
    }
    for at in 0..series.len() {
        while places[at] != at {
            let place = places[at];
            series.swap(at, place);
            places.swap(at, place);
        }
    }
    held.shrink((next.capacity() + places.capacity()) * size_of::<usize>());
    Ok(())
}

/// The series of each source.
fn runs_of_sources(series: &[ReachedSeries]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, it) in series.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if series[run.start].source.id == it.source.id => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use engine::query::Budget;

    use super::*;
    use crate::checkpoint::tests::seed;

    #[test]
    fn groups_become_finer_in_the_order_of_their_numbers_and_values() {
        let mut random = fastrand::Rng::with_seed(seed());
        for round in 0..200 {
            let series = random.usize(0..50);
            // Few keys for each series, and many.
            let values = [1, 3, 1_000][round % 3];
            let numbers: Vec<u32> = (0..series).map(|_| random.u32(0..3)).collect();
            let ranked = Ranked {
                values: vec![None; values as usize],
                ranks: (0..series).map(|_| random.u32(0..values)).collect(),
            };
            let pairs = || numbers.iter().zip(&ranked.ranks);
            let all: BTreeSet<_> = pairs().collect();
            let expected: Vec<_> = pairs()
                .map(|pair| all.iter().position(|it| *it == pair).unwrap() as u32)
                .collect();
            let (mut found, budget) = (numbers.clone(), Budget::unlimited());
            let mut held = budget.hold();
            refine(&mut found, &ranked, &mut held).unwrap();
            assert_eq!(found, expected, "{numbers:?} and {:?}", ranked.ranks);
            assert_eq!(held.bytes(), 0);
        }
    }
}
