//! Segment files: blocks of many buckets and sources one behind the other, and a footer that says what they hold, so
//! that opening reads the footer and nothing else. Written once, never changed. The bytes are drawn in FORMAT.md,
//! "Segment".

mod salvage;
mod table;
mod writer;

use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockId, BlockSummary, SharedBytes};
use crate::bytes::Reader;
use crate::entry::BlockEntry;
use crate::error::DamagedBlock;
pub use salvage::{Lost, LostBlock, Salvaged, salvage};
pub use table::PartStats;
pub(crate) use table::bucket_at;
use table::{MAGIC, Table};
pub use writer::SegmentWriter;

const WHAT: &str = "segment footer";

/// An opened segment file, shared by the stores of all buckets that have blocks in it.
pub struct SegmentFile {
    id: u64,
    /// Tells this opening of the file from all others.
    number: u64,
    home: SharedBytes,
    table: Table,
    /// Of all blocks.
    rows: u64,
}

/// What a segment holds of one bucket: its blocks' entries, read and checked.
pub struct SegmentPart {
    pub(crate) file: Arc<SegmentFile>,
    pub(crate) bucket: u32,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// With the source of each, in the order of the file.
    pub(crate) blocks: Vec<(u32, BlockEntry)>,
}

/// What the footer says of a block. Holds nothing of the file: what is cached of it keeps no deleted file open.
#[derive(Clone)]
pub(crate) struct FooterEntry {
    pub(crate) summary: Arc<BlockSummary>,
    offset: usize,
    len: usize,
}

impl SegmentPart {
    /// The number that the segment was opened under.
    pub fn segment(&self) -> u64 {
        self.file.id()
    }

    /// Rows of its blocks.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl SegmentFile {
    /// Opens a file: reads its table of buckets, and neither entries nor blocks.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where the bytes are not a whole segment of the present version.
    pub fn open(id: u64, home: SharedBytes) -> Result<Arc<Self>, EngineError> {
        let table = Table::find((*home).as_ref())?;
        Ok(Self::new(id, home, table))
    }

    /// Opens a file of version 1 or 2, which holds blocks of one bucket and does not say of which.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where the bytes are not a whole segment of these versions.
    pub fn open_of_bucket(id: u64, bucket: u32, home: SharedBytes) -> Result<Arc<Self>, EngineError> {
        let table = Table::of_bucket(bucket, (*home).as_ref())?;
        Ok(Self::new(id, home, table))
    }

    fn new(id: u64, home: SharedBytes, table: Table) -> Arc<Self> {
        let rows = table.rows((*home).as_ref()).map(|row| row.rows).sum();
        Arc::new(SegmentFile {
            id,
            number: BlockId::next_home(),
            home,
            table,
            rows,
        })
    }

    /// The number it was opened under.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Length of the file.
    pub fn bytes(&self) -> u64 {
        self.all().len() as u64
    }

    /// Rows of all its blocks; 0 of a file of version 1 or 2, which does not say.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Length of its footer.
    pub fn footer_bytes(&self) -> u64 {
        self.table.footer().len() as u64
    }

