//! Writes a segment block by block; only the footer is in memory.

use std::io::{self, Write};

use super::table::{END_MAGIC, FOOTER_BYTES_MAX, HEAD_BYTES, MAGIC, SegmentRow};
use crate::block::Block;
use crate::bytes::put_varint;

/// Writes a segment to a file. Buckets must be given in order of their ordinals.
pub struct SegmentWriter<'a> {
    out: &'a mut dyn Write,
    offset: u64,
    /// The entries of all buckets.
    footer: Vec<u8>,
    /// Their entry ranges are relative to the footer until its offset is known.
    rows: Vec<SegmentRow>,
    /// The current bucket; `None` if there is none, or if it was out of order.
    bucket: Option<SegmentRow>,
}

impl<'a> SegmentWriter<'a> {
    /// Begins a file.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(SegmentWriter {
            out,
            offset: MAGIC.len() as u64,
            footer: Vec::new(),
            rows: Vec::new(),
            bucket: None,
        })
    }

    /// Writes a segment with one bucket to memory.
    ///
    /// # Errors
    /// Errors of `write`.
    pub fn of_bucket<E: From<io::Error>>(
        bucket: u32,
        write: impl FnOnce(&mut SegmentWriter<'_>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let mut bytes = Vec::new();
        let mut segment = SegmentWriter::new(&mut bytes)?;
        segment.begin_bucket(bucket);
        write(&mut segment)?;
        segment.finish()?;
        Ok(bytes)
    }

    /// Begins a bucket, whose ordinal must be greater than the previous ones. A bucket without blocks is not recorded.
    /// If it is out of order, its blocks are refused, because they would not be found again.
    pub fn begin_bucket(&mut self, bucket: u32) {
        self.end_bucket();
        let in_order = self.rows.last().is_none_or(|row| row.bucket < bucket);
        self.bucket = in_order.then_some(SegmentRow {
            bucket,
            blocks: 0,
            rows: 0,
            block_bytes: 0,
            entries: self.footer.len()..self.footer.len(),
            checksum: 0,
        });
    }

    fn end_bucket(&mut self) {
        if let Some(mut row) = self.bucket.take().filter(|row| row.blocks > 0) {
            row.entries.end = self.footer.len();
            row.checksum = crc32fast::hash(&self.footer[row.entries.clone()]);
            self.rows.push(row);
        }
    }

    pub(crate) fn push(&mut self, block: &Block) -> io::Result<()> {
        let Some(row) = &mut self.bucket else {
            return Err(io::Error::other("a block of no bucket, or of one out of order"));
        };
        let bytes = block.bytes().map_err(io::Error::other)?;
        let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.out.write_all(&head(row.bucket, block.summary.source, len))?;
        self.out.write_all(&bytes)?;
        block.summary.encode(&mut self.footer);
        put_varint(&mut self.footer, self.offset + HEAD_BYTES as u64);
        put_varint(&mut self.footer, bytes.len() as u64);
        let written = (HEAD_BYTES + bytes.len()) as u64;
        self.offset += written;
        row.blocks += 1;
        row.rows += u64::from(block.summary.rows);
        row.block_bytes += written;
        check_footer_len(self.footer.len() as u64)
    }

    /// Whether no block has been written.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.bucket.as_ref().is_none_or(|row| row.blocks == 0)
    }

    /// Writes the footer; returns the size of the file in bytes.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn finish(mut self) -> io::Result<u64> {
        self.end_bucket();
        self.out.write_all(&self.footer)?;
        let footer_at = self.offset as usize;
        let mut table = Vec::new();
        for row in &mut self.rows {
            row.entries = footer_at + row.entries.start..footer_at + row.entries.end;
            row.encode(&mut table);
        }
        let table_at = self.offset + self.footer.len() as u64;
        let checksum = crc32fast::hash(&table);
        table.extend_from_slice(&table_at.to_le_bytes());
        table.extend_from_slice(&(self.rows.len() as u32).to_le_bytes());
        table.extend_from_slice(&checksum.to_le_bytes());
        table.extend_from_slice(END_MAGIC);
        self.out.write_all(&table)?;
        self.out.flush()?;
        Ok(table_at + table.len() as u64)
    }
}

/// The head of a block.
pub(super) fn head(bucket: u32, source: u32, len: u32) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&bucket.to_le_bytes());
    head[4..8].copy_from_slice(&source.to_le_bytes());
    head[8..].copy_from_slice(&len.to_le_bytes());
    head
}

/// Refuses to write a footer that could not be opened.
pub(super) fn check_footer_len(len: u64) -> io::Result<()> {
    match len {
        0..=FOOTER_BYTES_MAX => Ok(()),
        _ => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the footer of a segment would have 4 GiB or more",
        )),
    }
}
