//! A block's coarse rollup levels, decoded once. A question about a year asks every block of it for a few cells: to
//! decode those again for each question would cost more than all the rest.

use std::sync::OnceLock;

use super::{Block, BlockReader, FieldSummary};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::rollup::LEVELS;

/// Levels with more cells are decoded for each question: kept, they would be larger than the block.
const CELLS_KEPT_MAX: usize = 64;

/// The decoded cells of one level.
pub(crate) struct Level {
    pub(crate) starts_ns: Vec<i64>,
    /// By the field's place in the block's summary.
    fields: Box<[OnceLock<Vec<Aggregate>>]>,
    rows: OnceLock<Option<Vec<u64>>>,
}

/// The levels of a block that have been asked for. `Some(None)`: the level is not kept in the block.
#[derive(Default)]
pub(super) struct Levels([OnceLock<Option<Level>>; LEVELS.len()]);

impl Level {
    /// The aggregates of a field in all cells; a field without values has none.
    pub(crate) fn aggregates(
        &self,
        block: &Block,
        level: usize,
        field: u16,
    ) -> Result<&[Aggregate], EngineError> {
        let fields = &block.summary.fields;
        let Ok(place) = fields.binary_search_by_key(&field, |summary| summary.field) else {
            return Ok(&[]);
        };
        if let Some(aggregates) = self.fields[place].get() {
            return Ok(aggregates);
        }
        let decoded = BlockReader::new(block)?.rollup(level, field, self.starts_ns.len())?;
        Ok(self.fields[place].get_or_init(|| decoded))
    }

    /// Rows in all cells; `None` where the block does not tell.
    pub(crate) fn rows(&self, block: &Block, level: usize) -> Result<Option<&[u64]>, EngineError> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows.as_deref());
        }
        let summary = &block.summary;
        let in_every_row = |field: &&FieldSummary| field.aggregate.count == u64::from(summary.rows);
        let rows = match summary.fields.iter().find(in_every_row) {
            Some(field) => {
                let cells = self.aggregates(block, level, field.field)?.iter();
                Some(cells.map(|cell| cell.count).collect())
            }
            None => BlockReader::new(block)?.rollup_rows(level, self.starts_ns.len())?,
        };
        Ok(self.rows.get_or_init(|| rows).as_deref())
    }

    fn read(block: &Block, level: usize) -> Result<Option<Level>, EngineError> {
        let starts = BlockReader::new(block)?.rollup_starts_ns(level)?;
        let fields = || block.summary.fields.iter().map(|_| OnceLock::new()).collect();
        Ok(starts.map(|starts_ns| Level {
            starts_ns,
            fields: fields(),
            rows: OnceLock::new(),
        }))
    }
}

impl Block {
    /// Gives a level to `answer`, `None` when the block does not keep it.
    pub(crate) fn with_level<R>(
        &self,
        level: usize,
        answer: impl FnOnce(Option<&Level>) -> Result<R, EngineError>,
    ) -> Result<R, EngineError> {
        let kept = &self.levels.get_or_init(Box::default).0[level];
        if let Some(level) = kept.get() {
            return answer(level.as_ref());
        }
        match Level::read(self, level)? {
            Some(large) if large.starts_ns.len() > CELLS_KEPT_MAX => answer(Some(&large)),
            read => answer(kept.get_or_init(|| read).as_ref()),
        }
    }
}
