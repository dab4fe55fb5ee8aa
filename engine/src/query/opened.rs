//! An open block of a grouped query: it is divided into cells of the coarsest rollup level, of finer ones at the edges
//! of the range, and rows.

use std::sync::Arc;

use super::directory_bytes;
use super::group::{Grouping, NumberedCells, Walk};
use super::group_rows::Rows;
use super::reader::RunReader;
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::block::{Block, BlockReader};
use crate::cache::Cache;
use crate::rollup::LEVELS;

/// An open block; what is needed is decoded once.
pub(super) struct Opened<'w, 'a, 'b> {
    pub(super) walk: &'w mut Walk<'a, 'b>,
    pub(super) block: &'w Block,
    pub(super) cache: &'w Cache,
    /// The requested fields that it has, with their numbers.
    pub(super) fields: Vec<(u16, u32)>,
    pub(super) rows: Option<Rows<'static, 'b>>,
    /// How many of its rows [`Grouping::touched`] includes.
    pub(super) rows_counted: u64,
}

impl Opened<'_, '_, '_> {
    /// Adds `range` from this level and finer ones.
    pub(super) fn levels(&mut self, range: (i64, i64), level: usize) -> Result<(), EngineError> {
        let edges = match self.block.level(level, self.cache)? {
            Some(stored) => self.cells(range, level, &stored.starts_ns, |fields| {
                let columns = fields.iter();
                columns
                    .map(|(field, number)| Ok((*number, stored.aggregates(*field)?)))
                    .collect()
            })?,
            None if self.block.pays_to_derive(level) => self.derived(range, level)?,
            None => vec![range],
        };
        for edge in edges {
            match level {
                0 => self.rows(edge)?,
                _ => self.levels(edge, level - 1)?,
            }
        }
        Ok(())
    }

    /// Adds the cells that lie entirely within `range`; returns the parts of it that they do not cover.
    pub(super) fn cells(
        &mut self,
        range: (i64, i64),
        level: usize,
        starts: &Arc<[i64]>,
        columns: impl FnOnce(&[(u16, u32)]) -> Result<Vec<NumberedCells>, EngineError>,
    ) -> Result<Vec<(i64, i64)>, EngineError> {
        let unit = LEVELS[level];
        let first = starts.partition_point(|cell| *cell < range.0);
        let past = match range.1 {
            i64::MAX => starts.len(),
            end => starts.partition_point(|cell| unit.next_ns(*cell) - 1 <= end),
        };
        if first >= past {
            return Ok(vec![range]);
        }
        let grouping = &mut *self.walk.grouping;
        // A level with many cells is decoded for this query only.
        let cell_bytes = size_of::<i64>() + self.fields.len() * size_of::<Aggregate>();
        let _held = grouping.budget.reserve(starts.len() * cell_bytes)?;
        let columns = columns(&self.fields)?;
        self.walk.add_cells(first..past, unit, starts, &columns)?;
        let mut edges = Vec::new();
        if first > 0 && range.0 > i64::MIN && range.0 < starts[first] {
            edges.push((range.0, starts[first] - 1));
        }
        if past < starts.len() && starts[past] <= range.1 {
            edges.push((starts[past], range.1));
        }
        Ok(edges)
    }

    pub(super) fn rows(&mut self, range: (i64, i64)) -> Result<(), EngineError> {
        let walk = &mut *self.walk;
        let rows = decoded(&mut self.rows, self.block, &self.fields, walk)?;
        let range = rows.within(range);
        let Grouping { cells, row_steps, .. } = &mut *walk.grouping;
        let looked_at = rows.group(range, walk.query.step, walk.source, cells, row_steps)?;
        self.count_rows(looked_at);
        Ok(())
    }

    /// Counts rows that were visited. One that is visited for a cell of a rollup level and again for an edge counts
    /// once.
    pub(super) fn count_rows(&mut self, visited: u64) {
        let uncounted = u64::from(self.block.summary.rows) - self.rows_counted;
        let counted = visited.min(uncounted);
        self.rows_counted += counted;
        self.walk.grouping.touched.rows += counted;
    }
}

/// The rows of a block, decoded when they are first needed.
pub(super) fn decoded<'r, 'b>(
    rows: &'r mut Option<Rows<'static, 'b>>,
    block: &Block,
    fields: &[(u16, u32)],
    walk: &Walk<'_, 'b>,
) -> Result<&'r Rows<'static, 'b>, EngineError> {
    Ok(match rows {
        Some(rows) => rows,
        none => {
            let budget = walk.grouping.budget;
            let _directory = budget.reserve(directory_bytes(&block.summary))?;
            let reader = RunReader::Block(BlockReader::new(block)?);
            let all = 0..block.summary.rows as usize;
            none.insert(Rows::read(&reader, fields, all, walk.query, budget)?)
        }
    })
}
