//! First and last values, and what block summaries tell. Parts of a cell are combined in any order, so that each run is read
//! alone, and blocks that lie within a cell are not read at all.

use super::budget::Held;
use super::cells::Content;
use super::group::{GroupQuery, Grouping};
use super::reader::Run;
use super::rows_in_steps::{Completion, NeededField};
use super::statistics::{Parts, Statistics};
use super::{check_stop, directory_bytes};
use crate::EngineError;
use crate::block::FirstLast;
use crate::cache::Cache;
use crate::entry::BlockEntry;
use crate::snapshot::SeriesSnapshot;
use crate::value::Ends;

impl<C: Content + From<Statistics>> Grouping<'_, C> {
    /// Adds statistics of a source's fields, of which only the ends are needed, to the cells with the number `source`.
    ///
    /// # Errors
    /// As for [`Grouping::add_rows`].
    pub(super) fn add_first_last(
        &mut self,
        source: u32,
        series: &SeriesSnapshot,
        query: &GroupQuery<'_>,
        fields: &[NeededField],
        completion: &Completion<'_>,
    ) -> Result<(), EngineError> {
        if query.range_ns.0 > query.range_ns.1 {
            return Ok(());
        }
        let live = series.live(query.range_ns)?;
        let descending = self.cells.wanted.descending;
        let add = |run: Run<'_>| {
            check_stop(query.stop)?;
            let range_ns = self.cells.reach(source, query.step, query.range_ns);
            let (first_ns, last_ns) = run.bounds_ns();
            if first_ns > range_ns.1 || last_ns < range_ns.0 {
                return Ok(());
            }
            let reached = GroupQuery { range_ns, ..*query };
            let mut held = self.budget.hold();
            let left = match run {
                Run::Block(entry) => {
                    self.add_whole(source, entry, &reached, fields, series.cache(), &mut held)?
                }
                Run::Chunk(_) => None,
            };
            let left = left.as_deref().unwrap_or(fields);
            match left.is_empty() {
                true => Ok(()),
                false => self.walk(source, series, Some(run), (query, &reached), left, completion),
            }
        };
        let mut runs = live.runs(query.range_ns);
        match descending {
            true => runs.rev().try_for_each(add),
            false => runs.try_for_each(add),
        }
    }

    /// Adds a block that lies within the range and within one cell. Returns the fields whose rows must be read; `None` for
    /// all of them.
    fn add_whole(
        &mut self,
        source: u32,
        entry: &BlockEntry,
        query: &GroupQuery<'_>,
        fields: &[NeededField],
        cache: &Cache,
        held: &mut Held<'_>,
    ) -> Result<Option<Vec<NeededField>>, EngineError> {
        let start_ns = query.step.start_ns(entry.first_ns);
        if !entry.is_within(query.range_ns) || start_ns != query.step.start_ns(entry.last_ns) {
            return Ok(None);
        }
        let block = entry.block(cache)?;
        let summary = &block.summary;
        held.grow(directory_bytes(summary))?;
        let Some(stored) = block.first_last(cache)? else {
            return Ok(None);
        };
        let mut left = Vec::new();
        for needed in fields {
            let Some(known) = summary.field(needed.field) else {
                continue;
            };
            let Some(ends) = ends_of(&stored, needed.field) else {
                held.reserve(&mut left, 1)?;
                left.push(*needed);
                continue;
            };
            let parts = Parts {
                ends: Some(ends.clone()),
                ..Parts::default()
            };
            let statistics = Statistics {
                aggregate: known.aggregate,
                parts: Some(Box::new(parts)),
            };
            self.cells
                .add(start_ns, source, needed.number, C::from(statistics))?;
        }
        self.touched.cells += 1;
        Ok(Some(left))
    }
}

/// The first and the last value of a field; `None` if they are to be read from the rows.
fn ends_of(stored: &[FirstLast], field: u16) -> Option<&Ends> {
    let index = stored.binary_search_by_key(&field, |stored| stored.field).ok()?;
    stored[index].ends.as_ref()
}
