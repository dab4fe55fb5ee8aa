//! The end of a segment file: the buckets it contains, and the location of each bucket's entries.

use std::ops::Range;

use super::WHAT;
use crate::EngineError;
use crate::block::BlockSummary;
use crate::bytes::Reader;
use crate::content::Tail;

/// Version of the segments that are written.
pub const SEGMENT_VERSION: u8 = 4;
pub(super) const MAGIC: &[u8; 8] = b"TWSEGM04";
const _: () = assert!(MAGIC[7] == b'0' + SEGMENT_VERSION);
/// Magic of version 3, whose entries have no decimals; otherwise read like version 4.
const MAGIC_3: &[u8; 8] = b"TWSEGM03";
/// Magic of version 2, which contains one bucket without naming it.
const MAGIC_2: &[u8; 8] = b"TWSEGM02";
/// Magic of version 1, whose footers have no carries; otherwise read like version 2.
const MAGIC_1: &[u8; 8] = b"TWSEGM01";
pub(super) const END_MAGIC: &[u8; 8] = b"TWSEGEND";
/// Offset of the table, number of rows, checksum, end magic.
pub(super) const TRAILER_BYTES: usize = 8 + 4 + 4 + 8;
/// Bucket, source and length before each block: identifies the block if the footer is lost.
pub(super) const HEAD_BYTES: usize = 4 + 4 + 4;
/// In versions 1 and 2: footer length, footer checksum, end magic.
const OLD_TRAILER_BYTES: usize = 8 + 4 + 8;
/// Bucket, blocks, rows, size of the blocks, offset of the entries, their length and checksum.
pub(super) const ROW_BYTES: usize = 4 + 4 + 8 + 8 + 8 + 4 + 4;
/// Minimum size of an entry in bytes: nine numbers of at least one byte.
const ENTRY_BYTES_MIN: usize = 9;
/// Offsets in a footer are kept in 32 bits, because a large fleet has millions of them.
pub(super) const FOOTER_BYTES_MAX: u64 = u32::MAX as u64;

/// A bucket's row of the table of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRow {
    /// The bucket's ordinal.
    pub bucket: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of rows in them.
    pub rows: u64,
    /// Size of the blocks in bytes, heads included.
    pub(super) block_bytes: u64,
    /// Range of its entries in the file.
    pub(super) entries: Range<usize>,
    pub(super) checksum: u32,
}

impl SegmentRow {
    /// Bytes of the file used by this bucket alone: its blocks with their heads, their entries, its row of the table.
    pub fn bytes(&self) -> u64 {
        self.block_bytes
            .saturating_add((self.entries.len() + ROW_BYTES) as u64)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bucket.to_le_bytes());
        out.extend_from_slice(&self.blocks.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.block_bytes.to_le_bytes());
        out.extend_from_slice(&(self.entries.start as u64).to_le_bytes());
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, EngineError> {
        let mut reader = Reader::new(bytes, "segment table");
        let (bucket, blocks) = (reader.le_u32()?, reader.le_u32()?);
        let (rows, block_bytes) = (reader.le_u64()?, reader.le_u64()?);
        // An impossible offset must stay beyond the end of any file.
        let start = usize::try_from(reader.le_u64()?).unwrap_or(usize::MAX);
        let len = reader.le_u32()? as usize;
        Ok(SegmentRow {
            bucket,
            blocks,
            rows,
            block_bytes,
            entries: start..start.saturating_add(len),
            checksum: reader.le_u32()?,
        })
    }

    /// The number of blocks, limited to what fits into that many bytes of entries.
    pub(super) fn blocks_within(&self, bytes: usize) -> usize {
        (self.blocks as usize).min(bytes / ENTRY_BYTES_MIN)
    }

    /// Whether the blocks fit into the entries, and the rows into the blocks. If so, sums over a table cannot overflow.
    fn is_possible(&self) -> bool {
        let rows_max = u64::from(self.blocks) * u64::from(u32::MAX);
        self.blocks > 0
            && self.blocks as usize == self.blocks_within(self.entries.len())
            && (u64::from(self.blocks)..=rows_max).contains(&self.rows)
    }
}

/// The table of a segment: the buckets are in memory, the rows are read from the file when needed.
pub(super) struct Table {
    /// Range of all entries.
    footer: Range<usize>,
    /// In ascending order, like the rows. Kept in memory, so that later damage to the file cannot hide a bucket.
    buckets: Box<[u32]>,
    home: Home,
}

enum Home {
    /// Offset of the table in the file.
    File(usize),
    /// The row of a file that has no table.
    Bucket(SegmentRow),
}

/// The end of a file from version 3 on.
struct Trailer {
    /// Offset of the table.
    at: usize,
    checksum: u32,
}

