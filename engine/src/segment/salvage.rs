//! Salvages the readable part of a damaged segment file. If the entries of a bucket can be read, they locate its
//! blocks. Otherwise, or if the table is damaged, blocks are located by the heads before them, so a lost footer costs
//! no row.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use super::table::{HEAD_BYTES, MAGIC, SegmentRow};
use super::{SegmentFile, SegmentPart, SegmentWriter, WHAT};
use crate::block::{Block, BlockSummary, own_length, recover};
use crate::bytes::Reader;
use crate::content::{SharedBytes, Tail};
use crate::merge::MergeError;
use crate::verify::verify_block;

/// Result of salvaging a file.
#[derive(Debug, Default)]
pub struct Salvaged {
    /// Number of rows written.
    pub rows: u64,
    /// What could not be written, in file order.
    pub lost: Vec<Lost>,
    /// Located blocks in file order, without those of excluded buckets.
    blocks: Vec<Found>,
}

/// An unreadable range of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Offset of the range.
    pub offset: u64,
    /// Length of the range in bytes.
    pub bytes: u64,
    /// The lost block; `None` if it is unknown whether there was one.
    pub block: Option<LostBlock>,
}

/// What is known of a lost block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostBlock {
    /// The bucket's ordinal.
    pub bucket: u32,
    /// The source's ordinal.
    pub source: u32,
    /// Row count, least and greatest timestamp, if the footer contains them.
    pub rows: Option<(u32, i64, i64)>,
}

/// A block located in the file.
#[derive(Debug)]
struct Found {
    block: LostBlock,
    place: Range<usize>,
}

/// Writes a segment with the readable part of a file from version 3 on, limited to the blocks for which `keeps` returns
/// true, given the bucket and the offset of the block.
/// If [`Salvaged::rows`] is 0, the new segment has no blocks and is of no use.
///
/// # Errors
/// Errors of `out`.
pub fn salvage(
    home: &SharedBytes,
    out: &mut dyn Write,
    keeps: impl Fn(u32, u64) -> bool,
) -> Result<Salvaged, MergeError> {
    let mut salvaged = Salvaged::default();
    let mut segment = SegmentWriter::new(out)?;
    let all = home.read(0..home.len())?;
    let bytes = &*all;
    match SegmentFile::open(0, Arc::clone(home)) {
        Ok(file) => {
            let mut at = MAGIC.len();
            for row in file.table.rows(Tail::of(&**home)) {
                let blocks = at..at + row.block_bytes as usize;
                at = blocks.end;
                salvaged.write_part(home, &file, (&row, blocks), &keeps, &mut segment)?;
            }
        }
        Err(_) => {
            let is_cut = salvaged.find(bytes, MAGIC.len().min(bytes.len())..bytes.len());
            if is_cut {
                // The file ends after a block: it is unknown whether others followed.
                salvaged.lost.push(Lost::of(bytes.len()..bytes.len(), None));
            }
            salvaged.blocks.retain(|found| found.is_kept(&keeps));
            // The writer requires buckets in order. They are, unless a head is damaged.
            salvaged.blocks.sort_by_key(|found| found.block.bucket);
            salvaged.write_found(home, &mut segment)?;
        }
    }
    segment.finish()?;
    salvaged.lost.sort_by_key(|lost| lost.offset);
    Ok(salvaged)
}

impl Salvaged {
    fn write_part(
        &mut self,
        home: &SharedBytes,
        file: &Arc<SegmentFile>,
        (row, blocks): (&SegmentRow, Range<usize>),
        keeps: &impl Fn(u32, u64) -> bool,
        out: &mut SegmentWriter<'_>,
    ) -> Result<(), MergeError> {
        if let Ok(Some(part)) = file.part(row.bucket) {
            out.begin_bucket(row.bucket);
            return self.write_entries(home, &part, keeps, out);
        }
        self.find(&home.read(0..home.len())?, blocks);
        // The bucket is known from the table, which has a checksum.
        for found in &mut self.blocks {
            found.block.bucket = row.bucket;
        }
        self.blocks.retain(|found| found.is_kept(keeps));
        self.write_found(home, out)
    }

    fn write_entries(
        &mut self,
        home: &SharedBytes,
        part: &SegmentPart,
        keeps: &impl Fn(u32, u64) -> bool,
        out: &mut SegmentWriter<'_>,
    ) -> Result<(), MergeError> {
        for (source, entry) in &part.blocks {
            let block = entry.block_uncached()?;
            if !keeps(part.bucket, block.place().start as u64) {
                continue;
            }
            if verify_block(&block).is_ok() {
                self.push(&block, out)?;
                continue;
            }
            // The rows may be intact even if the rollups are damaged.
            let place = block.place();
            let recovered = recover(home, place.clone(), *source).ok();
            match recovered.filter(|it| is_of(it, &block.summary)) {
                Some(recovered) => self.push(&recovered, out)?,
                None => {
                    let block = LostBlock {
                        bucket: part.bucket,
                        source: *source,
                        rows: Some((entry.rows, entry.first_ns, entry.last_ns)),
                    };
                    self.lost.push(Lost::of(place, Some(block)));
                }
            }
        }
        Ok(())
    }

