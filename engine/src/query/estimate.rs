//! Estimates the cost of a query from the bounds and row counts of blocks, before anything is read.

use super::group::GroupQuery;
use super::reader::Run;
use super::scan::{ScanQuery, Selection};
use crate::EngineError;
use crate::block::{BLOCK_ROWS_MAX, BlockSummary};
use crate::local_step::LocalStep;
use crate::snapshot::SeriesSnapshot;

/// Cost of opening a block besides its values, in decoded values.
const BLOCK_VALUES: u64 = 256;
/// Cost of writing a value of the result, in decoded values.
const WRITTEN_VALUES: u64 = 16;
/// Members of a row of the result besides its values.
const ROW_MEMBERS: u64 = 2;
/// Number of a source's blocks whose field counts are examined: blocks are much alike.
const BLOCKS_LOOKED_AT: u32 = 64;
/// A rollup stores a cell for more rows than this.
const ROWS_PER_KEPT_CELL: u64 = 60;

/// Estimated number of values to be decoded, merged or written; rather too high. Counting ends at the limit.
pub struct Estimate {
    enough: u64,
    values: u64,
    /// Number of sources and rows in a scan's range, if every row is included.
    scanned: (u64, u64),
    limit: u64,
    /// Cost of a row of the page.
    row: u64,
    /// Rows of the largest block in a scan's range.
    block_rows: u64,
}

impl Estimate {
    /// An empty estimate. Costs above `enough` need not be counted exactly.
    pub fn new(enough: u64) -> Self {
        Estimate {
            enough,
            values: 0,
            scanned: (0, 0),
            limit: 0,
            row: 0,
            block_rows: 0,
        }
    }

    /// Whether the estimate exceeds the limit.
    pub fn is_over(&self) -> bool {
        // The page's rows, and one block of each source in which the page may begin.
        let (sources, rows) = self.scanned;
        let pages = self.limit + BLOCK_ROWS_MAX as u64 * sources.min(self.limit + 1);
        self.values + 2 * rows.min(pages) + self.row * rows.min(self.limit) > self.enough
    }

    /// The values that are decoded for a page of rows besides their times: whole columns of the blocks that it begins in.
    pub fn page_values(&self) -> u64 {
        let (sources, rows) = self.scanned;
        let fields = (self.row / WRITTEN_VALUES).saturating_sub(ROW_MEMBERS);
        fields * rows.min(self.limit + self.block_rows * sources.min(self.limit + 1))
    }

    /// Adds a cost, in decoded values.
    pub fn add(&mut self, values: u64) {
        self.values += values;
    }

    /// Adds a source of a grouped query.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block.
    pub fn add_grouped(
        &mut self,
        series: &SeriesSnapshot,
        query: &GroupQuery<'_>,
    ) -> Result<(), EngineError> {
        let range_ns = query.range_ns;
        self.each_run(series, range_ns, |run| {
            let asked = query.fields.len() as u64;
            let entry = match run {
                Run::Block(entry) => entry,
                Run::Chunk(chunk) => return Ok(chunk.rows() as u64 * asked.min(chunk.fields.len() as u64)),
            };
            let fields = match asked {
                // Nearly all blocks have the field, so their summaries need not be read.
                0 | 1 => asked,
                _ => asked.min(entry.block(series.cache())?.summary.fields.len() as u64),
            };
            let rows = u64::from(entry.rows);
            let within = (range_ns.0.max(entry.first_ns), range_ns.1.min(entry.last_ns));
            let cells = query.step.cells(within.0, within.1);
            let cut = within != (entry.first_ns, entry.last_ns);
            let finer = query.step.level().is_none();
            let by_row = cut || finer || query.is_filtered() || rows <= ROWS_PER_KEPT_CELL * cells;
            Ok(match cells {
                _ if by_row => BLOCK_VALUES + rows * (1 + fields) + rows.min(cells) * fields * WRITTEN_VALUES,
                0 | 1 => fields,
                _ => BLOCK_VALUES + cells * fields * WRITTEN_VALUES,
            })
        })
    }

    /// Adds a source of which every row in the range is read, with this many fields.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block.
    pub fn add_rows(
        &mut self,
        series: &SeriesSnapshot,
        range_ns: (i64, i64),
        fields: usize,
    ) -> Result<(), EngineError> {
        let each = ROW_MEMBERS + fields as u64;
        self.each_run(series, range_ns, |run| {
            let block = u64::from(matches!(run, Run::Block(_)));
            Ok(block * BLOCK_VALUES + run.rows() as u64 * each)
        })
    }