impl Trailer {
    fn read(tail: Tail<'_>) -> Result<Self, EngineError> {
        let start = tail.len().saturating_sub(TRAILER_BYTES);
        let bytes = tail.get(start..tail.len());
        let bytes = bytes.ok_or_else(|| corrupt(start, "a whole trailer"))?;
        let mut trailer = Reader::new(bytes, "segment trailer");
        let at = trailer.le_u64()?;
        let count = trailer.le_u32()? as usize;
        let checksum = trailer.le_u32()?;
        if trailer.rest() != END_MAGIC {
            return Err(corrupt(start, "the end of a segment file"));
        }
        let table_bytes = count.checked_mul(ROW_BYTES);
        let at = table_bytes
            .and_then(|len| start.checked_sub(len))
            .filter(|table| *table as u64 == at && *table >= MAGIC.len())
            .ok_or_else(|| corrupt(start, "a table within the file"))?;
        Ok(Trailer { at, checksum })
    }
}

/// What the last bytes of a segment file say of its footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FooterStart {
    /// It starts at this offset.
    At(usize),
    /// The bytes from this offset on say where it starts.
    Unknown(usize),
}

/// Where the footer of a segment file of `len` bytes starts, given its last bytes, which must include the trailer. Table and
/// entries are not verified: [`crate::SegmentFile::open`] does that.
///
/// # Errors
/// [`EngineError::Corrupt`] if they are not the end of a segment file from version 3 on.
pub fn footer_start(last_bytes: &[u8], len: usize) -> Result<FooterStart, EngineError> {
    let tail = Tail::new(last_bytes, len);
    let at = Trailer::read(tail)?.at;
    if at + TRAILER_BYTES == len {
        // No buckets.
        return Ok(FooterStart::At(at));
    }
    let Some(first) = tail.get(at..at + ROW_BYTES) else {
        return Ok(FooterStart::Unknown(at));
    };
    let start = SegmentRow::decode(first)?.entries.start;
    match start <= at {
        true => Ok(FooterStart::At(start)),
        false => Err(corrupt(at, "entries before the table")),
    }
}

impl Table {
    /// Finds and verifies the table at the end of a file from version 3 on. The magic at its beginning is read if it is
    /// here: the table has a checksum.
    pub(super) fn find(tail: Tail<'_>) -> Result<Self, EngineError> {
        let begins = tail.get(0..MAGIC.len());
        let is_known = begins.is_none_or(|magic| magic == MAGIC || magic == MAGIC_3);
        if tail.len() < MAGIC.len() + TRAILER_BYTES || !is_known {
            return Err(corrupt(0, "a segment file of version 3 or 4"));
        }
        let Trailer { at, checksum } = Trailer::read(tail)?;
        let trailer_start = tail.len() - TRAILER_BYTES;
        let table = tail.get(at..trailer_start);
        let table = table.ok_or_else(|| corrupt(at, "the whole table"))?;
        if crc32fast::hash(table) != checksum {
            return Err(corrupt(at, "a table with the checksum of the trailer"));
        }
        let rows = table.chunks_exact(ROW_BYTES);
        let rows = rows.flat_map(SegmentRow::decode);
        let footer_start = rows.clone().next().map_or(at, |first| first.entries.start);
        let mut buckets: Vec<u32> = Vec::with_capacity(table.len() / ROW_BYTES);
        let (mut behind, mut blocks_end) = (footer_start, Some(MAGIC.len() as u64));
        for row in rows {
            if buckets.last().is_some_and(|last| *last >= row.bucket) {
                return Err(corrupt(at, "buckets in order"));
            }
            if row.entries.start != behind || row.entries.end > at {
                return Err(corrupt(at, "entries one behind the other"));
            }
            if !row.is_possible() {
                return Err(corrupt(at, "counts that fit into the entries"));
            }
            buckets.push(row.bucket);
            behind = row.entries.end;
            blocks_end = blocks_end.and_then(|end| end.checked_add(row.block_bytes));
        }
        if behind != at || blocks_end != Some(footer_start as u64) {
            return Err(corrupt(at, "blocks, entries and table without a gap"));
        }
        if (at - footer_start) as u64 > FOOTER_BYTES_MAX {
            return Err(corrupt(at, "a footer of less than 4 GiB"));
        }
        if footer_start < tail.start() {
            return Err(corrupt(footer_start, "the whole footer"));
        }
        Ok(Table {
            footer: footer_start..at,
            buckets: buckets.into_boxed_slice(),
            home: Home::File(at),
        })
    }

