//! Segment files: blocks of many sources one behind the other, and a footer that says what they hold, so that opening
//! reads the footer and nothing else. Written once, never changed. The bytes are drawn in FORMAT.md, "Segment".

use std::io::{self, Write};
use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockSummary, SharedBytes};
use crate::bytes::{Reader, put_varint};

const MAGIC: &[u8; 8] = b"TWSEGM02";
/// Of version 1, whose footers have no carries; read as they are.
const MAGIC_1: &[u8; 8] = b"TWSEGM01";
const END_MAGIC: &[u8; 8] = b"TWSEGEND";
/// Footer length, footer checksum, end magic.
const TRAILER_BYTES: usize = 8 + 4 + 8;

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
        Ok(())
    }

    /// Writes the footer; answers the length of the whole file.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        let mut footer = Vec::with_capacity(self.footer.len() + 10);
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

/// Reads the footer of a segment file; the blocks share `home` and are not touched.
///
/// # Errors
/// [`EngineError::Corrupt`] where `home` is not a whole segment of a known version.
pub(crate) fn open_segment(id: u64, home: &SharedBytes) -> Result<Vec<Arc<Block>>, EngineError> {
    let bytes = (**home).as_ref();
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
    let body_len = (trailer_start - MAGIC.len()) as u64;
    if footer_len > body_len {
        return Err(corrupt(trailer_start, "a footer within the file"));
    }
    let footer_start = trailer_start - footer_len as usize;
    let footer = &bytes[footer_start..trailer_start];
    if crc32fast::hash(footer) != checksum {
        return Err(corrupt(footer_start, "a footer with the checksum of the trailer"));
    }
    let mut reader = Reader::new(footer, "segment footer");
    let count = reader.count()?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let summary = BlockSummary::decode(&mut reader)?;
        let (offset, len) = (reader.varint()? as usize, reader.varint()? as usize);
        if offset.checked_add(len).is_none_or(|end| end > footer_start) {
            return Err(reader.corrupt("blocks before the footer"));
        }
        blocks.push(Arc::new(
            Block::new(summary, Arc::clone(home), offset, len).in_segment(id),
        ));
    }
    Ok(blocks)
}
