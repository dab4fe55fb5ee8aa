//! A checkpoint: writes rows that only the log contains to blocks of a segment file. Runs on any thread while the store
//! remains in use.

use std::io;
use std::sync::Arc;

use crate::block::Block;
use crate::columns::Columns;
use crate::segment::SegmentWriter;
use crate::series::cut_blocks;

/// The unsaved data of one source.
pub(crate) struct CheckpointPart {
    pub(crate) source: u32,
    /// Chunks taken from the store, each sorted.
    pub(crate) runs: Vec<Arc<Columns>>,
    /// Blocks sealed since the last checkpoint.
    pub(crate) blocks: Vec<Arc<Block>>,
    /// Greatest timestamp of any block of the source.
    pub(crate) sealed_until_ns: i64,
}

/// Rows taken by [`crate::Store::begin_checkpoint`].
pub struct Checkpoint {
    pub(crate) parts: Vec<CheckpointPart>,
    /// The rows and their bytes in the log, to subtract from the store's count of unsaved data.
    pub(crate) counted: (u64, u64),
}

impl Checkpoint {
    /// Writes the rows as blocks of the bucket that the segment has begun.
    ///
    /// # Errors
    /// I/O errors of the file.
    pub fn write(&self, segment: &mut SegmentWriter<'_>) -> io::Result<()> {
        for part in &self.parts {
            let runs: Vec<&Columns> = part.runs.iter().map(|run| &**run).collect();
            let mut blocks = part.blocks.clone();
            if !runs.is_empty() {
                let rows = Columns::merged(&runs);
                // Late rows, from before the end of the sealed blocks, go into blocks of their own: otherwise they
                // would stretch a block of recent rows over all the time between.
                let older = rows
                    .timestamps_ns
                    .partition_point(|timestamp| *timestamp < part.sealed_until_ns);
                blocks.extend(cut_blocks(part.source, &rows, 0..older));
                blocks.extend(cut_blocks(part.source, &rows, older..rows.rows()));
            }
            blocks.sort_by_key(|block| block.summary.first_ns);
            blocks.iter().try_for_each(|block| segment.push(block))?;
        }
        Ok(())
    }
}
