//! A block: up to 8,192 sorted rows of one source, fewer where their texts are large, compressed column by column, with
//! the rollups of just these rows. Immutable; it lives on the heap until a checkpoint writes it to a segment file, then
//! in the mapped file.
//! The bytes are drawn in FORMAT.md, "Block".

mod level;
mod read;
mod recover;
mod summary;
mod write;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::EngineError;
use crate::error::DamagedBlock;
use crate::segment::bucket_at;
pub(crate) use level::{KeptCells, Level};
pub use read::BlockReader;
pub(crate) use recover::{own_length, recover};
pub use summary::{BlockSummary, FieldKind, FieldSummary};
pub(crate) use write::encode_block;

/// Rows of a full block. Fewer cost more bytes a point, more gain little (pco's own figure: at least 1,024 a page).
pub const BLOCK_ROWS_MAX: usize = 8_192;

/// Bytes of different texts at which a block is full whatever its rows: to read one of them all are decompressed, and to
/// write the block all are in memory.
pub(crate) const BLOCK_TEXT_BYTES: usize = 4 << 20;

/// Version byte at the head of every block.
const BLOCK_VERSION: u8 = 1;

/// Read-only bytes that a block lies in: a heap buffer or a mapped file.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A block and what is known of it without reading it. Cheap to clone.
#[derive(Clone)]
pub struct Block {
    /// What the block holds.
    pub summary: Arc<BlockSummary>,
    home: SharedBytes,
    offset: usize,
    len: usize,
    id: BlockId,
    /// The number of the segment; `None` on the heap.
    segment: Option<u64>,
}

/// Tells a block from all others that this process ever has: what a cache keeps of a block never meets another one,
/// even when a segment is opened again under its old number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockId {
    home: u64,
    at: u32,
}

impl BlockId {
    /// The block of this home whose entry in the footer begins at `at`.
    pub(crate) fn new(home: u64, at: u32) -> Self {
        BlockId { home, at }
    }

    /// A number for a home of blocks: an opened segment, or a block on the heap.
    pub(crate) fn next_home() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

impl Block {
    /// One on the heap, in a home of its own.
    pub(crate) fn new(
        summary: impl Into<Arc<BlockSummary>>,
        home: SharedBytes,
        offset: usize,
        len: usize,
    ) -> Self {
        Block {
            summary: summary.into(),
            home,
            offset,
            len,
            id: BlockId::new(BlockId::next_home(), 0),
            segment: None,
        }
    }

    /// One that lies with others in the segment of this number, within these bytes of it.
    pub(crate) fn filed(
        summary: Arc<BlockSummary>,
        (segment, home): (u64, SharedBytes),
        bytes: Range<usize>,
        id: BlockId,
    ) -> Self {
        Block {
            summary,
            home,
            offset: bytes.start,
            len: bytes.len(),
            id,
            segment: Some(segment),
        }
    }

    /// Says in which segment damage is that was found in the block, and where.
    pub(crate) fn located<T>(&self, read: Result<T, EngineError>) -> Result<T, EngineError> {
        match (read, self.segment) {
            (Err(fault @ EngineError::Corrupt { .. }), Some(segment)) => {
                Err(EngineError::Damaged(Box::new(DamagedBlock {
                    segment,
                    offset: self.offset as u64,
                    bucket: bucket_at((*self.home).as_ref(), self.offset),
                    source: Some(self.summary.source),
                    fault,
                })))
            }
            (read, _) => read,
        }
    }

    pub(crate) fn id(&self) -> BlockId {
        self.id
    }

    /// Where it lies in its home.
    pub(crate) fn place(&self) -> Range<usize> {
        self.offset..self.offset + self.len
    }

    /// The encoded block.
    pub(crate) fn bytes(&self) -> &[u8] {
        &(*self.home).as_ref()[self.place()]
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block")
            .field("summary", &self.summary)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
