//! Segment files: concatenated blocks of many buckets and sources, and a footer that describes them, so that opening
//! reads only the footer. Written once, never changed. The format is described in FORMAT.md, "Segment".

mod dead;
mod salvage;
mod table;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockId, BlockSummary};
use crate::bytes::Reader;
use crate::content::{SharedBytes, Tail};
use crate::entry::BlockEntry;
use crate::error::DamagedBlock;
pub use dead::DeadRanges;
pub use salvage::{Lost, LostBlock, Salvaged, salvage};
pub(crate) use table::bucket_at;
pub use table::{FooterStart, SEGMENT_VERSION, SegmentRow, footer_start};
use table::{MAGIC, Table};
pub use writer::SegmentWriter;

const WHAT: &str = "segment footer";

/// An open segment file, shared by the stores of all buckets that have blocks in it.
pub struct SegmentFile {
    id: u64,
    /// Identifies this opening of the file.
    number: u64,
    home: SharedBytes,
    table: Table,
    /// Total number of rows.
    rows: u64,
    /// The blocks that are not read any more, as of the opening of the file.
    dead: DeadRanges,
}

/// The part of a segment that belongs to one bucket: the footer entries of its blocks, read and verified.
pub struct SegmentPart {
    pub(crate) file: Arc<SegmentFile>,
    pub(crate) bucket: u32,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// The source and entry of each block, in file order.
    pub(crate) blocks: Vec<(u32, BlockEntry)>,
}

/// A decoded footer entry. It does not reference the file, so a cached entry does not keep a deleted file open.
#[derive(Clone)]
pub(crate) struct FooterEntry {
    pub(crate) summary: Arc<BlockSummary>,
    /// The range of the block in the file.
    pub(crate) place: Range<usize>,
}

impl SegmentPart {
    /// Id under which the segment was opened.
    pub fn segment(&self) -> u64 {
        self.file.id()
    }

    /// Number of rows in its blocks, without dead ones.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl SegmentFile {
    /// Opens a file: reads its table of buckets, but neither entries nor blocks.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the bytes are not a complete segment of version 3 or 4.
    pub fn open(id: u64, home: SharedBytes) -> Result<Arc<Self>, EngineError> {
        Self::open_without(id, home, DeadRanges::default())
    }

    /// Opens a file some of whose blocks are dead: they are in no part.
    ///
    /// # Errors
    /// As for [`SegmentFile::open`].
    pub fn open_without(id: u64, home: SharedBytes, dead: DeadRanges) -> Result<Arc<Self>, EngineError> {
        let table = Table::find(Tail::of(&*home))?;
        Ok(Self::new(id, home, table, dead))
    }

    /// Opens a file of version 1 or 2, which contains blocks of one bucket without naming it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the bytes are not a complete segment of these versions.
    pub fn open_of_bucket(id: u64, bucket: u32, home: SharedBytes) -> Result<Arc<Self>, EngineError> {
        let table = Table::of_bucket(bucket, &home.read(0..home.len())?)?;
        Ok(Self::new(id, home, table, DeadRanges::default()))
    }

    fn new(id: u64, home: SharedBytes, table: Table, dead: DeadRanges) -> Arc<Self> {
        let rows = table.rows(Tail::of(&*home)).map(|row| row.rows).sum();
        Arc::new(SegmentFile {
            id,
            number: BlockId::next_home(),
            home,
            table,
            rows,
            dead,
        })
    }

