//! A block in the list of a series: its bounds, its row count and its location. Entries are small, because a large
//! fleet has many sources with a block in every segment; the block's summary is decoded when a query needs it.

use std::ops::Range;
use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockId};
use crate::cache::{Cache, Key, Part, Value};
use crate::segment::SegmentFile;

/// Bounds and row count of a block, which a query compares without accessing the block.
#[derive(Clone)]
pub(crate) struct BlockEntry {
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    pub(crate) rows: u32,
    /// Checksum of the footer entry, to detect damage since the file was opened; 0 on the heap.
    checksum: u32,
    home: Home,
}

#[derive(Clone)]
enum Home {
    /// Not in a segment yet.
    Heap(Arc<Block>),
    Filed {
        file: Arc<SegmentFile>,
        /// Offset of its entry in the footer.
        at: u32,
    },
}

impl BlockEntry {
    /// The entry of a block that is in no segment.
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

    /// The entry of a block in a segment, with the values of its footer entry at `at`.
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

    /// Whether the bounds overlap the range, both ends inclusive.
    pub(crate) fn overlaps(&self, (start, end): (i64, i64)) -> bool {
        self.first_ns <= end && self.last_ns >= start
    }

    /// Whether all rows are within the range, both ends inclusive.
    pub(crate) fn is_within(&self, (start, end): (i64, i64)) -> bool {
        start <= self.first_ns && self.last_ns <= end
    }

    /// Identifies the block.
    pub(crate) fn id(&self) -> BlockId {
        match &self.home {
            Home::Heap(block) => block.id(),
            Home::Filed { file, at } => file.block_id(*at),
        }
    }

    /// The segment that contains the block; `None` while it is only on the heap.
    pub(crate) fn segment(&self) -> Option<u64> {
        match &self.home {
            Home::Heap(_) => None,
            Home::Filed { file, .. } => Some(file.id()),
        }
    }

    /// Whether no byte of its segment has to come from another machine.
    pub(crate) fn is_here(&self) -> bool {
        match &self.home {
            Home::Heap(_) => true,
            Home::Filed { file, .. } => file.is_here(),
        }
    }

    /// The segment that contains the block, and its number of rows.
    pub(crate) fn rows_of_segment(&self) -> Option<(u64, u32)> {
        Some((self.segment()?, self.rows))
    }

    /// The segment that contains the block, and the range of the file that the block takes with its head; `None` while it
    /// is only on the heap.
    ///
    /// # Errors
    /// As for [`BlockEntry::block`].
    pub(crate) fn extent(&self) -> Result<Option<(u64, Range<u64>)>, EngineError> {
        match &self.home {
            Home::Heap(_) => Ok(None),
            Home::Filed { file, .. } => Ok(Some((file.id(), file.extent(&self.block_uncached()?)))),
        }
    }

    /// The block, if it is in no segment.
    pub(crate) fn unsaved(&self) -> Option<&Arc<Block>> {
        match &self.home {
            Home::Heap(block) => Some(block),
            Home::Filed { .. } => None,
        }
    }

    /// The block, with its summary from the cache if possible.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if the footer has been damaged since the file was opened.
    pub(crate) fn block(&self, cache: &Cache) -> Result<Block, EngineError> {
        let Home::Filed { file, at } = &self.home else {
            return self.block_uncached();
        };
        let key = Key {
            block: file.block_id(*at),
            part: Part::Footer,
        };
        if let Some(Value::Footer(entry)) = cache.get(&key) {
            return Ok(file.block(*at, entry));
        }
        let entry = file.footer_entry(*at, self.checksum)?;
        cache.insert(key, Value::Footer(entry.clone()));
        Ok(file.block(*at, entry))
    }

    /// The block, with a summary that bypasses the cache: a scan over a whole store would only evict what queries need.
    ///
    /// # Errors
    /// As for [`BlockEntry::block`].
    pub(crate) fn block_uncached(&self) -> Result<Block, EngineError> {
        match &self.home {
            Home::Heap(block) => Ok(Block::clone(block)),
            Home::Filed { file, at } => Ok(file.block(*at, file.footer_entry(*at, self.checksum)?)),
        }
    }
}
