//! Grouped rows, either requested or chosen by downsampling. Sources are processed one by one, and only the rows of the
//! page are kept.
//!
//! Cells of the engine are written as they are, unless something changes them after aggregation; then they become rows
//! of a table (`table`).

use engine::query::{Budget, Estimate, GroupQuery, Wanted};

use super::aggregations::quantiles;
use super::coverage::Coverage;
use super::groups::{GroupRows, Groups, RowsPart};
use super::piece::Written;
use super::plan::{FoundSeries, Plan, ReachedSeries, Tests};
use super::reading::Reading;
use super::result::{PageInfo, QueryResult, WriteResult};
use super::table_query::TableQuery;
use super::{Answer, Grouping};
use crate::bucket::IndexedView;
use crate::error::ServiceError;
use crate::query_pool::Stop;

/// Which groups to return.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupPage {
    /// Starts of the first and the last step, both inclusive.
    pub(super) starts_ns: (i64, i64),
    /// Number of groups to skip from there.
    pub(super) offset: usize,
    /// Maximum number of groups.
    pub(super) limit: usize,
}

impl Plan {
    /// The groups of an answer.
    pub(super) fn grouped<'b>(
        &self,
        indexed: &IndexedView,
        reached: &FoundSeries,
        grouping: &Grouping,
        write: WriteResult,
        stop: &'b Stop,
    ) -> Result<Written<'b>, ServiceError> {
        let page = GroupPage {
            starts_ns: Wanted::ALL.starts_ns,
            offset: self.offset(),
            limit: self.grouped_limit(),
        };
        let mut answer = Answer::new(stop.budget());
        self.groups(Some(indexed), reached, grouping, page, stop, |groups| {
            write(&QueryResult::Groups(groups), &mut answer)
        })?;
        let (bytes, held) = answer.finish()?;
        Ok((bytes, None, held))
    }

    /// Passes a page of groups on. `indexed`: for what stood there before.
    pub(super) fn groups<R>(
        &self,
        indexed: Option<&IndexedView>,
        reached: &FoundSeries,
        grouping: &Grouping,
        page: GroupPage,
        stop: &Stop,
        pass: impl FnOnce(Groups<'_>) -> Result<R, ServiceError>,
    ) -> Result<R, ServiceError> {
        let mut held = stop.budget().hold();
        let coverage = Coverage::of(self, grouping, &mut held)?;
        let (first_ns, holds_until_ns) = self.whole_ns(reached, grouping, &coverage, stop)?;
        let quantiles = quantiles(grouping.aggregations.all());
        let reading = Reading {
            reached,
            coverage: &coverage,
            step: grouping.local_step(first_ns),
            range_ns: self.range_ns,
            holds_until_ns,
            quantiles: &quantiles,
        };
        let pass = |rows: GroupRows<'_>, has_more: bool| {
            pass(Groups {
                plan: self,
                coverage: &coverage,
                page: PageInfo {
                    count: rows.len(),
                    limit: page.limit,
                    offset: page.offset as u64,
                    has_more,
                    next: None,
                },
                rows,
                aggregations: &grouping.aggregations,
                step: grouping.step_name.clone(),
                downsampled: grouping.chosen.as_ref().map(|chosen| chosen.expected_points),
            })
        };
        if self.needs_table(grouping) {
            let groups = self.row_groups(&reached.groups, &mut held)?;
            let table = TableQuery::new(self, indexed, &reading, grouping, &groups, page, stop);
            let found = table.page(&mut held)?;
            let rows = GroupRows {
                parts: vec![RowsPart::Table(&found.rows)],
                groups: &groups,
            };
            return pass(rows, found.has_more);
        }
        let found = self.cells_in_parts(&reading, self.wanted(page), stop)?;
        let (parts, has_more) = found.page(page.offset, page.limit);
        let rows = GroupRows {
            parts: parts.into_iter().map(RowsPart::Cells).collect(),
            groups: &reached.groups,
        };
        pass(rows, has_more)
    }

    /// Whether rows are more than the sums and extremes of cells.
    fn needs_table(&self, grouping: &Grouping) -> bool {
        let input = &self.input;
        !grouping.aggregations.are_sums()
            || input.fill.is_some()
            || input.compare.is_some()
            || !input.expressions.is_empty()
    }

    /// The cells of the page, and one more to determine whether more follow.
    pub(super) fn wanted(&self, page: GroupPage) -> Wanted {
        let past = page.offset.saturating_add(page.limit);
        Wanted {
            rows_max: past.saturating_add(1),
            descending: self.input.descending,
            starts_ns: page.starts_ns,
        }
    }

    /// Where the step of the whole range begins, and until when values hold: at the ends of the range or, where it has
    /// none, with the first and the last point of the answer.
    pub(super) fn whole_ns(
        &self,
        reached: &FoundSeries,
        grouping: &Grouping,
        coverage: &Coverage<'_>,
        stop: &Stop,
    ) -> Result<(i64, i64), ServiceError> {
        let (start_ns, end_ns) = (self.input.start_ns, self.input.end_ns);
        if !grouping.is_whole() {
            return Ok((0, end_ns.unwrap_or(i64::MAX)));
        }
        let edge_ns = |descending: bool| {
            let covered = |reached: &ReachedSeries| coverage.by_schema[reached.schema].all();
            self.edge_ns(&reached.series, covered, descending, stop)
        };
        let first_ns = start_ns.map_or_else(|| edge_ns(false), Ok)?;
        let last_ns = match end_ns {
            Some(end_ns) => end_ns,
            None if grouping.aggregations.are_over_time() => edge_ns(true)?,
            // Nothing holds.
            None => i64::MAX,
        };
        Ok((first_ns, last_ns))
    }

    pub(super) fn estimate_grouped(
        &self,
        grouping: &Grouping,
        reached: &FoundSeries,
        estimate: &mut Estimate,
        budget: &Budget,
    ) -> Result<(), ServiceError> {
        let coverage = Coverage::of(self, grouping, &mut budget.hold())?;
        let filter = |_: Option<&str>| true;
        let tests = Tests::of(self);
        let filters = tests.filters(self);
        for ReachedSeries { series, schema, .. } in &reached.series {
            let Some(values) = &filters[*schema] else { continue };
            let covered = &coverage.by_schema[*schema];
            let query = GroupQuery {
                range_ns: self.range_ns,
                step: grouping.local_step(self.range_ns.0),
                fields: &covered.values.ordinals,
                metadata: self.filter.as_ref().map(|_| &filter as _),
                stop: &|| false,
                values,
            };
            let needed = &covered.values.needed;
            let are_ends = !query.is_filtered() && needed.iter().all(|field| field.needs.are_ends());
            if grouping.aggregations.are_sums() {
                estimate.add_grouped(series, &query)?;
            } else if needed.is_empty() {
                // Nothing is read.
            } else if are_ends {
                estimate.add_first_last(series, self.range_ns, query.step, needed.len())?;
            } else {
                estimate.add_rows(series, self.range_ns, needed.len())?;
            }
            let shares = covered.shares.ordinals.len();
            if shares > 0 {
                estimate.add_rows(series, self.range_ns, shares)?;
            }
            if estimate.is_over() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn offset(&self) -> usize {
        usize::try_from(self.input.offset).unwrap_or(usize::MAX)
    }
}
