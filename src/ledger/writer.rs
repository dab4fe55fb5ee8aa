//! Writes a run file in one pass, entry by entry. The entries of one block and the tables are in memory: 20 bytes per
//! 128 entries, and 20 per owner.

use std::io::{self, Write};
use std::ops::Deref;

use super::format::{
    BLOCK_ENTRIES, BlockRow, ENTRY_BYTES, Entry, Footer, HEADER_BYTES, OwnerRow, checksum, header, moment_ns,
};
use crate::catalog::{EntryKey, Stream};
use crate::ids::ObjectId;

/// An entry of a run, with its payload.
#[derive(Clone, Copy, Debug)]
pub struct Item<P> {
    pub key: EntryKey,
    /// Whether an older run has an older version of it.
    pub again: bool,
    /// Its time, which determines when it expires.
    pub moment_ns: i64,
    pub payload: P,
    /// Checksum of the payload. A copied entry keeps its checksum, so that damage remains detectable.
    pub crc: u32,
}

impl<P: Deref<Target = [u8]>> Item<P> {
    /// A new entry, whose checksum is computed.
    pub(super) fn new(key: EntryKey, again: bool, payload: P) -> Self {
        Self {
            key,
            again,
            // An answer without its time would not be a valid answer, and would never be read as one.
            moment_ns: moment_ns(&key, &payload).unwrap_or(i64::MIN),
            crc: checksum(&[&payload]),
            payload,
        }
    }
}

pub(super) struct RunWriter<'a> {
    out: &'a mut dyn Write,
    header: [u8; HEADER_BYTES],
    /// Number of bytes written.
    at: u64,
    /// Entries of the current block.
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
            block_row: BlockRow::default(),
            blocks: Vec::new(),
            owners: Vec::new(),
            owner: None,
            footer: Footer {
                oldest_ns: i64::MAX,
                newest_ns: i64::MIN,
                ..Footer::default()
            },
        })
    }

    /// Appends the next entry, whose position must be after the previous one.
    pub fn push(&mut self, item: &Item<impl Deref<Target = [u8]>>) -> io::Result<()> {
        let footer = &mut self.footer;
        let EntryKey { owner, at_ns, id, .. } = item.key;
        if self.owner != Some(owner) {
            self.owner = Some(owner);
            let first = footer.entries;
            OwnerRow { owner, first }.encode(&mut self.owners);
            footer.owners += 1;
        }
        let entry = Entry {
            at_ns,
            id,
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
        self.write(&item.payload)?;
        if self.footer.entries.is_multiple_of(BLOCK_ENTRIES) {
            self.end_block()?;
        }
        Ok(())
    }

    /// Writes the last block, the tables and the footer.
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
