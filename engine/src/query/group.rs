//! Grouped aggregates.
//!
//! A block that lies within the range and within one cell contributes its summary. Otherwise, the part of the range
//! within the block is divided into whole cells of the coarsest stored rollup level and, at the two edges, of finer
//! levels and finally rows: raw edge, minutes, hours, days, hours, minutes, raw edge. An edge exists only if the range
//! ends within the block, so at most two blocks of a source whose rows arrive in order are read row by row. A level
//! that the block does not store is computed from its rows if that pays, and cached (`derived`).
//!
//! Blocks are read from the requested end, and only as far as cells are still wanted.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use super::budget::{Budget, Held};
use super::cell::{Cell, Content};
use super::cells::{Cells, Wanted};
use super::filter::{MetadataFilter, ValueFilter, may_include};
use super::gaps::Gaps;
use super::group_rows::{Rows, is_dense, rows_within};
use super::level_cells::Shared;
use super::opened::Opened;
use super::reader::{Run, RunReader};
use super::row_steps::RowSteps;
use super::{Touched, check_stop};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::block::{BlockSummary, KeptCells, may_be_kept};
use crate::cache::Cache;
use crate::calendar::Unit;
use crate::columns::Columns;
use crate::entry::BlockEntry;
use crate::local_step::LocalStep;
use crate::rollup::LEVELS;
use crate::snapshot::SeriesSnapshot;

/// A grouped query of one source.
#[derive(Clone, Copy)]
pub struct GroupQuery<'a> {
    /// First and last timestamp, both inclusive.
    pub range_ns: (i64, i64),
    /// The time step of a cell.
    pub step: LocalStep<'a>,
    /// The fields to aggregate, ascending; for fields that are not numbers, only the count is meaningful.
    pub fields: &'a [u16],
    /// Selects rows by their metadata.
    pub metadata: Option<MetadataFilter<'a>>,
    /// Select rows by their values.
    pub values: &'a [ValueFilter<'a>],
    /// Called before each block and chunk, and between metadata texts; if it returns true, the query ends with
    /// [`EngineError::Stopped`].
    pub stop: &'a dyn Fn() -> bool,
}

impl GroupQuery<'_> {
    /// Whether rows are selected one by one.
    pub fn is_filtered(&self) -> bool {
        self.metadata.is_some() || !self.values.is_empty()
    }
}

/// A grouped result under construction: sources are added one by one, and only the wanted cells of all of them are
/// kept.
pub struct Grouping<'b, C = Aggregate> {
    pub(super) cells: Cells<'b, C>,
    pub(super) budget: &'b Budget,
    pub(super) touched: Touched,
    pub(super) gaps: Gaps<'b>,
    pub(super) row_steps: RowSteps,
    /// Cells that are not copied; `None` if all are.
    pub(super) shared: Option<Shared<'b>>,
}

/// The cells of a result, in the requested order.
pub struct Grouped<'b, C = Aggregate> {
    /// The cells.
    pub cells: Vec<Cell<C>>,
    /// What was read.
    pub touched: Touched,
    /// The memory of the cells.
    pub held: Held<'b>,
}

impl<'b, C: Content> Grouping<'b, C> {
    /// A result without sources.
    pub fn new(wanted: Wanted, budget: &'b Budget) -> Self {
        Grouping {
            cells: Cells::new(wanted, budget),
            budget,
            touched: Touched::default(),
            gaps: Gaps::new(budget),
            row_steps: RowSteps::default(),
            shared: None,
        }
    }

    /// The cells found.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`].
    pub fn finish(self) -> Result<Grouped<'b, C>, EngineError> {
        debug_assert!(self.shared.is_none(), "the result is in parts");
        let (cells, held) = self.cells.finish()?;
        Ok(Grouped {
            cells,
            touched: self.touched,
            held,
        })
    }
}

impl<C: Content> Grouped<'_, C> {
    /// Adds the cells of other sources, and keeps those that are wanted of all.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`]; the cells are lost then.
    pub fn join(&mut self, others: Vec<Self>, wanted: Wanted) -> Result<(), EngineError> {
        for Grouped { cells, touched, held } in others {
            self.touched += touched;
            self.held.take_over(held);
            self.cells = wanted.merge(take(&mut self.cells), cells, &mut self.held)?;
        }
        Ok(())
    }
}

