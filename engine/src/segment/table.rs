//! The end of a segment file: which buckets it holds, and where the entries of each are.

use std::ops::Range;

use super::WHAT;
use crate::EngineError;
use crate::bytes::Reader;

pub(super) const MAGIC: &[u8; 8] = b"TWSEGM03";
/// Of version 2, which holds one bucket and does not say which.
const MAGIC_2: &[u8; 8] = b"TWSEGM02";
/// Of version 1, whose footers have no carries; read as they are.
const MAGIC_1: &[u8; 8] = b"TWSEGM01";
pub(super) const END_MAGIC: &[u8; 8] = b"TWSEGEND";
/// Where the table begins, how many rows it has, its checksum, end magic.
pub(super) const TRAILER_BYTES: usize = 8 + 4 + 4 + 8;
/// Of versions 1 and 2: footer length, footer checksum, end magic.
const OLD_TRAILER_BYTES: usize = 8 + 4 + 8;
/// Bucket, blocks, rows, bytes of the blocks, where the entries begin, their length and checksum.
pub(super) const ROW_BYTES: usize = 4 + 4 + 8 + 8 + 8 + 4 + 4;
/// Places in a footer are kept in 32 bits, of which a large fleet has millions.
pub(super) const FOOTER_BYTES_MAX: u64 = u32::MAX as u64;

/// What a segment holds of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartStats {
    /// The bucket's ordinal.
    pub bucket: u32,
    /// Blocks.
    pub blocks: u32,
    /// Rows in them.
    pub rows: u64,
    /// Bytes of the blocks and of what the footer says of them.
    pub bytes: u64,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) bucket: u32,
    pub(super) blocks: u32,
    pub(super) rows: u64,
    /// Bytes of the blocks, heads included.
    pub(super) block_bytes: u64,
    /// Where its entries are in the file.
    pub(super) entries: Range<usize>,
    pub(super) checksum: u32,
}

impl Row {
    pub(super) fn stats(&self) -> PartStats {
        PartStats {
            bucket: self.bucket,
            blocks: self.blocks,
            rows: self.rows,
            bytes: self.block_bytes + (self.entries.len() + ROW_BYTES) as u64,
        }
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

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bucket, rest) = bytes.split_first_chunk()?;
        let (blocks, rest) = rest.split_first_chunk()?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (block_bytes, rest) = rest.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (checksum, _) = rest.split_first_chunk()?;
        let start = usize::try_from(u64::from_le_bytes(*start)).ok()?;
        Some(Row {
            bucket: u32::from_le_bytes(*bucket),
            blocks: u32::from_le_bytes(*blocks),
            rows: u64::from_le_bytes(*rows),
            block_bytes: u64::from_le_bytes(*block_bytes),
            entries: start..start.checked_add(u32::from_le_bytes(*len) as usize)?,
            checksum: u32::from_le_bytes(*checksum),
        })
    }
}

/// Where the table is; its rows are read where they lie.
pub(super) struct Table {
    /// All entries.
    footer: Range<usize>,
    home: Home,
}

enum Home {
    File {
        at: usize,
        count: usize,
    },
    /// Of a file that has none.
    Bucket(Row),
}

impl Table {
    /// Finds the table at the end of a file, its checksum compared.
    pub(super) fn find(bytes: &[u8]) -> Result<Self, EngineError> {
        if bytes.len() < MAGIC.len() + TRAILER_BYTES || !bytes.starts_with(MAGIC) {
            return Err(corrupt(0, "a segment file of version 3"));
        }
        let trailer_start = bytes.len() - TRAILER_BYTES;
        let mut trailer = Reader::new(&bytes[trailer_start..], "segment trailer");
        let at = u64::from_le_bytes(trailer.fixed()?);
        let count = u32::from_le_bytes(trailer.fixed()?) as usize;
        let checksum = u32::from_le_bytes(trailer.fixed()?);
        if trailer.rest() != END_MAGIC {
            return Err(corrupt(trailer_start, "the end of a segment file"));
        }
        let table_bytes = count.checked_mul(ROW_BYTES);
        let at = table_bytes
            .and_then(|len| trailer_start.checked_sub(len))
            .filter(|start| *start as u64 == at && *start >= MAGIC.len())
            .ok_or_else(|| corrupt(trailer_start, "a table within the file"))?;
        if crc32fast::hash(&bytes[at..trailer_start]) != checksum {
            return Err(corrupt(at, "a table with the checksum of the trailer"));
        }
        let mut table = Table {
            footer: at..at,
            home: Home::File { at, count },
        };
        if let Some(first) = table.row(bytes, 0) {
            table.footer.start = first.entries.start;
        }
        let mut behind = table.footer.start;
        for row in table.rows(bytes) {
            if row.entries.start != behind || row.entries.end > at {
                return Err(corrupt(at, "entries one behind the other"));
            }
            behind = row.entries.end;
        }
        let len = table.footer.len() as u64;
        if table.footer.start < MAGIC.len() || behind != at || len > FOOTER_BYTES_MAX {
            return Err(corrupt(at, "entries between the blocks and the table"));
        }
        Ok(table)
    }

