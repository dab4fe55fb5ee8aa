//! Queries on a snapshot: grouped aggregates, pages of raw rows, row counts, and the choice of a unit for downsampling.
//! Queries run on the caller's thread, and call `stop` before each block and between metadata texts. Memory that grows
//! with the query is counted against the caller's [`Budget`].

mod budget;
mod cell;
mod cells;
mod count;
mod derived;
mod distinct;
mod downsample;
mod estimate;
mod filter;
mod first_last;
mod gaps;
mod group;
mod group_rows;
mod groups;
mod level_cells;
mod matching;
mod moments;
mod open_step;
mod opened;
mod ordered;
mod page;
mod present;
mod quantile;
mod reader;
mod row_steps;
mod rows_in_steps;
mod run;
mod scan;
mod statistics;
mod values;

pub use crate::value::{Ends, Value};
pub use budget::{Budget, Held};
pub use cell::{Cell, CellValues, Content};
pub use cells::Wanted;
pub use count::HourCounts;
pub use downsample::{Downsampling, Expected, choose_unit, finest_step};
pub use estimate::Estimate;
pub use filter::{MetadataFilter, ValueFilter};
pub use group::{GroupQuery, Grouped, Grouping};
pub(crate) use group_rows::rows_within;
pub use groups::{Groups, group};
pub use level_cells::{CellsOfLevel, CellsPart, GroupedParts, LevelCells};
pub use matching::count_matching;
pub(crate) use matching::{Matching, matching};
pub use page::{Page, PageRun};
pub use present::present;
pub(crate) use reader::Run;
pub use rows_in_steps::{Completion, NeededField};
pub use scan::{Position, RowNumbers, RowTest, ScanQuery, Selection, scan, scan_some, scan_within};
pub use statistics::{Needs, Statistics};
pub use values::{for_each_end, for_each_value, may_have_values};

/// What a query read, for metrics and benchmarks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Rows of points visited. In a block that a grouped query opens, one that is visited again counts once.
    pub rows: u64,
    /// Cells of rollups and whole-block aggregates visited.
    pub cells: u64,
    /// Blocks opened because their summary was not enough.
    pub blocks: u64,
}

impl std::ops::AddAssign for Touched {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.blocks += other.blocks;
    }
}

/// Approximate memory of an open block's directory, in bytes: a section for each field, and one for each of its rollup
/// levels.
fn directory_bytes(summary: &BlockSummary) -> usize {
    const SECTION_BYTES: usize = 40;
    SECTION_BYTES * (8 + summary.fields.len() * (1 + LEVELS.len()))
}

use crate::EngineError;
use crate::block::BlockSummary;
use crate::rollup::LEVELS;

/// An error if the caller's `stop` returns true.
pub(crate) fn check_stop(stop: &dyn Fn() -> bool) -> Result<(), EngineError> {
    match stop() {
        true => Err(EngineError::Stopped),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod first_last_tests;
