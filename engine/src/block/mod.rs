//! A block: up to 8,192 sorted rows of one source, fewer where their texts are large, compressed column by column, with
//! the rollups of just these rows. Immutable; it lives on the heap until a checkpoint writes it to a segment file, then
//! in the mapped file.
//! The bytes are drawn in FORMAT.md, "Block".

mod level;
mod read;
mod summary;
mod write;

use std::sync::{Arc, OnceLock};

use level::Levels;

pub(crate) use level::Level;
pub use read::BlockReader;
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

/// A block and what is known of it without reading it.
pub struct Block {
    /// What the block holds.
    pub summary: BlockSummary,
    home: SharedBytes,
    offset: usize,
    len: usize,
    segment: Option<u64>,
    /// Made when a question first asks for a rollup.
    levels: OnceLock<Box<Levels>>,
}

impl Block {
    pub(crate) fn new(summary: BlockSummary, home: SharedBytes, offset: usize, len: usize) -> Self {
        Block {
            summary,
            home,
            offset,
            len,
            segment: None,
            levels: OnceLock::new(),
        }
    }

    pub(crate) fn in_segment(self, id: u64) -> Self {
        Block {
            segment: Some(id),
            ..self
        }
    }

    /// The segment it lies in; `None` while it is only on the heap.
    pub(crate) fn segment(&self) -> Option<u64> {
        self.segment
    }

    /// The encoded block.
    pub(crate) fn bytes(&self) -> &[u8] {
        &(*self.home).as_ref()[self.offset..self.offset + self.len]
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