    /// Writes the located blocks that can be read.
    fn write_found(&mut self, home: &SharedBytes, out: &mut SegmentWriter<'_>) -> Result<(), MergeError> {
        let mut begun = None;
        for Found { block, place } in std::mem::take(&mut self.blocks) {
            if begun != Some(block.bucket) {
                out.begin_bucket(block.bucket);
                begun = Some(block.bucket);
            }
            match recover(home, place.clone(), block.source) {
                Ok(recovered) => self.push(&recovered, out)?,
                Err(_) => self.lost.push(Lost::of(place, Some(block))),
            }
        }
        Ok(())
    }

    fn push(&mut self, block: &Block, out: &mut SegmentWriter<'_>) -> Result<(), MergeError> {
        self.rows += u64::from(block.summary.rows);
        Ok(out.push(block)?)
    }

    /// Walks from head to head; after an unreadable range, searches for the next block. Returns whether the range ended
    /// with a block, and no footer was found.
    fn find(&mut self, bytes: &[u8], within: Range<usize>) -> bool {
        let bytes = &bytes[..within.end];
        let mut at = within.start;
        while at < bytes.len() && !begins_footer(bytes, at) {
            if let Some(found) = block_at(bytes, at) {
                at = found.place.end;
                self.blocks.push(found);
                continue;
            }
            let next =
                (at + 1..bytes.len()).find(|at| block_at(bytes, *at).is_some() || begins_footer(bytes, *at));
            let end = next.unwrap_or(bytes.len());
            let head = head_at(bytes, at)
                .filter(|head| head.place.end == end || next.is_none() && head.place.end > end);
            self.lost.push(Lost::of(at..end, head.map(|head| head.block)));
            at = end;
        }
        let ends_in_loss = self
            .lost
            .last()
            .is_some_and(|lost| lost.offset + lost.bytes == at as u64);
        at == bytes.len() && !ends_in_loss
    }
}

impl Found {
    fn is_kept(&self, keeps: &impl Fn(u32, u64) -> bool) -> bool {
        keeps(self.block.bucket, self.place.start as u64)
    }
}

impl Lost {
    fn of(place: Range<usize>, block: Option<LostBlock>) -> Self {
        Lost {
            offset: place.start as u64,
            bytes: place.len() as u64,
            block,
        }
    }
}

/// Decodes the head at this offset, which has no checksum.
fn head_at(bytes: &[u8], at: usize) -> Option<Found> {
    let mut reader = Reader::new(bytes.get(at..)?, "head of a block");
    let (bucket, source) = (reader.le_u32().ok()?, reader.le_u32().ok()?);
    let start = at + HEAD_BYTES;
    let end = start.checked_add(reader.le_u32().ok()? as usize)?;
    let block = LostBlock {
        bucket,
        source,
        rows: None,
    };
    let place = start..end;
    Some(Found { block, place })
}

/// The block whose head is at this offset. Its length is taken from its directory, which has a checksum.
fn block_at(bytes: &[u8], at: usize) -> Option<Found> {
    let head = head_at(bytes, at)?;
    let len = own_length(bytes.get(head.place.start..)?)?;
    Some(Found {
        place: head.place.start..head.place.start + len,
        ..head
    })
}

/// Whether the footer begins here: its first entry contains the source of the first block, its offset, which is directly
/// after the magic, and its length.
fn begins_footer(bytes: &[u8], at: usize) -> bool {
    if at <= MAGIC.len() {
        return false;
    }
    let mut reader = Reader::new(&bytes[at..], WHAT);
    let Ok(entry) = BlockSummary::decode_without_fields(&mut reader) else {
        return false;
    };
    let (offset, len) = (reader.varint(), reader.varint());
    if offset != Ok((MAGIC.len() + HEAD_BYTES) as u64) {
        return false;
    }
    let first = [head_at(bytes, MAGIC.len()), block_at(bytes, MAGIC.len())];
    let is_first = |first: &Found| len == Ok(first.place.len() as u64) && first.block.source == entry.source;
    first.iter().flatten().any(is_first)
}

/// Whether a block has the rows that the footer describes.
fn is_of(block: &Block, summary: &BlockSummary) -> bool {
    let found = &block.summary;
    (found.rows, found.first_ns, found.last_ns) == (summary.rows, summary.first_ns, summary.last_ns)
        && (found.first_sequence, found.last_sequence) == (summary.first_sequence, summary.last_sequence)
}
