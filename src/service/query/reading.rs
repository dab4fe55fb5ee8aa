//! Reads the cells of a grouped query, from rollups where sums and extremes are enough, otherwise from rows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use engine::query::{
    Cell, Completion, Content, Ends, GroupQuery, Grouped, GroupedParts, Grouping as Cells, Statistics, Wanted,
};
use engine::{Aggregate, EngineError, LocalStep};

use super::Aggregation;
use super::coverage::{Coverage, SourceFields};
use super::plan::{FoundSeries, Plan, ReachedSeries, Tests};
use super::table::Computed;
use crate::error::{ErrorKind, ServiceError};
use crate::query_pool::Stop;

/// What to read.
pub(super) struct Reading<'r> {
    pub(super) reached: &'r FoundSeries,
    pub(super) coverage: &'r Coverage<'r>,
    pub(super) step: LocalStep<'r>,
    /// First and last timestamp, both inclusive.
    pub(super) range_ns: (i64, i64),
    /// The last value of a field holds at most until then.
    pub(super) holds_until_ns: i64,
    /// The shares of the quantiles that are needed.
    pub(super) quantiles: &'r [f64],
}

/// The content of a cell, from which aggregations take their values.
pub(super) trait Aggregated: Content + From<Statistics> + Send {
    /// Adds a series to the cells with the number `source`.
    fn add(
        cells: &mut Cells<'_, Self>,
        source: u32,
        reached: &ReachedSeries,
        query: &GroupQuery<'_>,
        fields: &SourceFields,
        completion: &Completion<'_>,
    ) -> Result<(), ServiceError>;

    /// Completes the cells.
    fn finish<'b>(cells: Cells<'b, Self>, step: LocalStep<'_>) -> Result<Grouped<'b, Self>, ServiceError>;

    /// The value of an aggregation that covers the type of the values.
    fn value(&mut self, aggregation: Aggregation) -> Computed;

    /// The first and the last value.
    fn ends(&self) -> Option<&Ends>;

    /// Number of values.
    fn count(&self) -> u64;

    /// Number of distinct values.
    fn distinct(&self) -> u64;
}

impl Aggregated for Aggregate {
    fn add(
        cells: &mut Cells<'_, Self>,
        source: u32,
        reached: &ReachedSeries,
        query: &GroupQuery<'_>,
        fields: &SourceFields,
        _completion: &Completion<'_>,
    ) -> Result<(), ServiceError> {
        Ok(cells.add(source, &reached.series, query, Some(&fields.numbers))?)
    }

    fn finish<'b>(cells: Cells<'b, Self>, _step: LocalStep<'_>) -> Result<Grouped<'b, Self>, ServiceError> {
        Ok(cells.finish()?)
    }

    fn value(&mut self, aggregation: Aggregation) -> Computed {
        Computed::of(aggregation.of(self))
    }

    fn ends(&self) -> Option<&Ends> {
        None
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn distinct(&self) -> u64 {
        0
    }
}

impl Aggregated for Statistics {
    fn add(
        cells: &mut Cells<'_, Self>,
        source: u32,
        reached: &ReachedSeries,
        query: &GroupQuery<'_>,
        fields: &SourceFields,
        completion: &Completion<'_>,
    ) -> Result<(), ServiceError> {
        Ok(cells.add_rows(source, &reached.series, query, &fields.needed, completion)?)
    }

    fn finish<'b>(cells: Cells<'b, Self>, step: LocalStep<'_>) -> Result<Grouped<'b, Self>, ServiceError> {
        Ok(cells.finish_merged(step)?)
    }