impl Grouping<'_> {
    /// Adds a source's rows to cells with the number `source`: that of the source, or the same one for all sources to
    /// be merged. `numbers` contains the number of each field in the cells; without it, that is the field's index in
    /// `query.fields`.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true,
    /// [`EngineError::OverBudget`].
    pub fn add(
        &mut self,
        source: u32,
        series: &SeriesSnapshot,
        query: &GroupQuery<'_>,
        numbers: Option<&[u32]>,
    ) -> Result<(), EngineError> {
        let (start, end) = query.range_ns;
        if start > end || query.fields.is_empty() {
            return Ok(());
        }
        let descending = self.cells.wanted.descending;
        let mut walk = Walk {
            grouping: self,
            source,
            query,
            numbers,
        };
        let mut is_past = false;
        let add = |run: Run<'_>| match run {
            Run::Block(entry) => {
                // Ascending blocks are sorted by their first timestamps: behind the first one past the reach, none is
                // within it.
                is_past = is_past || (!descending && entry.first_ns > walk.reach().1);
                match is_past {
                    true => Ok(()),
                    false => walk.block(entry, series.cache()),
                }
            }
            Run::Chunk(chunk) => walk.chunk(chunk),
        };
        let mut runs = series.live(query.range_ns)?.runs(query.range_ns);
        match descending {
            true => runs.rev().try_for_each(add),
            false => runs.try_for_each(add),
        }
    }
}

/// The state of adding one source.
pub(super) struct Walk<'a, 'b> {
    pub(super) grouping: &'a mut Grouping<'b>,
    pub(super) source: u32,
    pub(super) query: &'a GroupQuery<'a>,
    numbers: Option<&'a [u32]>,
}

