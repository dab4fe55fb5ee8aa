//! A block: up to 8,192 sorted rows of one source, fewer if their texts are large, compressed column by column, with
//! the rollups of these rows. Immutable. It is on the heap until a checkpoint writes it to a segment file, then in the
//! mapped file. The format is described in FORMAT.md, "Block".

mod first_last;
mod level;
mod read;
mod recover;
mod summary;
mod write;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::EngineError;
use crate::content::{SharedBytes, Tail};
use crate::error::DamagedBlock;
use crate::segment::{FooterEntry, bucket_at};
pub(crate) use first_last::{FirstLast, are_of};
pub(crate) use level::{KeptCells, MissingLevels, may_be_kept};
pub use read::BlockReader;
pub(crate) use recover::{own_length, recover};
pub use summary::{BlockSummary, FieldKind, FieldSummary};
pub(crate) use write::encode_block;

/// Maximum number of rows of a block. Fewer cost more bytes per point, more gain little (pco recommends at least 1,024
/// per page).
pub const BLOCK_ROWS_MAX: usize = 8_192;

/// Size of distinct texts in bytes at which a block is full, whatever its number of rows: reading one text decompresses
/// all of them, and writing the block holds all of them in memory.
pub(crate) const BLOCK_TEXT_BYTES: usize = 4 << 20;

/// Version byte at the beginning of every block that is written. Integers are packed from version 2 on, also as digits of a
/// base from version 3 on; the versions do not differ otherwise.
pub const BLOCK_VERSION: u8 = 3;

/// A block with its summary, which is known without reading the block. Cheap to clone.
#[derive(Clone)]
pub struct Block {
    /// Rows, bounds and aggregates of the block.
    pub summary: Arc<BlockSummary>,
    home: SharedBytes,
    /// The range of the block in its home.
    place: Range<usize>,
    id: BlockId,
    /// Id of the segment; `None` on the heap.
    segment: Option<u64>,
}

/// Identifies a block uniquely within this process: cached parts of a block are never mistaken for another one's, even
/// if a segment is opened again under its old id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockId {
    home: u64,
    at: u32,
}

impl BlockId {
    /// The block in this home whose footer entry begins at `at`.
    pub(crate) fn new(home: u64, at: u32) -> Self {
        BlockId { home, at }
    }

    /// A new number for a home of blocks: an open segment, or a block on the heap.
    pub(crate) fn next_home() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

impl Block {
    /// A block that is in no segment.
    pub(crate) fn new(summary: BlockSummary, home: SharedBytes, place: Range<usize>) -> Self {
        Block {
            summary: Arc::new(summary),
            home,
            place,
            id: BlockId::new(BlockId::next_home(), 0),
            segment: None,
        }
    }

    /// A block of a segment, given by id and bytes.
    pub(crate) fn filed(entry: FooterEntry, (segment, home): (u64, SharedBytes), id: BlockId) -> Self {
        Block {
            summary: entry.summary,
            home,
            place: entry.place,
            id,
            segment: Some(segment),
        }
    }

    /// Adds the location of the block to an error, if the block is in a segment.
    pub(crate) fn located<T>(&self, read: Result<T, EngineError>) -> Result<T, EngineError> {
        read.map_err(|error| self.locate(error))
    }

    fn locate(&self, fault: EngineError) -> EngineError {
        let (EngineError::Corrupt { .. }, Some(segment)) = (&fault, self.segment) else {
            return fault;
        };
        EngineError::Damaged(Box::new(DamagedBlock {
            segment,
            offset: self.place.start as u64,
            bucket: bucket_at(Tail::of(&*self.home), self.place.start),
            source: Some(self.summary.source),
            fault,
        }))
    }

    pub(crate) fn id(&self) -> BlockId {
        self.id
    }

    /// The range of the block in its home.
    pub(crate) fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Whether no byte of the block has to come from another machine.
    pub(crate) fn is_here(&self) -> bool {
        Tail::of(&*self.home).start() <= self.place.start
    }

    /// The encoded block.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] if it cannot be had now.
    pub(crate) fn bytes(&self) -> Result<Cow<'_, [u8]>, EngineError> {
        self.home.read(self.place())
    }

    /// Bytes of the encoded block.
    fn read(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>, EngineError> {
        self.home.read(self.range_of(range))
    }

    /// The same after a damage, see [`crate::Content::read_again`].
    fn read_again(&self, range: Range<usize>) -> Result<Option<Cow<'_, [u8]>>, EngineError> {
        self.home.read_again(self.range_of(range))
    }

    fn range_of(&self, range: Range<usize>) -> Range<usize> {
        self.place.start + range.start..self.place.start + range.end
    }
}

#[cfg(test)]
mod tests;