    /// Adds a source of a query for first and last values of this many fields, which blocks within a step store. Too low
    /// for blocks that do not: those of earlier versions, and of long texts.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block.
    pub fn add_first_last(
        &mut self,
        series: &SeriesSnapshot,
        range_ns: (i64, i64),
        step: LocalStep<'_>,
        fields: usize,
    ) -> Result<(), EngineError> {
        let each = ROW_MEMBERS + fields as u64;
        self.each_run(series, range_ns, |run| {
            Ok(match run {
                Run::Block(entry) => {
                    let is_whole =
                        entry.is_within(range_ns) && step.cells(entry.first_ns, entry.last_ns) == 1;
                    BLOCK_VALUES
                        + if is_whole {
                            each
                        } else {
                            u64::from(entry.rows) * each
                        }
                }
                Run::Chunk(chunk) => chunk.rows() as u64 * each,
            })
        })
    }

    /// Adds a source of a page of rows.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block.
    pub fn add_scanned(
        &mut self,
        selection: &Selection<'_>,
        query: &ScanQuery<'_>,
    ) -> Result<(), EngineError> {
        self.limit = query.limit as u64;
        let fields = selection.fields.as_deref();
        let is_filtered =
            query.metadata.is_some() || !selection.values.is_empty() || selection.rows.is_some();
        if fields.is_some_and(<[u16]>::is_empty) {
            return Ok(());
        }
        let wanted = fields.map_or(usize::MAX, <[u16]>::len);
        let mut most = 0;
        let in_every_row =
            |summary: &BlockSummary| fields.is_none_or(|fields| summary.has_in_every_row(fields));
        let mut scanned = 0;
        // Once the rows of the page are too many to write, no other block is looked at.
        let (limit, enough) = (self.limit, self.enough);
        let too_many = |rows: u64, fields: usize| {
            let written = WRITTEN_VALUES * (ROW_MEMBERS + fields as u64) * rows.min(limit);
            if written > enough { enough + 1 } else { 0 }
        };
        let mut block_rows = 0;
        let mut looked_at = 0;
        self.each_run(selection.series, query.range_ns, |run| match run {
            // If no field is named, every row is included, and the first blocks show how many fields they have.
            Run::Block(entry) if fields.is_none() && !is_filtered && looked_at == BLOCKS_LOOKED_AT => {
                block_rows = block_rows.max(u64::from(entry.rows));
                scanned += u64::from(entry.rows);
                Ok(0)
            }
            Run::Block(entry) => {
                looked_at += 1;
                block_rows = block_rows.max(u64::from(entry.rows));
                let summary = entry.block(selection.series.cache())?.summary;
                if !is_filtered && in_every_row(&summary) {
                    most = most.max(summary.fields.len().min(wanted));
                    scanned += u64::from(entry.rows);
                    return Ok(too_many(scanned, most));
                }
                // Rows that a filter rejects are read as well.
                let fields = fields.map_or(0, <[u16]>::len).min(summary.fields.len());
                Ok(BLOCK_VALUES + u64::from(entry.rows) * (3 + fields as u64))
            }
            Run::Chunk(chunk) if is_filtered => Ok(3 * chunk.rows() as u64),
            Run::Chunk(chunk) => {
                most = most.max(chunk.fields.len().min(wanted));
                scanned += chunk.rows() as u64;
                Ok(too_many(scanned, most))
            }
        })?;
        self.scanned.0 += u64::from(scanned > 0);
        self.scanned.1 += scanned;
        self.block_rows = self.block_rows.max(block_rows);
        self.row = self.row.max(WRITTEN_VALUES * (ROW_MEMBERS + most as u64));
        Ok(())
    }

    fn each_run(
        &mut self,
        series: &SeriesSnapshot,
        range_ns: (i64, i64),
        mut values: impl FnMut(Run<'_>) -> Result<u64, EngineError>,
    ) -> Result<(), EngineError> {
        for run in series.live(range_ns)?.runs(range_ns) {
            self.values += values(run)?;
            if self.values > self.enough {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Cache;
    use crate::saved::{segments, store_of};

    #[test]
    fn once_a_page_is_too_large_no_other_block_is_looked_at() {
        let segments = segments(20, 100);
        // Whether a page of so many rows is over, and how much was read for that.
        let estimated = |limit: usize| {
            let cache = Cache::new(16 << 20);
            let store = store_of(&segments, cache.clone());
            let series = store.view().series(0).unwrap();
            let selection = Selection::new(&series, Some(Arc::from([0])));
            let query = ScanQuery {
                range_ns: (i64::MIN, i64::MAX),
                descending: true,
                after: None,
                skip: 0,
                limit,
                metadata: None,
                stop: &|| false,
            };
            let mut estimate = Estimate::new(20_000);
            estimate.add_scanned(&selection, &query).unwrap();
            (estimate.is_over(), cache.bytes())
        };
        let (is_over, all) = estimated(10);
        assert!(!is_over);
        let (is_over, some) = estimated(1_000);
        assert!(is_over && some * 2 < all, "{some} of {all}");
    }
}
