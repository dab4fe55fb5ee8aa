//! Questions to a snapshot: grouped aggregates, pages of raw rows, counts of rows, and the choice of a unit for
//! downsampling. All of it runs on the caller's thread and asks `stop` before each block, and between metadata texts,
//! whether to go on.

mod count;
mod downsample;
mod group;
mod run;
mod scan;

pub use count::{HourCounts, count};
pub use downsample::{Downsampling, Expected, choose_unit};
pub use group::{GroupQuery, Groups, group};
pub use scan::{Page, PageRun, Position, ScanQuery, Selection, scan};

/// Decides by a row's metadata (JSON text, `None` when it has none) whether the row counts.
pub type MetadataFilter<'a> = &'a dyn Fn(Option<&str>) -> bool;

/// What a query read, for metrics and benches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Rows of points looked at.
    pub rows: u64,
    /// Cells of rollups and whole-block aggregates looked at.
    pub cells: u64,
}

use crate::EngineError;
use crate::column::Column;

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
