//! Merging segments: small and overlapping blocks of one source become full ones in order of time; full blocks that
//! overlap no other are copied as they are. Rows that have expired are left behind.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use crate::EngineError;
use crate::block::{BLOCK_ROWS_MAX, Block, BlockReader};
use crate::columns::Columns;
use crate::segment::SegmentWriter;
use crate::series::cut_blocks;
use crate::store::Segment;

/// This many segments of about one size are merged; each byte is so rewritten once per factor of four in size.
const MERGE_SEGMENTS_MIN: usize = 4;
/// Segments beyond this size are left alone.
const MERGE_BYTES_MAX: u64 = 1 << 30;
/// Blocks with fewer rows are put together with their neighbours.
const SMALL_BLOCK_ROWS: u32 = BLOCK_ROWS_MAX as u32 / 2;

/// Segments chosen by [`crate::Store::begin_merge`], as their live blocks by source.
pub struct Merge {
    pub(crate) sources: Vec<(u32, Vec<Arc<Block>>)>,
}

/// Failure of a merge: the store goes on with what it has.
#[derive(Debug)]
pub enum MergeError {
    /// A block to merge does not read.
    Engine(EngineError),
    /// The new segment cannot be written.
    Io(io::Error),
}

impl From<EngineError> for MergeError {
    fn from(error: EngineError) -> Self {
        MergeError::Engine(error)
    }
}

impl From<io::Error> for MergeError {
    fn from(error: io::Error) -> Self {
        MergeError::Io(error)
    }
}

impl std::fmt::Display for MergeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MergeError::Engine(error) => error.fmt(f),
            MergeError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MergeError {}

/// The smallest size class (powers of four) that has enough segments.
pub(crate) fn choose(segments: &BTreeMap<u64, Segment>) -> Option<Vec<u64>> {
    let mut classes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (id, segment) in segments
        .iter()
        .filter(|(_, segment)| segment.bytes < MERGE_BYTES_MAX)
    {
        // All below 64 KiB are one class: a segment that small is mostly the cost of being a file.
        classes
            .entry(segment.bytes.max(1 << 16).ilog2() / 2)
            .or_default()
            .push(*id);
    }
    classes.into_values().find(|ids| ids.len() >= MERGE_SEGMENTS_MIN)
}

impl Merge {
    /// Writes the merged segment; answers its length in bytes. Rows before `cutoff_ns` are left out.
    ///
    /// # Errors
    /// A block that does not read, or an error of `out`.
    pub fn write(&self, out: impl Write, cutoff_ns: i64) -> Result<u64, MergeError> {
        let mut segment = SegmentWriter::new(out)?;
        for (source, blocks) in &self.sources {
            let mut blocks: Vec<&Arc<Block>> =
                blocks.iter().filter(|b| b.summary.last_ns >= cutoff_ns).collect();
            blocks.sort_by_key(|block| block.summary.first_ns);
            let mut pending = Pending {
                source: *source,
                cutoff_ns,
                rows: Columns::default(),
            };
            let mut index = 0;
            while index < blocks.len() {
                let overlapping = overlapping(&blocks[index..]);
                let group = &blocks[index..index + overlapping];
                index += overlapping;
                let whole = overlapping == 1
                    && group[0].summary.rows >= SMALL_BLOCK_ROWS
                    && group[0].summary.first_ns >= cutoff_ns;
                if whole {
                    pending.flush(&mut segment)?;
                    segment.push(group[0])?;
                } else {
                    pending.merge(group, &mut segment)?;
                }
            }
            pending.flush(&mut segment)?;
        }
        Ok(segment.finish()?)
    }
}

/// How many of the first blocks overlap in time, directly or through each other.
fn overlapping(blocks: &[&Arc<Block>]) -> usize {
    let mut last_ns = blocks[0].summary.last_ns;
    let mut count = 1;
    while let Some(next) = blocks.get(count).filter(|next| next.summary.first_ns <= last_ns) {
        last_ns = last_ns.max(next.summary.last_ns);
        count += 1;
    }
    count
}

/// Sorted rows that do not fill a block yet.
struct Pending {
    source: u32,
    cutoff_ns: i64,
    rows: Columns,
}

impl Pending {
    /// Adds a group of overlapping blocks that lies behind what is pending. Memory holds the blocks that overlap at
    /// one moment, not the group: a block is read when the rows reach its beginning.
    fn merge<W: Write>(
        &mut self,
        group: &[&Arc<Block>],
        segment: &mut SegmentWriter<W>,
    ) -> Result<(), MergeError> {
        for (index, block) in group.iter().enumerate() {
            let columns = BlockReader::new(block)?.columns()?;
            self.rows = Columns::merged(&[&self.rows, &columns]);
            let expired = self
                .rows
                .timestamps_ns
                .partition_point(|timestamp| *timestamp < self.cutoff_ns);
            // Rows before the next block's beginning are in their final order.
            let settled = match group.get(index + 1) {
                Some(next) => self
                    .rows
                    .timestamps_ns
                    .partition_point(|t| *t < next.summary.first_ns)
                    .max(expired),
                None => self.rows.rows(),
            };
            let cut = expired + (settled - expired) / BLOCK_ROWS_MAX * BLOCK_ROWS_MAX;
            cut_blocks(self.source, &self.rows, expired..cut)
                .iter()
                .try_for_each(|block| segment.push(block))?;
            self.rows = rest(&self.rows, cut);
        }
        Ok(())
    }

    fn flush<W: Write>(&mut self, segment: &mut SegmentWriter<W>) -> Result<(), MergeError> {
        let rows = std::mem::take(&mut self.rows);
        Ok(cut_blocks(self.source, &rows, 0..rows.rows())
            .iter()
            .try_for_each(|block| segment.push(block))?)
    }
}

fn rest(columns: &Columns, from: usize) -> Columns {
    if from == 0 {
        return columns.clone();
    }
    let picks: Vec<(u32, u32)> = (from as u32..columns.rows() as u32).map(|row| (0, row)).collect();
    Columns::gather(&[columns], &picks)
}