    /// The table that a file of version 1 or 2 would have.
    pub(super) fn of_bucket(bucket: u32, bytes: &[u8]) -> Result<Self, EngineError> {
        let known = bytes.starts_with(MAGIC_1) || bytes.starts_with(MAGIC_2);
        if bytes.len() < MAGIC.len() + OLD_TRAILER_BYTES || !known {
            return Err(corrupt(0, "a segment file of version 1 or 2"));
        }
        let trailer_start = bytes.len() - OLD_TRAILER_BYTES;
        let mut trailer = Reader::new(&bytes[trailer_start..], "segment trailer");
        let footer_len = u64::from_le_bytes(trailer.fixed()?);
        let checksum = u32::from_le_bytes(trailer.fixed()?);
        if trailer.rest() != END_MAGIC {
            return Err(corrupt(trailer_start, "the end of a segment file"));
        }
        let start = footer_start(trailer_start, footer_len)?;
        let footer = &bytes[start..trailer_start];
        if crc32fast::hash(footer) != checksum {
            return Err(corrupt(start, "a footer with the checksum of the trailer"));
        }
        let mut reader = Reader::new(footer, WHAT);
        let blocks = reader.count()?;
        let entries = reader.rest();
        let entries_start = trailer_start - entries.len();
        Ok(Table {
            footer: start..trailer_start,
            home: Home::Bucket(Row {
                bucket,
                blocks: u32::try_from(blocks).map_err(|_| corrupt(start, "fewer blocks than 2^32"))?,
                // Nobody asks before the entries are read.
                rows: 0,
                block_bytes: (start - MAGIC.len()) as u64,
                checksum: crc32fast::hash(entries),
                entries: entries_start..trailer_start,
            }),
        })
    }

    /// Where all entries are in the file.
    pub(super) fn footer(&self) -> Range<usize> {
        self.footer.clone()
    }

    pub(super) fn rows<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Row> + 'a {
        let count = match &self.home {
            Home::File { count, .. } => *count,
            Home::Bucket(_) => 1,
        };
        (0..count).map_while(move |number| self.row(bytes, number))
    }

    /// The row of a bucket. They are in order of the ordinals.
    pub(super) fn find_bucket(&self, bytes: &[u8], bucket: u32) -> Option<Row> {
        let (mut low, mut high) = match &self.home {
            Home::File { count, .. } => (0, *count),
            Home::Bucket(row) => return (row.bucket == bucket).then(|| row.clone()),
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row(bytes, middle)?.bucket < bucket {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.row(bytes, low).filter(|row| row.bucket == bucket)
    }

    fn row(&self, bytes: &[u8], number: usize) -> Option<Row> {
        match &self.home {
            Home::File { at, count } if number < *count => {
                let start = at + number * ROW_BYTES;
                Row::decode(bytes.get(start..start + ROW_BYTES)?)
            }
            Home::Bucket(row) if number == 0 => Some(row.clone()),
            _ => None,
        }
    }
}

fn corrupt(offset: usize, expected: &'static str) -> EngineError {
    EngineError::Corrupt {
        what: "segment",
        offset,
        expected,
    }
}

/// Where a footer of this length begins.
fn footer_start(trailer_start: usize, footer_len: u64) -> Result<usize, EngineError> {
    if footer_len > (trailer_start - MAGIC.len()) as u64 {
        return Err(corrupt(trailer_start, "a footer within the file"));
    }
    if footer_len > FOOTER_BYTES_MAX {
        return Err(corrupt(trailer_start, "a footer of less than 4 GiB"));
    }
    Ok(trailer_start - footer_len as usize)
}
