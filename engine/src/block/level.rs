//! A block's coarse rollup levels, decoded once and then cached. A query over a year reads a few cells of every block:
//! decoding those for each query would cost more than everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::{Block, BlockId, BlockReader, FieldSummary};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::cache::{Cache, Key, Part, Value};
use crate::entry::BlockEntry;
use crate::rollup::LEVELS;

/// A level with at most this many cells is always cached.
const CELLS_KEPT: usize = 64;
/// Larger levels are cached if each cell stands for at least this many rows. Otherwise they would be larger than the
/// block, and are decoded for each query.
const ROWS_PER_CELL_MIN: u64 = 24;

/// Rollup levels of a block that were looked for and are not stored. It is part of the block's summary, which all queries
/// share, so that small blocks, which store none, cost no search of the cache for each level.
#[derive(Debug, Default)]
pub(crate) struct MissingLevels(AtomicU8);

impl MissingLevels {
    fn has(&self, level: usize) -> bool {
        self.0.load(Relaxed) & (1 << level) != 0
    }

    fn insert(&self, level: usize) {
        self.0.fetch_or(1 << level, Relaxed);
    }
}

impl Clone for MissingLevels {
    fn clone(&self) -> Self {
        MissingLevels(AtomicU8::new(self.0.load(Relaxed)))
    }
}

/// The cells of one level of one block.
pub(crate) struct Level<'a> {
    pub(crate) starts_ns: Arc<[i64]>,
    block: &'a Block,
    level: usize,
    /// `None` if there are too many cells to cache.
    cache: Option<&'a Cache>,
}

/// A field's cells in the cache: those that the block stores, or, if it does not store the level, those computed from
/// its rows.
#[derive(Clone)]
pub(crate) struct KeptCells {
    pub(crate) starts_ns: Arc<[i64]>,
    pub(crate) aggregates: Arc<[Aggregate]>,
}

impl KeptCells {
    /// Cached cells of a block's level; does not access the block.
    pub(crate) fn of(block: BlockId, level: usize, field: u16, cache: &Cache) -> Option<Self> {
        let level = level as u8;
        let part = Part::Aggregates { level, field };
        match cache.get(&Key { block, part })? {
            Value::Aggregates(cells) => Some(cells),
            _ => None,
        }
    }

    pub(crate) fn keep(&self, block: BlockId, level: usize, field: u16, cache: &Cache) {
        let level = level as u8;
        let part = Part::Aggregates { level, field };
        cache.insert(Key { block, part }, Value::Aggregates(self.clone()));
    }
}

fn pays(rows: u32, cells: u64) -> bool {
    u64::from(rows) >= ROWS_PER_CELL_MIN * cells
}

/// Whether it is worth searching the cache for a level of a block before the block is opened. The search costs more than
/// the cells of a small block. If its rows lie in few of the cells, they may be cached nevertheless.
pub(crate) fn may_be_kept(entry: &BlockEntry, level: usize) -> bool {
    let cells = LEVELS[level].cells(entry.first_ns, entry.last_ns);
    cells <= CELLS_KEPT as u64 || pays(entry.rows, cells)
}

impl Level<'_> {
    /// The aggregates of a field in all cells; empty for a field without values.
    pub(crate) fn aggregates(&self, field: u16) -> Result<Arc<[Aggregate]>, EngineError> {
        if self.block.summary.field(field).is_none() {
            return Ok(Arc::default());
        }
        let (block, level) = (self.block.id(), self.level);
        let kept = self
            .cache
            .and_then(|cache| KeptCells::of(block, level, field, cache));
        if let Some(kept) = kept {
            return Ok(kept.aggregates);
        }
        let reader = BlockReader::new(self.block)?;
        let cells = KeptCells {
            starts_ns: Arc::clone(&self.starts_ns),
            aggregates: reader.rollup(level, field, self.starts_ns.len())?.into(),
        };
        if let Some(cache) = self.cache {
            cells.keep(block, level, field, cache);
        }
        Ok(cells.aggregates)
    }

    /// Row counts of all cells; `None` if the block does not contain them.
    pub(crate) fn rows(&self) -> Result<Option<Arc<[u64]>>, EngineError> {
        let level = self.level as u8;
        let key = self.block.key(Part::Rows { level });
        if let Some(Value::Rows(kept)) = self.cache.and_then(|cache| cache.get(&key)) {
            return Ok(kept);
        }
        let summary = &self.block.summary;
        let in_every_row = |field: &&FieldSummary| field.aggregate.count == u64::from(summary.rows);
        let rows: Option<Arc<[u64]>> = match summary.fields.iter().find(in_every_row) {
            Some(field) => {
                let cells = self.aggregates(field.field)?;
                Some(cells.iter().map(|cell| cell.count).collect())
            }
            None => BlockReader::new(self.block)?
                .rollup_rows(self.level, self.starts_ns.len())?
                .map(Into::into),
        };
        if let Some(cache) = self.cache {
            cache.insert(key, Value::Rows(rows.clone()));
        }
        Ok(rows)
    }
}

impl Block {
    /// A rollup level; `None` if the block does not store it.
    pub(crate) fn level<'a>(
        &'a self,
        level: usize,
        cache: &'a Cache,
    ) -> Result<Option<Level<'a>>, EngineError> {
        if self.summary.missing_levels.has(level) {
            return Ok(None);
        }
        let key = self.key(Part::Starts { level: level as u8 });
        let (starts_ns, cache) = match cache.get(&key) {
            Some(Value::Starts(kept)) => (kept, Some(cache)),
            _ => {
                let Some(starts) = BlockReader::new(self)?.rollup_starts_ns(level)? else {
                    self.summary.missing_levels.insert(level);
                    return Ok(None);
                };
                let starts: Arc<[i64]> = starts.into();
                let few = starts.len() <= CELLS_KEPT || self.pays(starts.len() as u64);
                let cache = few.then_some(cache);
                if let Some(cache) = cache {
                    cache.insert(key, Value::Starts(Arc::clone(&starts)));
                }
                (starts, cache)
            }
        };
        Ok(Some(Level {
            starts_ns,
            block: self,
            level,
            cache,
        }))
    }

    /// Whether this many cells stand for enough rows to be cached.
    fn pays(&self, cells: u64) -> bool {
        pays(self.summary.rows, cells)
    }

    /// Whether it pays to compute the cells of a level that is not stored, and to cache them.
    pub(crate) fn pays_to_derive(&self, level: usize) -> bool {
        self.pays(LEVELS[level].cells(self.summary.first_ns, self.summary.last_ns))
    }

    pub(super) fn key(&self, part: Part) -> Key {
        Key {
            block: self.id(),
            part,
        }
    }
}
