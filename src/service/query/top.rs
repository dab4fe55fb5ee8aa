//! `top`: the groups of series whose aggregate over the whole range is the greatest or the least.

use engine::query::{Grouped, Statistics, Wanted};
use engine::{Aggregate, Step};

use super::aggregations::quantiles;
use super::coverage::Coverage;
use super::plan::{Plan, Reached};
use super::reading::{Aggregated, Reading};
use super::{Aggregation, Aggregations, Grouping};
use crate::error::ServiceError;
use crate::query_pool::Stop;

/// Which groups of series to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// Their number.
    pub n: usize,
    /// What is compared.
    pub by: Aggregation,
    /// The field that is compared; `None` for the only one of the query.
    pub field: Option<String>,
    /// Keep the least instead of the greatest.
    pub ascending: bool,
}

impl Plan {
    /// Removes the groups that are not kept.
    pub(super) fn keep_top(&self, reached: &mut Reached<'_>, stop: &Stop) -> Result<(), ServiceError> {
        let is_one = self.is_merged() && self.input.group_by_dimensions.is_empty();
        let Some((top, field)) = self.input.top_field().filter(|_| !is_one) else {
            return Ok(());
        };
        let mut held = stop.budget().hold();
        let by = Aggregations::One(top.by);
        let coverage = Coverage::of_field(self, field, &by, &mut held)?;
        let holds_until_ns = match self.input.end_ns {
            Some(end_ns) => end_ns,
            None if !by.are_over_time() => i64::MAX,
            None => self.edge_ns(
                &reached.series,
                |it| coverage.by_schema[it.schema].all(),
                true,
                stop,
            )?,
        };
        let quantiles = quantiles(by.all());
        let reading = Reading {
            reached,
            coverage: &coverage,
            step: Step::From(0).into(),
            range_ns: self.range_ns,
            holds_until_ns,
            quantiles: &quantiles,
        };
        let mut values = match by.are_sums() {
            true => self.values_of::<Aggregate>(&reading, top.by, stop)?,
            false => self.values_of::<Statistics>(&reading, top.by, stop)?,
        };
        // Groups are in their order, and the sort is stable.
        values.sort_by(|(_, one), (_, other)| match top.ascending {
            true => one.total_cmp(other),
            false => other.total_cmp(one),
        });
        values.truncate(top.n);
        let mut kept: Vec<u32> = values.into_iter().map(|(group, _)| group).collect();
        kept.sort_unstable();
        reached.keep(&kept);
        Ok(())
    }

    /// Removes the groups of dimensions without a matching point in the range: those of the others have a row for each
    /// step when steps without points are rows too.
    pub(super) fn keep_occurring(
        &self,
        reached: &mut Reached<'_>,
        grouping: &Grouping,
        stop: &Stop,
    ) -> Result<(), ServiceError> {
        // The groups that `top` keeps have a value.
        let are_known = self.input.top_field().is_some();
        if self.input.fill.is_none() || self.input.group_by_dimensions.is_empty() || are_known {
            return Ok(());
        }
        let mut held = stop.budget().hold();
        let coverage = Coverage::of(self, grouping, &mut held)?;
        let reading = Reading {
            reached,
            coverage: &coverage,
            step: Step::From(0).into(),
            range_ns: self.range_ns,
            holds_until_ns: i64::MAX,
            quantiles: &[],
        };
        let kept = match grouping.aggregations.are_sums() {
            true => self.groups_with_cells::<Aggregate>(&reading, stop)?,
            false => self.groups_with_cells::<Statistics>(&reading, stop)?,
        };
        reached.keep(&kept);
        Ok(())
    }

    fn groups_with_cells<C: Aggregated>(
        &self,
        reading: &Reading<'_>,
        stop: &Stop,
    ) -> Result<Vec<u32>, ServiceError> {
        let found: Grouped<'_, C> = self.cells(reading, Wanted::ALL, stop)?;
        let mut groups: Vec<u32> = found.cells.iter().map(|cell| cell.source).collect();
        groups.sort_unstable();
        groups.dedup();
        Ok(groups)
    }

    /// The value of each group that has one.
    fn values_of<C: Aggregated>(
        &self,
        reading: &Reading<'_>,
        by: Aggregation,
        stop: &Stop,
    ) -> Result<Vec<(u32, f64)>, ServiceError> {
        let found: Grouped<'_, C> = self.cells(reading, Wanted::ALL, stop)?;
        let values = found.cells.into_iter().filter_map(|cell| {
            let group = cell.source;
            let (_, mut content) = cell.into_values().next()?;
            Some((group, content.value(by).number()?))
        });
        Ok(values.collect())
    }
}
