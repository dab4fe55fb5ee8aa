//! First and last values. Parts of a cell are combined in any order, so that each run is read alone. Of a block that lies
//! within a cell, only its stored first and last values are read, if it has them.

use std::cmp::Reverse;

use super::cell::Content;
use super::group::{GroupQuery, Grouping};
use super::reader::Run;
use super::rows_in_steps::{Completion, NeededField};
use super::statistics::Statistics;
use super::{check_stop, directory_bytes};
use crate::EngineError;
use crate::block::FirstLast;
use crate::cache::Cache;
use crate::columns::Columns;
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
        let mut held = self.budget.hold();
        let mut runs = Vec::new();
        for run in live.runs(query.range_ns) {
            held.reserve(&mut runs, 1)?;
            runs.push(run);
        }
        let newest = fields.iter().all(|field| field.needs.newest) && self.wants_all(query, &runs);
        if newest {
            runs.sort_by_key(|run| Reverse(run.bounds_ns().1));
        } else if self.cells.wanted.descending {
            runs.reverse();
        }
        // The start of a step, and since when every field has a value in it.
        let mut known: Option<(i64, i64)> = None;
        for run in runs {
            check_stop(query.stop)?;
            let (first_ns, last_ns) = run.bounds_ns();
            let start_ns = query.step.start_ns(last_ns);
            let is_known = known.is_some_and(|(step_ns, since_ns)| {
                last_ns < since_ns && step_ns == start_ns && step_ns == query.step.start_ns(first_ns)
            });
            let range_ns = self.cells.reach(source, query.step, query.range_ns);
            if newest && is_known || first_ns > range_ns.1 || last_ns < range_ns.0 {
                continue;
            }
            let reached = GroupQuery { range_ns, ..*query };
            let read = match run {
                Run::Block(entry) => self.add_whole(source, entry, &reached, fields, series.cache())?,
                Run::Chunk(chunk) => of_chunk(chunk, range_ns, fields),
            };
            if let Some(since_ns) = read.since_ns {
                known = Some((start_ns, since_ns));
            }
            let left = read.left.as_deref().unwrap_or(fields);
            if !left.is_empty() {
                self.walk(source, series, Some(run), &reached, left, completion)?;
            }
        }
        Ok(())
    }

    /// Whether no step of the runs within the range can be beyond the wanted ones, so that they may be read from the
    /// newest on.
    fn wants_all(&self, query: &GroupQuery<'_>, runs: &[Run<'_>]) -> bool {
        let first_ns = runs
            .iter()
            .map(|run| run.bounds_ns().0.max(query.range_ns.0))
            .min();
        let last_ns = runs
            .iter()
            .map(|run| run.bounds_ns().1.min(query.range_ns.1))
            .max();
        let wanted = &self.cells.wanted;
        first_ns.zip(last_ns).is_some_and(|(first_ns, last_ns)| {
            wanted.descending || query.step.cells(first_ns, last_ns) <= wanted.rows_max as u64
        })
    }

    /// Adds a block that lies within the range and within one cell.
    fn add_whole(
        &mut self,
        source: u32,
        entry: &BlockEntry,
        query: &GroupQuery<'_>,
        fields: &[NeededField],
        cache: &Cache,
    ) -> Result<Read, EngineError> {
        let start_ns = query.step.start_ns(entry.first_ns);
        if !entry.is_within(query.range_ns) || start_ns != query.step.start_ns(entry.last_ns) {
            return Ok(Read::default());
        }
        let block = entry.block(cache)?;
        let summary = &block.summary;
        let stored_bytes = summary.fields.len() * size_of::<FirstLast>();
        let mut held = self.budget.reserve(directory_bytes(summary) + stored_bytes)?;
        let Some(stored) = block.first_last(cache)? else {
            return Ok(Read::default());
        };
        self.cells.expect(fields.len().min(summary.fields.len()));
        let (mut left, mut since_ns, mut next) = (Vec::new(), Some(i64::MAX), 0);
        for needed in fields {
            let index = summary.index_of(needed.field, next);
            // A cell without values would be one of no field.
            let index = index.filter(|index| summary.fields[*index].aggregate.count > 0);
            let Some(index) = index else {
                since_ns = None;
                continue;
            };
            next = index + 1;
            let Some(ends) = ends_of(&stored, index, needed.field) else {
                since_ns = None;
                held.reserve(&mut left, 1)?;
                left.push(*needed);
                continue;
            };
            since_ns = since_ns.map(|since_ns| since_ns.min(ends.last.0.0));
            let statistics = Statistics {
                aggregate: summary.fields[index].aggregate,
                ends: Some(ends.clone()),
                parts: None,
            };
            self.cells
                .add(start_ns, source, needed.number, C::from(statistics))?;
        }
        self.touched.cells += 1;
        Ok(Read {
            left: Some(left),
            since_ns,
        })
    }
}

/// What was read of a run.
#[derive(Default)]
struct Read {
    /// The fields whose rows are still to be read; `None` for all of them.
    left: Option<Vec<NeededField>>,
    /// The time since which every field has a value in it, if it is known.
    since_ns: Option<i64>,
}

/// A chunk, whose rows are to be read.
fn of_chunk(chunk: &Columns, range_ns: (i64, i64), fields: &[NeededField]) -> Read {
    let last = chunk.rows() - 1;
    let last_ns = chunk.timestamps_ns[last];
    let has = |needed: &NeededField| chunk.field(needed.field).is_some_and(|column| column.has(last));
    Read {
        left: None,
        since_ns: (last_ns <= range_ns.1 && fields.iter().all(has)).then_some(last_ns),
    }
}

/// The first and the last value of the field with this index in the block; `None` if they are to be read from the rows.
fn ends_of(stored: &[FirstLast], index: usize, field: u16) -> Option<&Ends> {
    let stored = stored.get(index).filter(|stored| stored.field == field)?;
    stored.ends.as_ref()
}
