//! Encoding and decoding of a run file's parts, as described in FORMAT.md.

use crate::catalog::{EntryKey, Stream};
use crate::ids::ObjectId;

pub(super) const MAGIC: &[u8; 8] = b"TWLRUN01";
pub(super) const HEADER_BYTES: usize = 16;
/// Entries under one checksum: few enough that verifying them costs less than reading them from disk.
pub(super) const BLOCK_ENTRIES: u64 = 128;
pub(super) const ENTRY_BYTES: usize = 40;
pub(super) const BLOCK_ROW_BYTES: usize = 20;
pub(super) const OWNER_ROW_BYTES: usize = 20;
pub(super) const FOOTER_BYTES: usize = 56;
/// The part of the footer that its own checksum covers.
pub(super) const FOOTER_CHECKED_BYTES: usize = FOOTER_BYTES - 4;

/// Takes the next bytes from the front; `None` if too few are left.
pub fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Position of an entry within its owner; defines the order.
pub(super) type Place = (i64, ObjectId);

/// The first position that is not before a time.
pub(super) const fn place_of(at_ns: i64) -> Place {
    (at_ns, ObjectId::from_bytes([0; 12]))
}

/// A fixed-size entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub at_ns: i64,
    pub id: ObjectId,
    pub offset: u64,
    pub len: u32,
    pub crc: u32,
    pub again: bool,
    /// Number of firsts (entries that count) before this one in its block.
    pub firsts: u8,
}

impl Entry {
    pub fn place(&self) -> Place {
        (self.at_ns, self.id)
    }

    pub fn key(&self, stream: Stream, owner: ObjectId) -> EntryKey {
        let (at_ns, id) = self.place();
        EntryKey {
            stream,
            owner,
            at_ns,
            id,
        }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at_ns.to_le_bytes());
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
        out.extend_from_slice(&[u8::from(self.again), self.firsts, 0, 0]);
    }

    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            at_ns: i64::from_le_bytes(take(rest)?),
            id: ObjectId::from_bytes(take(rest)?),
            offset: u64::from_le_bytes(take(rest)?),
            len: u32::from_le_bytes(take(rest)?),
            crc: u32::from_le_bytes(take(rest)?),
            again: take::<1>(rest)? != [0],
            firsts: u8::from_le_bytes(take(rest)?),
        })
    }
}

/// A row of the block table.
#[derive(Clone, Copy, Default)]
pub(super) struct BlockRow {
    pub entries_at: u64,
    /// Number of firsts (entries that count) before this block.
    pub firsts: u64,
    pub crc: u32,
}

impl BlockRow {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.entries_at.to_le_bytes());
        out.extend_from_slice(&self.firsts.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            entries_at: u64::from_le_bytes(take(rest)?),
            firsts: u64::from_le_bytes(take(rest)?),
            crc: u32::from_le_bytes(take(rest)?),
        })
    }
}

/// A row of the owner table: an owner and the number of its first entry.
#[derive(Clone, Copy)]
pub(super) struct OwnerRow {
    pub owner: ObjectId,
    pub first: u64,
}

impl OwnerRow {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.owner.as_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
    }

    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self {
            owner: ObjectId::from_bytes(take(rest)?),
            first: u64::from_le_bytes(take(rest)?),
        })
    }
}

/// The end of a file, which is verified completely when the file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footer {
    pub entries: u64,
    pub firsts: u64,
    pub owners: u64,
    pub oldest_ns: i64,
    pub newest_ns: i64,
    pub tables_at: u64,
    pub tables_crc: u32,
}

impl Footer {
    /// Encodes the footer, with a checksum that includes the header.
    pub fn encode(&self, header: &[u8; HEADER_BYTES]) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for number in [self.entries, self.firsts, self.owners] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.oldest_ns.to_le_bytes());
        out.extend_from_slice(&self.newest_ns.to_le_bytes());
        out.extend_from_slice(&self.tables_at.to_le_bytes());
        out.extend_from_slice(&self.tables_crc.to_le_bytes());
        let crc = checksum(&[header, &out]);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None` if the checksum over header and footer does not match.
    pub fn decode(header: &[u8; HEADER_BYTES], bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        let (checked, crc) = bytes.split_first_chunk::<FOOTER_CHECKED_BYTES>()?;
        if checksum(&[header, checked]).to_le_bytes() != *crc {
            return None;
        }
        let rest = &mut checked.as_slice();
        Some(Self {
            entries: u64::from_le_bytes(take(rest)?),
            firsts: u64::from_le_bytes(take(rest)?),
            owners: u64::from_le_bytes(take(rest)?),
            oldest_ns: i64::from_le_bytes(take(rest)?),
            newest_ns: i64::from_le_bytes(take(rest)?),
            tables_at: u64::from_le_bytes(take(rest)?),
            tables_crc: u32::from_le_bytes(take(rest)?),
        })
    }

    pub fn blocks(&self) -> u64 {
        self.entries.div_ceil(BLOCK_ENTRIES)
    }

    /// Size of both tables in bytes; `None` if no file could be that large.
    pub fn tables_bytes(&self) -> Option<usize> {
        let rows = |count: u64, bytes: usize| usize::try_from(count).ok()?.checked_mul(bytes);
        rows(self.blocks(), BLOCK_ROW_BYTES)?.checked_add(rows(self.owners, OWNER_ROW_BYTES)?)
    }
}

pub(super) fn header(stream: Stream) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8] = match stream {
        Stream::History => 1,
        Stream::Deliveries => 2,
        Stream::Triggers => 3,
        Stream::Answers => 4,
        Stream::Catalog => 5,
        Stream::Events => 6,
        Stream::Audit => 7,
        Stream::Series => 8,
    };
    header
}

/// The stream of a file with this header; `None` if it is of another kind or version.
pub(super) fn stream_of(found: &[u8; HEADER_BYTES]) -> Option<Stream> {
    Stream::ALL.into_iter().find(|stream| header(*stream) == *found)
}

/// The time of an entry, which determines when it expires; `None` if its payload does not contain it. Entries that
/// never expire have the greatest time.
pub(super) fn moment_ns(key: &EntryKey, payload: &[u8]) -> Option<i64> {
    match key.stream {
        Stream::History | Stream::Deliveries | Stream::Triggers | Stream::Events | Stream::Audit => {
            Some(key.at_ns)
        }
        Stream::Answers => payload.first_chunk().map(|first| i64::from_le_bytes(*first)),
        Stream::Catalog | Stream::Series => Some(i64::MAX),
    }
}

/// The checksum of these parts, one after the other.
pub fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}