impl<'b> Walk<'_, 'b> {
    /// The part of the range that may still contain a wanted cell.
    fn reach(&self) -> (i64, i64) {
        let GroupQuery { step, range_ns, .. } = *self.query;
        self.grouping.cells.reach(self.source, step, range_ns)
    }

    fn number(&self, index: usize) -> u32 {
        self.numbers.map_or(index as u32, |numbers| numbers[index])
    }

    /// The requested fields that are there, with their numbers.
    fn occurring(&self, is_there: impl Fn(u16) -> bool) -> Vec<(u16, u32)> {
        let fields = self.query.fields.iter().enumerate();
        let found = fields.filter(|(_, field)| is_there(**field));
        found.map(|(index, field)| (*field, self.number(index))).collect()
    }

    fn chunk(&mut self, chunk: &Columns) -> Result<(), EngineError> {
        check_stop(self.query.stop)?;
        let range = rows_within(&chunk.timestamps_ns, self.reach());
        if range.is_empty() {
            return Ok(());
        }
        let fields = self.occurring(|field| chunk.field(field).is_some());
        let reader = RunReader::Chunk(chunk);
        let rows = Rows::read(&reader, &fields, range.clone(), self.query, self.grouping.budget)?;
        let Grouping { cells, row_steps, .. } = &mut *self.grouping;
        let looked_at = rows.group(range, self.query.step, self.source, cells, row_steps)?;
        self.grouping.touched.rows += looked_at;
        Ok(())
    }

    fn block(&mut self, entry: &BlockEntry, cache: &Cache) -> Result<(), EngineError> {
        check_stop(self.query.stop)?;
        let (start, end) = self.reach();
        if !entry.overlaps((start, end)) {
            return Ok(());
        }
        let step = self.query.step;
        let cell = step.start_ns(entry.first_ns);
        let whole = !self.query.is_filtered() && entry.is_within((start, end));
        let in_one_cell = whole && cell == step.start_ns(entry.last_ns);
        let coarsest = step.level();
        // The most common query: one field over all time. Cached cells show that the block has the field.
        if whole
            && !in_one_cell
            && let Some(coarsest) = coarsest
            && let [field] = self.query.fields
            && may_be_kept(entry, coarsest)
            && let Some(kept) = KeptCells::of(entry.id(), coarsest, *field, cache)
        {
            self.grouping.touched.blocks += 1;
            let columns = [(self.number(0), kept.aggregates)];
            return self.add_cells(
                0..kept.starts_ns.len(),
                LEVELS[coarsest],
                &kept.starts_ns,
                &columns,
            );
        }
        let block = entry.block(cache)?;
        let summary = &block.summary;
        if in_one_cell {
            let fields = self.query.fields.len().min(summary.fields.len());
            self.grouping.cells.expect(fields);
            return self.whole_block(cell, summary);
        }
        let fields = self.occurring(|field| summary.field(field).is_some());
        if fields.is_empty() || !may_include(self.query.values, summary) {
            return Ok(());
        }
        self.grouping.touched.blocks += 1;
        let in_most_rows = |(field, _): &&(u16, u32)| {
            let field = summary.field(*field);
            field.is_some_and(|field| is_dense(field.aggregate.count as usize, summary.rows as usize))
        };
        let dense = fields.iter().filter(in_most_rows).count();
        self.grouping.cells.expect(dense);
        let mut opened = Opened {
            walk: self,
            block: &block,
            cache,
            fields,
            rows: None,
            rows_counted: 0,
        };
        let Some(coarsest) = coarsest.filter(|_| !opened.walk.query.is_filtered()) else {
            return opened.rows((start, end));
        };
        // An end of the range beyond the block's own cuts no cell.
        let start = if start <= summary.first_ns {
            i64::MIN
        } else {
            start
        };
        let end = if end >= summary.last_ns { i64::MAX } else { end };
        opened.levels((start, end), coarsest)
    }

    /// Adds cells of a rollup level, for fields with their numbers.
    pub(super) fn add_cells(
        &mut self,
        cells: Range<usize>,
        level: Unit,
        starts_ns: &Arc<[i64]>,
        columns: &[NumberedCells],
    ) -> Result<(), EngineError> {
        let Grouping {
            cells: copied,
            shared,
            touched,
            ..
        } = &mut *self.grouping;
        touched.cells += cells.len() as u64;
        let are_steps = LocalStep::from(level) == self.query.step;
        let shared = match shared {
            Some(shared) if are_steps => {
                shared.share((starts_ns, columns), cells.clone(), self.source, copied)
            }
            _ => None,
        };
        // If none are shared, the first range has all cells, and the second is empty.
        let shared = shared.unwrap_or(cells.end..cells.end);
        for rest in [cells.start..shared.start, shared.end..cells.end] {
            self.copy_cells(rest, are_steps, starts_ns, columns)?;
        }
        Ok(())
    }

    /// Copies cells of a rollup level; `are_steps`: each is a cell of the result.
    fn copy_cells(
        &mut self,
        cells: Range<usize>,
        are_steps: bool,
        starts_ns: &[i64],
        columns: &[NumberedCells],
    ) -> Result<(), EngineError> {
        let (step, source) = (self.query.step, self.source);
        let grouping = &mut *self.grouping;
        let mut rest = cells;
        while let Some(&cell_ns) = starts_ns.get(rest.start).filter(|_| !rest.is_empty()) {
            // The cells of a step follow each other.
            let (start_ns, past) = match are_steps {
                true => (cell_ns, rest.start + 1),
                false => {
                    let next_ns = step.next_ns(cell_ns);
                    let of_step = starts_ns[rest.clone()]
                        .iter()
                        .take_while(|cell_ns| **cell_ns < next_ns);
                    (step.start_ns(cell_ns), rest.start + of_step.count().max(1))
                }
            };
            let of_step = rest.start..past;
            rest.start = past;
            if !grouping.cells.admits(start_ns, source) {
                continue;
            }
            for (number, column) in columns {
                let of_column = column.get(of_step.clone()).unwrap_or_default();
                let mut aggregates = of_column.iter().filter(|aggregate| aggregate.count > 0);
                let Some(first) = aggregates.next() else { continue };
                if let Some(into) = grouping.cells.entry(start_ns, source, *number)? {
                    into.merge(first);
                    aggregates.for_each(|aggregate| into.merge(aggregate));
                }
            }
        }
        Ok(())
    }

    fn whole_block(&mut self, start_ns: i64, summary: &BlockSummary) -> Result<(), EngineError> {
        let mut any = false;
        for (index, field) in self.query.fields.iter().enumerate() {
            if let Some(field) = summary.field(*field)
                && field.aggregate.count > 0
            {
                any = true;
                let number = self.number(index);
                if let Some(into) = self.grouping.cells.entry(start_ns, self.source, number)? {
                    into.merge(&field.aggregate);
                }
            }
        }
        self.grouping.touched.cells += u64::from(any);
        Ok(())
    }
}

/// A field's aggregates in the cells of a level, and the field's number in the result.
pub(super) type NumberedCells = (u32, Arc<[Aggregate]>);
