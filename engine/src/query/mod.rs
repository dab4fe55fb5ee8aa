//! Questions to a snapshot: grouped aggregates, pages of raw rows, counts of rows, and the choice of a unit for
//! downsampling. All of it runs on the caller's thread and asks `stop` before each block, and between metadata texts,
//! whether to go on. What grows with the question is counted against the caller's [`Budget`].

mod budget;
mod cells;
mod count;
mod derived;
mod downsample;
mod estimate;
mod group;
mod group_rows;
mod groups;
mod page;
mod run;
mod scan;
mod true_share;

pub use budget::{Budget, Held};
pub use cells::{Cell, Wanted};
pub use count::{HourCounts, count};
pub use downsample::{Downsampling, Expected, choose_unit, finest_step};
pub use estimate::Estimate;
pub use group::{GroupQuery, Grouped, Grouping};
pub(crate) use group_rows::rows_within;
pub use groups::{Groups, group};
pub use page::{Page, PageRun};
pub use scan::{Position, ScanQuery, Selection, scan, scan_within};

/// Decides by a row's metadata (JSON text, `None` when it has none) whether the row counts.
pub type MetadataFilter<'a> = &'a dyn Fn(Option<&str>) -> bool;

/// What a query read, for metrics and benches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Rows of points looked at.
    pub rows: u64,
    /// Cells of rollups and whole-block aggregates looked at.
    pub cells: u64,
    /// Blocks opened, because what is known of them without reading them did not do.
    pub blocks: u64,
}

impl std::ops::AddAssign for Touched {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.blocks += other.blocks;
    }
}

/// About what a block's directory takes while the block is open: it has a section for each field, and one for each of
/// its rollup levels.
fn directory_bytes(summary: &BlockSummary) -> usize {
    const SECTION_BYTES: usize = 40;
    SECTION_BYTES * (8 + summary.fields.len() * (1 + LEVELS.len()))
}

use crate::EngineError;
use crate::block::BlockSummary;
use crate::column::Column;
use crate::rollup::LEVELS;

/// Metadata texts filtered before `stop` is asked again: a text may have kilobytes, and a block thousands of them.
const TEXTS_PER_STOP: usize = 16;

/// Which rows of a metadata column the filter lets pass: it is asked once for each different text.
fn metadata_passes(
    filter: MetadataFilter<'_>,
    metadata: Option<&Column>,
    rows: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<bool>, EngineError> {
    let without = filter(None);
    let Some((column, crate::column::Values::Texts(texts))) = metadata.map(|column| (column, &column.values))
    else {
        return Ok(vec![without; rows]);
    };
    let mut passes = Vec::with_capacity(texts.dictionary.len());
    for (index, text) in texts.dictionary.iter().enumerate() {
        if index % TEXTS_PER_STOP == 0 && stop() {
            return Err(EngineError::Stopped);
        }
        passes.push(filter(Some(text)));
    }
    let rows = (0..rows)
        .map(|row| {
            if column.has(row) {
                passes[texts.codes[row] as usize]
            } else {
                without
            }
        })
        .collect();
    Ok(rows)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod budget_tests;
