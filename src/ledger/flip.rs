//! Finds flipped bits in a run, for repairs. A run with damaged tables is lost as a whole; a single flipped bit can be
//! corrected instead.

use wal::Flip;

use super::format::{
    BLOCK_ENTRIES, BLOCK_ROW_BYTES, BlockRow, ENTRY_BYTES, Entry, FOOTER_BYTES, Footer, HEADER_BYTES,
    checksum, stream_of,
};

const ENDS_BYTES: usize = HEADER_BYTES + FOOTER_BYTES;

/// The first bit that must be flipped so that a run is valid up to other damage; `None` if there is no such bit.
pub fn flip_of_run(bytes: &[u8]) -> Option<Flip> {
    let footer_at = bytes.len().checked_sub(FOOTER_BYTES)?;
    let mut ends = [0; ENDS_BYTES];
    ends[..HEADER_BYTES].copy_from_slice(bytes.get(..HEADER_BYTES)?);
    ends[HEADER_BYTES..].copy_from_slice(&bytes[footer_at..]);
    let Some(footer) = decode(&ends) else {
        let flip = Flip::by_trial(&ends, |ends| decode(ends).is_some())?;
        return Some(match flip.offset.checked_sub(HEADER_BYTES) {
            None => flip,
            Some(offset) => Flip { offset, ..flip }.behind(footer_at),
        });
    };
    let tables_at = usize::try_from(footer.tables_at).ok()?;
    let tables = bytes.get(tables_at..footer_at)?;
    if Some(tables.len()) != footer.tables_bytes() {
        return None;
    }
    if checksum(&[tables]) != footer.tables_crc {
        return Flip::by_checksum(tables, footer.tables_crc).map(|flip| flip.behind(tables_at));
    }
    let rows = tables.chunks_exact(BLOCK_ROW_BYTES).filter_map(BlockRow::decode);
    let blocks = usize::try_from(footer.blocks()).ok()?;
    rows.take(blocks).enumerate().find_map(|(number, row)| {
        let count = (footer.entries - number as u64 * BLOCK_ENTRIES).min(BLOCK_ENTRIES);
        flip_of_block(bytes, row, count as usize)
    })
}

fn decode(ends: &[u8; ENDS_BYTES]) -> Option<Footer> {
    let (header, footer) = ends.split_first_chunk()?;
    stream_of(header)?;
    Footer::decode(header, footer.first_chunk()?)
}

fn flip_of_block(bytes: &[u8], row: BlockRow, count: usize) -> Option<Flip> {
    let (at, entries) = part(bytes, row.entries_at, count * ENTRY_BYTES)?;
    if checksum(&[entries]) != row.crc {
        return Flip::by_checksum(entries, row.crc).map(|flip| flip.behind(at));
    }
    let mut entries = entries.chunks_exact(ENTRY_BYTES).filter_map(Entry::decode);
    entries.find_map(|entry| {
        let (at, payload) = part(bytes, entry.offset, entry.len as usize)?;
        Flip::by_checksum(payload, entry.crc).map(|flip| flip.behind(at))
    })
}

fn part(bytes: &[u8], at: u64, len: usize) -> Option<(usize, &[u8])> {
    let at = usize::try_from(at).ok()?;
    Some((at, bytes.get(at..at.checked_add(len)?)?))
}
