//! Cells of a rollup level that a block does not store, computed from its rows. A minute of a sensor that sends every
//! second has too few rows for a stored level, but charts request the same minutes repeatedly: the cells are cached.

use std::collections::HashMap;
use std::sync::Arc;

use super::cells::{Cells, Wanted};
use super::opened::{Opened, decoded};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::block::KeptCells;
use crate::rollup::LEVELS;

impl Opened<'_, '_, '_> {
    /// Adds the cells that lie entirely within `range`; returns the parts of it that they do not cover.
    pub(super) fn derived(
        &mut self,
        range: (i64, i64),
        level: usize,
    ) -> Result<Vec<(i64, i64)>, EngineError> {
        let cells = match self.remembered(level) {
            Some(cells) => cells,
            None if self.is_most_of_the_block(range) => self.derive(level)?,
            None => return Ok(vec![range]),
        };
        let touched = self.walk.grouping.touched.cells;
        let starts_ns = cells.first().map(|cells| Arc::clone(&cells.starts_ns));
        let edges = self.cells(range, level, &starts_ns.unwrap_or_default(), |fields| {
            let numbered = fields.iter().zip(&cells);
            let columns = numbered.map(|((_, number), cells)| (*number, Arc::clone(&cells.aggregates)));
            Ok(columns.collect())
        })?;
        if self.rows_counted == u64::from(self.block.summary.rows) {
            // They were computed from rows that are counted.
            self.walk.grouping.touched.cells = touched;
        }
        Ok(edges)
    }

    /// The cached cells of each field; `None` unless all are cached. Cells in which no requested field has a value are
    /// omitted, so the fields of different queries may have different cells.
    fn remembered(&self, level: usize) -> Option<Vec<KeptCells>> {
        let fields = self.fields.iter();
        let of_field = |(field, _): &(u16, u32)| KeptCells::of(self.block.id(), level, *field, self.cache);
        let cells = fields.map(of_field).collect::<Option<Vec<_>>>()?;
        let alike = cells.windows(2).all(|two| two[0].starts_ns == two[1].starts_ns);
        alike.then_some(cells)
    }

    /// Otherwise rows would be read for cells that were not requested.
    fn is_most_of_the_block(&self, (start, end): (i64, i64)) -> bool {
        let summary = &self.block.summary;
        let within = end.min(summary.last_ns).abs_diff(start.max(summary.first_ns));
        within >= summary.last_ns.abs_diff(summary.first_ns) / 2
    }

    fn derive(&mut self, level: usize) -> Result<Vec<KeptCells>, EngineError> {
        let walk = &mut *self.walk;
        let rows = decoded(&mut self.rows, self.block, &self.fields, walk)?;
        let mut cells = Cells::new(Wanted::ALL, walk.grouping.budget);
        let all = 0..self.block.summary.rows as usize;
        let row_steps = &mut walk.grouping.row_steps;
        let visited = rows.group(all, LEVELS[level].into(), 0, &mut cells, row_steps)?;
        let (cells, mut held) = cells.finish()?;
        self.count_rows(visited);
        held.grow(self.fields.len() * cells.len() * size_of::<Aggregate>())?;
        let starts_ns: Arc<[i64]> = cells.iter().map(|cell| cell.start_ns).collect();
        let mut columns = vec![vec![Aggregate::default(); cells.len()]; self.fields.len()];
        let numbers = self.fields.iter().map(|(_, number)| *number);
        let places: HashMap<u32, usize> = numbers.zip(0..).collect();
        for (index, cell) in cells.iter().enumerate() {
            for (number, aggregate) in cell.values() {
                if let Some(place) = places.get(&number) {
                    columns[*place][index] = *aggregate;
                }
            }
        }
        let derived = columns.into_iter().map(|column| KeptCells {
            starts_ns: Arc::clone(&starts_ns),
            aggregates: column.into(),
        });
        let derived: Vec<KeptCells> = derived.collect();
        for ((field, _), cells) in self.fields.iter().zip(&derived) {
            cells.keep(self.block.id(), level, *field, self.cache);
        }
        Ok(derived)
    }
}
