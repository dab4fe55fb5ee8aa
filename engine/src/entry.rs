//! A block as a series lists it: its bounds, its rows, and where it is. Kept small, because a large fleet has many
//! sources with a block in every segment; the rest of what is known of a block is decoded when a question needs it.

use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockId};
use crate::cache::{Cache, Key, Part, Value};
use crate::segment::{FooterEntry, SegmentFile};

/// A block's bounds and rows, which a query compares without looking at the block.
#[derive(Clone)]
pub(crate) struct BlockEntry {
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) rows: u32,
    /// Of the entry in the footer, to find damage since the file was opened; 0 on the heap.
    checksum: u32,
    home: Home,
}

#[derive(Clone)]
enum Home {
    /// Not yet in a segment.
    Heap(Arc<Block>),
    Filed {
        file: Arc<SegmentFile>,
        /// Where its entry begins in the footer.
        at: u32,
    },
}

impl BlockEntry {
    /// One for a block that no segment holds.
    pub(crate) fn heap(block: Arc<Block>) -> Self {
        let summary = &block.summary;
        BlockEntry {
            first_ns: summary.first_ns,
            last_ns: summary.last_ns,
            rows: summary.rows,
            checksum: 0,
            home: Home::Heap(block),
        }
    }

    /// One for a block in a segment, whose footer says this of it at `at`.
    pub(crate) fn filed(
        file: &Arc<SegmentFile>,
        at: u32,
        checksum: u32,
        rows: u32,
        (first_ns, last_ns): (i64, i64),
    ) -> Self {
        BlockEntry {
            first_ns,
            last_ns,
            rows,
            checksum,
            home: Home::Filed {
                file: Arc::clone(file),
                at,
            },
        }
    }

    /// Tells the block from all others.
    pub(crate) fn id(&self) -> BlockId {
        match &self.home {
            Home::Heap(block) => block.id(),
            Home::Filed { file, at } => file.block_id(*at),
        }
    }

    /// The segment it lies in; `None` while it is only on the heap.
    pub(crate) fn segment(&self) -> Option<u64> {
        match &self.home {
            Home::Heap(_) => None,
            Home::Filed { file, .. } => Some(file.id()),
        }
    }

    /// The segment it lies in, and its rows.
    pub(crate) fn rows_of_segment(&self) -> Option<(u64, u32)> {
        Some((self.segment()?, self.rows))
    }

    /// The block, if no segment holds it.
    pub(crate) fn unsaved(&self) -> Option<&Arc<Block>> {
        match &self.home {
            Home::Heap(block) => Some(block),
            Home::Filed { .. } => None,
        }
    }

    /// The block, its summary from the cache where that has it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where the footer has been damaged since the file was opened.
    pub(crate) fn block(&self, cache: &Cache) -> Result<Block, EngineError> {
        let (file, at) = match &self.home {
            Home::Heap(block) => return Ok(Block::clone(block)),
            Home::Filed { file, at } => (file, *at),
        };
        let key = Key {
            block: file.block_id(at),
            part: Part::Footer,
        };
        if let Some(Value::Footer(entry)) = cache.get(&key) {
            return Ok(file.block(at, entry));
        }
        let entry = self.read(file, at)?;
        cache.insert(key, Value::Footer(entry.clone()));
        Ok(file.block(at, entry))
    }

    /// The block, its summary decoded for the caller alone: who goes through a whole store once would only push out of
    /// the cache what queries need.
    ///
    /// # Errors
    /// As [`BlockEntry::block`].
    pub(crate) fn block_uncached(&self) -> Result<Block, EngineError> {
        match &self.home {
            Home::Heap(block) => Ok(Block::clone(block)),
            Home::Filed { file, at } => Ok(file.block(*at, self.read(file, *at)?)),
        }
    }

    fn read(&self, file: &SegmentFile, at: u32) -> Result<FooterEntry, EngineError> {
        file.footer_entry(at, self.checksum)
    }
}

impl std::fmt::Debug for BlockEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockEntry")
            .field("first_ns", &self.first_ns)
            .field("last_ns", &self.last_ns)
            .field("rows", &self.rows)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