    /// Computes the table of a file of version 1 or 2.
    pub(super) fn of_bucket(bucket: u32, bytes: &[u8]) -> Result<Self, EngineError> {
        let known = bytes.starts_with(MAGIC_1) || bytes.starts_with(MAGIC_2);
        if bytes.len() < MAGIC.len() + OLD_TRAILER_BYTES || !known {
            return Err(corrupt(0, "a segment file of version 1 or 2"));
        }
        let trailer_start = bytes.len() - OLD_TRAILER_BYTES;
        let mut trailer = Reader::new(&bytes[trailer_start..], "segment trailer");
        let footer_len = trailer.le_u64()?;
        let checksum = trailer.le_u32()?;
        if trailer.rest() != END_MAGIC {
            return Err(corrupt(trailer_start, "the end of a segment file"));
        }
        let start = old_footer_start(trailer_start, footer_len)?;
        let footer = &bytes[start..trailer_start];
        if crc32fast::hash(footer) != checksum {
            return Err(corrupt(start, "a footer with the checksum of the trailer"));
        }
        let mut reader = Reader::new(footer, WHAT);
        let blocks = reader.count()?;
        let entries = reader.rest();
        let (mut rows, mut block_bytes) = (0, 0u64);
        for _ in 0..blocks {
            rows += u64::from(BlockSummary::decode_without_fields(&mut reader)?.rows);
            let (_offset, len) = (reader.varint()?, reader.varint()?);
            let sum = block_bytes.checked_add(len);
            block_bytes = sum.ok_or_else(|| reader.corrupt("blocks within the file"))?;
        }
        let row = SegmentRow {
            bucket,
            blocks: u32::try_from(blocks).map_err(|_| corrupt(start, "fewer blocks than 2^32"))?,
            rows,
            block_bytes,
            checksum: crc32fast::hash(entries),
            entries: trailer_start - entries.len()..trailer_start,
        };
        Ok(Table {
            footer: start..trailer_start,
            // A merge of expired rows only has left a file without blocks.
            buckets: (blocks > 0).then_some(bucket).into_iter().collect(),
            home: Home::Bucket(row),
        })
    }

    /// Range of all entries in the file.
    pub(super) fn footer(&self) -> Range<usize> {
        self.footer.clone()
    }

    /// Size of the head before each block, in bytes.
    pub(super) fn head_bytes(&self) -> usize {
        match &self.home {
            Home::File(_) => HEAD_BYTES,
            Home::Bucket(_) => 0,
        }
    }

    pub(super) fn rows<'a>(&'a self, tail: Tail<'a>) -> impl Iterator<Item = SegmentRow> + 'a {
        (0..self.buckets.len()).filter_map(move |number| self.row(tail, number))
    }

    /// The row of a bucket. It may have been damaged since the file was opened.
    pub(super) fn find_bucket(&self, tail: Tail<'_>, bucket: u32) -> Result<Option<SegmentRow>, EngineError> {
        let Ok(number) = self.buckets.binary_search(&bucket) else {
            return Ok(None);
        };
        let row = self.row(tail, number).filter(|row| row.bucket == bucket);
        let expected = "the table as it was when the file was opened";
        row.map(Some).ok_or_else(|| corrupt(self.footer.end, expected))
    }

    fn row(&self, tail: Tail<'_>, number: usize) -> Option<SegmentRow> {
        match &self.home {
            Home::File(at) => {
                let start = at + number * ROW_BYTES;
                SegmentRow::decode(tail.get(start..start + ROW_BYTES)?).ok()
            }
            Home::Bucket(row) => Some(row.clone()),
        }
    }
}

/// The bucket whose block is at this offset of a file from version 3 on; `None` if it cannot be determined.
pub(crate) fn bucket_at(tail: Tail<'_>, offset: usize) -> Option<u32> {
    let table = Table::find(tail).ok()?;
    let mut end = MAGIC.len() as u64;
    let mut rows = table.rows(tail);
    let of_bucket = rows.find(|row| {
        end += row.block_bytes;
        (offset as u64) < end
    });
    of_bucket.map(|row| row.bucket)
}

fn corrupt(offset: usize, expected: &'static str) -> EngineError {
    EngineError::corrupt("segment", offset, expected)
}

/// Start of a footer of this length, in versions 1 and 2.
pub(super) fn old_footer_start(trailer_start: usize, footer_len: u64) -> Result<usize, EngineError> {
    if footer_len > (trailer_start - MAGIC.len()) as u64 {
        return Err(corrupt(trailer_start, "a footer within the file"));
    }
    if footer_len > FOOTER_BYTES_MAX {
        return Err(corrupt(trailer_start, "a footer of less than 4 GiB"));
    }
    Ok(trailer_start - footer_len as usize)
}
