//! Writes a run file in one pass, entry by entry. In memory are the entries of one block and the tables: 20 bytes for
//! 128 entries, 20 for an owner.

use std::io::{self, Write};

use super::format::{
    BLOCK_ENTRIES, BlockRow, ENTRY_BYTES, Entry, Footer, HEADER_BYTES, OwnerRow, checksum, header,
};
use crate::catalog::Stream;
use crate::ids::ObjectId;

/// An entry on its way into a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub owner: ObjectId,
    pub at_ns: i64,
    pub id: ObjectId,
    /// When it happened: by this it expires.
    pub moment_ns: i64,
    pub again: bool,
    pub payload: &'a [u8],
    /// Of the payload. One that is copied keeps the checksum it has, so that damage stays what it is.
    pub crc: u32,
}

pub(super) struct RunWriter<'a> {
    out: &'a mut dyn Write,
    header: [u8; HEADER_BYTES],
    /// Bytes written.
    at: u64,
    /// Entries of the block that is being filled.
    block: Vec<u8>,
    block_row: BlockRow,
    blocks: Vec<u8>,
    owners: Vec<u8>,
    owner: Option<ObjectId>,
    footer: Footer,
}

impl<'a> RunWriter<'a> {
    pub fn new(out: &'a mut dyn Write, stream: Stream) -> io::Result<Self> {
        let header = header(stream);
        out.write_all(&header)?;
        Ok(Self {
            out,
            header,
            at: HEADER_BYTES as u64,
            block: Vec::with_capacity(BLOCK_ENTRIES as usize * ENTRY_BYTES),
            block_row: BlockRow {
                entries_at: 0,
                firsts: 0,
                crc: 0,
            },
            blocks: Vec::new(),
            owners: Vec::new(),
            owner: None,
            footer: Footer {
                entries: 0,
                firsts: 0,
                owners: 0,
                oldest_ns: i64::MAX,
                newest_ns: i64::MIN,
                tables_at: 0,
                tables_crc: 0,
            },
        })
    }

    /// Takes the next entry, which stands behind the one before.
    pub fn push(&mut self, item: &Item<'_>) -> io::Result<()> {
        let footer = &mut self.footer;
        if self.owner != Some(item.owner) {
            self.owner = Some(item.owner);
            let row = OwnerRow {
                owner: item.owner,
                first: footer.entries,
            };
            row.encode(&mut self.owners);
            footer.owners += 1;
        }
        let entry = Entry {
            at_ns: item.at_ns,
            id: item.id,
            offset: self.at,
            len: u32::try_from(item.payload.len()).map_err(io::Error::other)?,
            crc: item.crc,
            again: item.again,
            firsts: (footer.firsts - self.block_row.firsts) as u8,
        };
        entry.encode(&mut self.block);
        footer.entries += 1;
        footer.firsts += u64::from(!item.again);
        footer.oldest_ns = footer.oldest_ns.min(item.moment_ns);
        footer.newest_ns = footer.newest_ns.max(item.moment_ns);
        self.write(item.payload)?;
        if self.footer.entries.is_multiple_of(BLOCK_ENTRIES) {
            self.end_block()?;
        }
        Ok(())
    }

    /// Writes what is left, tables and footer.
    pub fn finish(mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.footer.tables_at = self.at;
        self.footer.tables_crc = checksum(&[&self.blocks, &self.owners]);
        self.out.write_all(&self.blocks)?;
        self.out.write_all(&self.owners)?;
        self.out.write_all(&self.footer.encode(&self.header))
    }

    fn end_block(&mut self) -> io::Result<()> {
        let entries = std::mem::take(&mut self.block);
        self.block_row.entries_at = self.at;
        self.block_row.crc = checksum(&[&entries]);
        self.block_row.encode(&mut self.blocks);
        self.block_row.firsts = self.footer.firsts;
        self.write(&entries)?;
        self.block = entries;
        self.block.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