    /// Id under which the file was opened.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.home.len() as u64
    }

    /// Number of rows in all its blocks, dead ones included.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether no byte of the file has to come from another machine.
    pub(crate) fn is_here(&self) -> bool {
        self.tail().start() == 0
    }

    /// Size of its footer in bytes.
    pub fn footer_bytes(&self) -> u64 {
        self.table.footer().len() as u64
    }

    /// The buckets that have blocks in the file, dead ones included, in order of their ordinals.
    pub fn parts(&self) -> impl Iterator<Item = SegmentRow> + '_ {
        self.table.rows(self.tail())
    }

    /// Reads the entries of a bucket; `None` if the file contains nothing of it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if they are damaged. The parts of other buckets may still be readable.
    pub fn part(self: &Arc<Self>, bucket: u32) -> Result<Option<SegmentPart>, EngineError> {
        let Some(row) = self.table.find_bucket(self.tail(), bucket)? else {
            return Ok(None);
        };
        let corrupt = |expected| EngineError::corrupt(WHAT, row.entries.start, expected);
        let footer = self.table.footer();
        let start = row.entries.start.checked_sub(footer.start);
        let entries = self.tail().get(row.entries.clone());
        let entries = entries.filter(|_| row.entries.end <= footer.end);
        let (Some(start), Some(entries)) = (start, entries) else {
            return Err(corrupt("entries within the footer"));
        };
        if crc32fast::hash(entries) != row.checksum {
            return Err(corrupt("entries with the checksum of the table"));
        }
        let mut reader = Reader::new(entries, WHAT);
        let (mut rows, mut block_bytes, mut dead_rows) = (0, 0u64, 0);
        // The count may have been damaged since the table was verified.
        let mut blocks = Vec::with_capacity(row.blocks_within(entries.len()));
        for _ in 0..row.blocks {
            let entry = reader.rest();
            // Offsets fit into 32 bits: the footer's size was checked.
            let at = (start + entries.len() - entry.len()) as u32;
            let summary = BlockSummary::decode_without_fields(&mut reader)?;
            let place = self.decode_place(&mut reader)?;
            let checksum = crc32fast::hash(&entry[..entry.len() - reader.rest().len()]);
            let bounds_ns = (summary.first_ns, summary.last_ns);
            rows += u64::from(summary.rows);
            block_bytes = block_bytes.saturating_add((self.table.head_bytes() + place.len()) as u64);
            if self.dead.contains(place.start as u64) {
                dead_rows += u64::from(summary.rows);
                continue;
            }
            let entry = BlockEntry::filed(self, at, checksum, summary.rows, bounds_ns);
            blocks.push((summary.source, entry));
        }
        if !reader.is_empty() || (rows, block_bytes) != (row.rows, row.block_bytes) {
            return Err(corrupt("the blocks, rows and bytes that the table says"));
        }
        Ok(Some(SegmentPart {
            file: Arc::clone(self),
            bucket,
            bytes: row.bytes(),
            rows: rows - dead_rows,
            blocks,
        }))
    }

    /// Checks that the head before a block names its bucket and source. Heads are used only if the footer is lost.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if it does not.
    pub(crate) fn check_head(&self, bucket: u32, block: &Block) -> Result<(), EngineError> {
        let place = block.place();
        let start = place.start - self.table.head_bytes();
        let head = writer::head(bucket, block.summary.source, place.len() as u32);
        if *self.home.read(start..place.start)? == head[..place.start - start] {
            return Ok(());
        }
        let expected = "bucket, source and length before a block";
        Err(EngineError::corrupt("segment", start, expected))
    }

    /// The range of the file that a block takes with its head.
    pub(crate) fn extent(&self, block: &Block) -> Range<u64> {
        let place = block.place();
        (place.start - self.table.head_bytes()) as u64..place.end as u64
    }

    pub(crate) fn block_id(&self, at: u32) -> BlockId {
        BlockId::new(self.number, at)
    }

    /// The block whose entry begins at `at` in the footer.
    pub(crate) fn block(&self, at: u32, entry: FooterEntry) -> Block {
        let home = (self.id, Arc::clone(&self.home));
        Block::filed(entry, home, self.block_id(at))
    }

    /// Decodes the footer entry at `at`, and verifies that it has the checksum it had when the file was opened.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if it does not.
    pub(crate) fn footer_entry(&self, at: u32, checksum: u32) -> Result<FooterEntry, EngineError> {
        self.decode_entry(at, checksum).map_err(|fault| {
            let offset = self.table.footer().start + at as usize;
            let row = |row: &SegmentRow| row.entries.contains(&offset);
            EngineError::Damaged(Box::new(DamagedBlock {
                segment: self.id,
                offset: offset as u64,
                bucket: self.table.rows(self.tail()).find(row).map(|row| row.bucket),
                source: None,
                fault,
            }))
        })
    }

    fn decode_entry(&self, at: u32, checksum: u32) -> Result<FooterEntry, EngineError> {
        let footer = self.tail().get(self.table.footer()).unwrap_or_default();
        let mut reader = Reader::new(footer, WHAT);
        reader.take(at as usize)?;
        let entry = reader.rest();
        let summary = Arc::new(BlockSummary::decode(&mut reader)?);
        let place = self.decode_place(&mut reader)?;
        if crc32fast::hash(&entry[..entry.len() - reader.rest().len()]) != checksum {
            return Err(reader.corrupt("the footer as it was when the file was opened"));
        }
        Ok(FooterEntry { summary, place })
    }

    /// Decodes offset and length of a block.
    fn decode_place(&self, reader: &mut Reader<'_>) -> Result<Range<usize>, EngineError> {
        let (offset, len) = (reader.varint()? as usize, reader.varint()? as usize);
        let first = MAGIC.len() + self.table.head_bytes();
        match offset.checked_add(len) {
            Some(end) if offset >= first && end <= self.table.footer().start => Ok(offset..end),
            _ => Err(reader.corrupt("blocks before the footer")),
        }
    }

    fn tail(&self) -> Tail<'_> {
        Tail::of(&*self.home)
    }
}

#[cfg(test)]
mod tests;
