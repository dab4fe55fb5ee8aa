//! Segment files: blocks of many sources one behind the other, and a footer that says what they hold, so that opening
//! reads the footer and nothing else. Written once, never changed. The bytes are drawn in FORMAT.md, "Segment".

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockId, BlockSummary, SharedBytes};
use crate::bytes::{Reader, put_varint};
use crate::entry::BlockEntry;

const MAGIC: &[u8; 8] = b"TWSEGM02";
/// Of version 1, whose footers have no carries; read as they are.
const MAGIC_1: &[u8; 8] = b"TWSEGM01";
const END_MAGIC: &[u8; 8] = b"TWSEGEND";
/// Footer length, footer checksum, end magic.
const TRAILER_BYTES: usize = 8 + 4 + 8;
/// Places in a footer are kept in 32 bits, of which a large fleet has millions. Far beyond what is ever merged into one.
const FOOTER_BYTES_MAX: u64 = u32::MAX as u64;
/// Of the varint before the entries.
const COUNT_BYTES_MAX: u64 = 10;
const WHAT: &str = "segment footer";

/// Writes a segment block by block; memory holds the footer only.
pub(crate) struct SegmentWriter<W: Write> {
    out: W,
    offset: u64,
    footer: Vec<u8>,
    blocks: u64,
}

impl<W: Write> SegmentWriter<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(SegmentWriter {
            out,
            offset: MAGIC.len() as u64,
            footer: Vec::new(),
            blocks: 0,
        })
    }

    pub(crate) fn push(&mut self, block: &Block) -> io::Result<()> {
        let bytes = block.bytes();
        self.out.write_all(bytes)?;
        block.summary.encode(&mut self.footer);
        put_varint(&mut self.footer, self.offset);
        put_varint(&mut self.footer, bytes.len() as u64);
        self.offset += bytes.len() as u64;
        self.blocks += 1;
        check_footer_len(self.footer.len() as u64 + COUNT_BYTES_MAX)
    }

    /// Writes the footer; answers the length of the whole file.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        let mut footer = Vec::with_capacity(self.footer.len() + COUNT_BYTES_MAX as usize);
        put_varint(&mut footer, self.blocks);
        footer.extend_from_slice(&self.footer);
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u64).to_le_bytes())?;
        self.out.write_all(&crc32fast::hash(&footer).to_le_bytes())?;
        self.out.write_all(END_MAGIC)?;
        self.out.flush()?;
        Ok(self.offset + (footer.len() + TRAILER_BYTES) as u64)
    }
}

/// What would not open again is not written.
fn check_footer_len(len: u64) -> io::Result<()> {
    match len {
        0..=FOOTER_BYTES_MAX => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the footer of a segment would have 4 GiB or more",
        )),
    }
}

/// An opened segment file, made once for all its blocks.
pub(crate) struct SegmentFile {
    id: u64,
    /// Tells this opening of the file from all others.
    number: u64,
    home: SharedBytes,
    /// Where the footer lies in the file.
    footer: Range<usize>,
}

/// What the footer says of a block. Holds nothing of the file: what is cached of it keeps no deleted file open.
#[derive(Clone)]
pub(crate) struct FooterEntry {
    pub(crate) summary: Arc<BlockSummary>,
    offset: usize,
    len: usize,
}

impl SegmentFile {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn block_id(&self, at: u32) -> BlockId {
        BlockId::new(self.number, at)
    }

    /// The block whose entry begins at `at` in the footer.
    pub(crate) fn block(&self, at: u32, entry: FooterEntry) -> Block {
        let bytes = entry.offset..entry.offset + entry.len;
        Block::within(entry.summary, Arc::clone(&self.home), bytes, self.block_id(at))
    }

    /// Decodes the entry that begins at `at` in the footer and had this checksum when the file was opened.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where it is not what it was.
    pub(crate) fn footer_entry(&self, at: u32, checksum: u32) -> Result<FooterEntry, EngineError> {
        let footer = &(*self.home).as_ref()[self.footer.clone()];
        let mut reader = Reader::new(footer, WHAT);
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
        if offset.checked_add(len).is_none_or(|end| end > self.footer.start) {
            return Err(reader.corrupt("blocks before the footer"));
        }
        Ok((offset, len))
    }
}

/// Reads the footer of a segment file; the blocks share `home` and are not touched. Answers their sources and entries.
///
/// # Errors
/// [`EngineError::Corrupt`] where `home` is not a whole segment of a known version.
pub(crate) fn open_segment(id: u64, home: &SharedBytes) -> Result<Vec<(u32, BlockEntry)>, EngineError> {
    let bytes = (**home).as_ref();
    let footer = find_footer(bytes)?;
    let mut reader = Reader::new(&bytes[footer.clone()], WHAT);
    let file = Arc::new(SegmentFile {
        id,
        number: BlockId::next_home(),
        home: Arc::clone(home),
        footer: footer.clone(),
    });
    let count = reader.count()?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = reader.rest();
        // The footer's length was compared with what this may be.
        let at = (footer.len() - entry.len()) as u32;
        let summary = BlockSummary::decode_without_fields(&mut reader)?;
        file.decode_place(&mut reader)?;
        let checksum = crc32fast::hash(&entry[..entry.len() - reader.rest().len()]);
        let bounds_ns = (summary.first_ns, summary.last_ns);
        blocks.push((
            summary.source,
            BlockEntry::filed(&file, at, checksum, summary.rows, bounds_ns),
        ));
    }
    Ok(blocks)
}

/// Where the footer of a segment file lies, its checksum compared.
fn find_footer(bytes: &[u8]) -> Result<Range<usize>, EngineError> {
    let corrupt = |offset: usize, expected| EngineError::Corrupt {
        what: "segment",
        offset,
        expected,
    };
    let known = bytes.starts_with(MAGIC) || bytes.starts_with(MAGIC_1);
    if bytes.len() < MAGIC.len() + TRAILER_BYTES || !known {
        return Err(corrupt(0, "a segment file of version 1 or 2"));
    }
    let trailer_start = bytes.len() - TRAILER_BYTES;
    let mut trailer = Reader::new(&bytes[trailer_start..], "segment trailer");
    let footer_len = u64::from_le_bytes(trailer.fixed()?);
    let checksum = u32::from_le_bytes(trailer.fixed()?);
    if trailer.rest() != END_MAGIC {
        return Err(corrupt(trailer_start, "the end of a segment file"));
    }
    let footer_start = footer_start(trailer_start, footer_len)?;
    if crc32fast::hash(&bytes[footer_start..trailer_start]) != checksum {
        return Err(corrupt(footer_start, "a footer with the checksum of the trailer"));
    }
    Ok(footer_start..trailer_start)
}

/// Where a footer of this length begins.
fn footer_start(trailer_start: usize, footer_len: u64) -> Result<usize, EngineError> {
    let corrupt = |expected| EngineError::Corrupt {
        what: "segment",
        offset: trailer_start,
        expected,
    };
    if footer_len > (trailer_start - MAGIC.len()) as u64 {
        return Err(corrupt("a footer within the file"));
    }
    if footer_len > FOOTER_BYTES_MAX {
        return Err(corrupt("a footer of less than 4 GiB"));
    }
    Ok(trailer_start - footer_len as usize)
}

#[cfg(test)]
mod tests;