    fn value(&mut self, aggregation: Aggregation) -> Computed {
        Computed::of(match aggregation {
            Aggregation::First => return self.ends().map_or(Computed::Null, |ends| (&ends.first.1).into()),
            Aggregation::Last => return self.ends().map_or(Computed::Null, |ends| (&ends.last.1).into()),
            Aggregation::Stddev => self.stddev(),
            Aggregation::Delta => self.ends().and_then(Ends::delta),
            Aggregation::Increase => self.increase(),
            Aggregation::Rate => self.rate(),
            Aggregation::TimeAvg => self.over_time(),
            Aggregation::TrueShare => self.over_time().map(|share| share.min(1.0)),
            Aggregation::Distinct => Some(self.distinct() as f64),
            Aggregation::Median | Aggregation::Percentile(_) => {
                aggregation.quantile().and_then(|share| self.quantile(share))
            }
            Aggregation::Avg
            | Aggregation::Sum
            | Aggregation::Min
            | Aggregation::Max
            | Aggregation::Count
            | Aggregation::Range => aggregation.of(&self.aggregate),
        })
    }

    fn ends(&self) -> Option<&Ends> {
        Statistics::ends(self)
    }

    fn count(&self) -> u64 {
        self.aggregate.count
    }

    fn distinct(&self) -> u64 {
        Statistics::distinct(self)
    }
}

impl Plan {
    /// Reads the wanted cells, with the help of other threads where they have several groups.
    pub(super) fn cells<'b, C: Aggregated>(
        &self,
        reading: &Reading<'_>,
        wanted: Wanted,
        stop: &'b Stop,
    ) -> Result<Grouped<'b, C>, ServiceError> {
        let all = reading.reached.series.as_slice();
        let found = match self.cells_with_helpers(reading, wanted, stop)? {
            Some(found) => found,
            None => self.cells_of(reading, wanted, [all], (stop, &|| stop.now()))?,
        };
        stop.touched(found.touched);
        Ok(found)
    }

    /// Reads the wanted cells of sums and extremes. Those of one series are not copied where that is possible.
    pub(super) fn cells_in_parts<'b>(
        &self,
        reading: &Reading<'_>,
        wanted: Wanted,
        stop: &'b Stop,
    ) -> Result<GroupedParts<'b>, ServiceError> {
        let series = reading.reached.series.as_slice();
        // Shares are added to the cells of the other fields.
        let has_no_shares =
            |it: &ReachedSeries| reading.coverage.by_schema[it.schema].shares.ordinals.is_empty();
        if !matches!(series, [only] if has_no_shares(only)) {
            let found = self.cells(reading, wanted, stop)?;
            return Ok(GroupedParts::of(found, wanted.descending, stop.budget()));
        }
        let mut cells = Cells::in_parts(wanted, stop.budget());
        let added = self.add_series(&mut cells, reading, [series], &|| stop.now());
        let found = added.and_then(|()| Ok(cells.finish_parts()?));
        match found {
            // Copies may take less, if many are not wanted or rows overlap.
            Err(error) if error.kind == ErrorKind::Validation => {
                let found = self.cells(reading, wanted, stop)?;
                Ok(GroupedParts::of(found, wanted.descending, stop.budget()))
            }
            found => {
                let found = found?;
                stop.touched(found.touched);
                Ok(found)
            }
        }
    }

    /// `None` if one thread has to read all: there is nothing to divide or nobody to help, or what the threads hold
    /// together exceeds the budget, which may suffice for one.
    fn cells_with_helpers<'b, C: Aggregated>(
        &self,
        reading: &Reading<'_>,
        wanted: Wanted,
        stop: &'b Stop,
    ) -> Result<Option<Grouped<'b, C>>, ServiceError> {
        if !stop.may_have_helpers() {
            return Ok(None);
        }
        let portions = portions(&reading.reached.series);
        // Each thread may hold as many cells as the answer has.
        let cells_bytes = wanted.rows_max.saturating_mul(2 * size_of::<Cell<C>>());
        let threads_max = match wanted.rows_max {
            usize::MAX => portions.len(),
            _ => portions.len().min(stop.budget().bytes_max() / cells_bytes.max(1)),
        };
        if threads_max < 2 {
            return Ok(None);
        }
        let taken = AtomicUsize::new(0);
        // The error of the thread that failed first; the others stop.
        let failed = OnceLock::new();
        let stop_now = || failed.get().is_some() || stop.now();
        let parts = stop.with_helpers(threads_max - 1, |worker| {
            let next = || {
                let index = stop.goes_on(worker).then(|| taken.fetch_add(1, Relaxed));
                portions.get(index?).copied()
            };
            let found = self.cells_of::<C>(reading, wanted, std::iter::from_fn(next), (stop, &stop_now));
            found.map_err(|error| failed.set(error)).ok()
        });
        let are_many = parts.len() > 1;
        match failed.into_inner() {
            Some(error) if are_many && error.kind == ErrorKind::Validation => return Ok(None),
            Some(error) => return Err(error),
            None => {}
        }
        let mut parts: Vec<_> = parts.into_iter().flatten().collect();
        let Some(mut found) = parts.pop() else {
            return Ok(None);
        };
        match found.join(parts, wanted) {
            Ok(()) => Ok(Some(found)),
            Err(EngineError::OverBudget { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn cells_of<'s, 'b, C: Aggregated>(
        &self,
        reading: &Reading<'_>,
        wanted: Wanted,
        portions: impl IntoIterator<Item = &'s [ReachedSeries]>,
        (stop, stop_now): (&'b Stop, &dyn Fn() -> bool),
    ) -> Result<Grouped<'b, C>, ServiceError> {
        let mut cells = Cells::new(wanted, stop.budget());
        self.add_series(&mut cells, reading, portions, stop_now)?;
        C::finish(cells, reading.step)
    }

    fn add_series<'s, C: Aggregated>(
        &self,
        cells: &mut Cells<'_, C>,
        reading: &Reading<'_>,
        portions: impl IntoIterator<Item = &'s [ReachedSeries]>,
        stop_now: &dyn Fn() -> bool,
    ) -> Result<(), ServiceError> {
        let filter = |text: Option<&str>| self.passes(text);
        let tests = Tests::of(self);
        let filters = tests.filters(self);
        for reached in portions.into_iter().flatten() {
            let completion = Completion {
                quantiles: reading.quantiles,
                is_merged: reading.reached.groups[reached.group as usize].series > 1,
                holds_until_ns: reading.holds_until_ns,
            };
            let Some(values) = &filters[reached.schema] else {
                continue;
            };
            let covered = &reading.coverage.by_schema[reached.schema];
            let query = |fields| GroupQuery {
                range_ns: reading.range_ns,
                step: reading.step,
                fields,
                metadata: self.filter.as_ref().map(|_| &filter as _),
                stop: stop_now,
                values,
            };
            let fields = &covered.values;
            C::add(
                cells,
                reached.group,
                reached,
                &query(&fields.ordinals),
                fields,
                &completion,
            )?;
            let fields = &covered.shares;
            cells.add_rows(
                reached.group,
                &reached.series,
                &query(&fields.ordinals),
                &fields.needed,
                &completion,
            )?;
        }
        Ok(())
    }
}

/// Number of portions at most: many, so that no thread waits long for the others at the end.
const PORTIONS_MAX: usize = 64;
/// Least number of series in a portion that is not the last one: opening fewer takes no longer than sharing them.
const PORTION_SERIES_MIN: usize = 16;

/// Divides series between groups, so that each cell is of one portion.
fn portions(series: &[ReachedSeries]) -> Vec<&[ReachedSeries]> {
    let least = series.len().div_ceil(PORTIONS_MAX).max(PORTION_SERIES_MIN);
    let mut portions = Vec::new();
    let mut rest = series;
    while let Some(last) = rest.get(least - 1) {
        let past = rest.partition_point(|it| it.group <= last.group);
        let (portion, behind) = rest.split_at(past);
        portions.push(portion);
        rest = behind;
    }
    if !rest.is_empty() {
        portions.push(rest);
    }
    portions
}