    /// Which buckets it has blocks of, in order of their ordinals.
    pub fn parts(&self) -> impl Iterator<Item = PartStats> + '_ {
        self.table.rows(self.all()).map(|row| row.stats())
    }

    /// Reads the entries of a bucket; `None` where the file holds nothing of it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where they are not what was written; the parts of other buckets may be.
    pub fn part(self: &Arc<Self>, bucket: u32) -> Result<Option<SegmentPart>, EngineError> {
        let Some(row) = self.table.find_bucket(self.all(), bucket)? else {
            return Ok(None);
        };
        let corrupt = |expected| EngineError::Corrupt {
            what: WHAT,
            offset: row.entries.start,
            expected,
        };
        let footer = self.table.footer();
        let start = row.entries.start.checked_sub(footer.start);
        let entries = self.all()[..footer.end].get(row.entries.clone());
        let (Some(start), Some(entries)) = (start, entries) else {
            return Err(corrupt("entries within the footer"));
        };
        if crc32fast::hash(entries) != row.checksum {
            return Err(corrupt("entries with the checksum of the table"));
        }
        let mut reader = Reader::new(entries, WHAT);
        let (mut rows, mut block_bytes) = (0, 0u64);
        // The count may have been damaged since the table was compared with its checksum.
        let mut blocks = Vec::with_capacity(row.blocks_within(entries.len()));
        for _ in 0..row.blocks {
            let entry = reader.rest();
            // The footer's length was compared with what this may be.
            let at = (start + entries.len() - entry.len()) as u32;
            let summary = BlockSummary::decode_without_fields(&mut reader)?;
            let (_, len) = self.decode_place(&mut reader)?;
            let checksum = crc32fast::hash(&entry[..entry.len() - reader.rest().len()]);
            let bounds_ns = (summary.first_ns, summary.last_ns);
            rows += u64::from(summary.rows);
            block_bytes = block_bytes.saturating_add((self.table.head_bytes() + len) as u64);
            let entry = BlockEntry::filed(self, at, checksum, summary.rows, bounds_ns);
            blocks.push((summary.source, entry));
        }
        if !reader.is_empty() || (rows, block_bytes) != (row.rows, row.block_bytes) {
            return Err(corrupt("the blocks, rows and bytes that the table says"));
        }
        Ok(Some(SegmentPart {
            file: Arc::clone(self),
            bucket,
            bytes: row.stats().bytes,
            rows,
            blocks,
        }))
    }

    /// Whether the head before a block says whose it is. Nothing reads it while there is a footer.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where it does not.
    pub(crate) fn check_head(&self, bucket: u32, block: &Block) -> Result<(), EngineError> {
        let place = block.place();
        let start = place.start - self.table.head_bytes();
        let head = writer::head(bucket, block.summary.source, place.len() as u32);
        if self.all()[start..place.start] == head[..place.start - start] {
            return Ok(());
        }
        Err(EngineError::Corrupt {
            what: "segment",
            offset: start,
            expected: "bucket, source and length before a block",
        })
    }

    pub(crate) fn block_id(&self, at: u32) -> BlockId {
        BlockId::new(self.number, at)
    }

    /// The block whose entry begins at `at` in the footer.
    pub(crate) fn block(&self, at: u32, entry: FooterEntry) -> Block {
        let bytes = entry.offset..entry.offset + entry.len;
        let home = (self.id, Arc::clone(&self.home));
        Block::filed(entry.summary, home, bytes, self.block_id(at))
    }

    /// Decodes the entry that begins at `at` in the footer and had this checksum when the file was opened.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where it is not what it was.
    pub(crate) fn footer_entry(&self, at: u32, checksum: u32) -> Result<FooterEntry, EngineError> {
        self.decode_entry(at, checksum).map_err(|fault| {
            let offset = self.table.footer().start + at as usize;
            let row = |row: &table::Row| row.entries.contains(&offset);
            EngineError::Damaged(Box::new(DamagedBlock {
                segment: self.id,
                offset: offset as u64,
                bucket: self.table.rows(self.all()).find(row).map(|row| row.bucket),
                source: None,
                fault,
            }))
        })
    }

    fn decode_entry(&self, at: u32, checksum: u32) -> Result<FooterEntry, EngineError> {
        let mut reader = Reader::new(&self.all()[self.table.footer()], WHAT);
        reader.take(at as usize)?;
        let entry = reader.rest();
        let summary = BlockSummary::decode(&mut reader)?;
        let (offset, len) = self.decode_place(&mut reader)?;
        if crc32fast::hash(&entry[..entry.len() - reader.rest().len()]) != checksum {
            return Err(reader.corrupt("the footer as it was when the file was opened"));
        }
        Ok(FooterEntry {
            summary: Arc::new(summary),
            offset,
            len,
        })
    }

    /// Offset and length of a block.
    fn decode_place(&self, reader: &mut Reader<'_>) -> Result<(usize, usize), EngineError> {
        let (offset, len) = (reader.varint()? as usize, reader.varint()? as usize);
        let end = offset.checked_add(len);
        if offset < MAGIC.len() + self.table.head_bytes()
            || end.is_none_or(|end| end > self.table.footer().start)
        {
            return Err(reader.corrupt("blocks before the footer"));
        }
        Ok((offset, len))
    }

    fn all(&self) -> &[u8] {
        (*self.home).as_ref()
    }
}

#[cfg(test)]
mod tests;
