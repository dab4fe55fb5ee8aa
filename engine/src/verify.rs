//! Reads segments for their own sake: every block decoded, every checksum compared. For the operator's check, not for
//! queries, which read no more than they need.

use std::io::Write;

use crate::EngineError;
use crate::block::{Block, BlockReader, SharedBytes};
use crate::merge::MergeError;
use crate::rollup::LEVELS;
use crate::segment::{SegmentWriter, open_segment};

/// What a segment's footer says of one block, and whether the block is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockReport {
    /// The source's ordinal.
    pub source: u32,
    /// Rows.
    pub rows: u32,
    /// Least timestamp.
    pub first_ns: i64,
    /// Greatest timestamp.
    pub last_ns: i64,
    /// Least sequence.
    pub first_sequence: u64,
    /// Greatest sequence.
    pub last_sequence: u64,
    /// Where the block begins in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// What is wrong with it; `None` also when it was not read.
    pub fault: Option<EngineError>,
}

/// What the footer of a segment says; no block is read.
///
/// # Errors
/// [`EngineError::Corrupt`] where the bytes are not a whole segment of a known version.
pub fn list_blocks(home: &SharedBytes) -> Result<Vec<BlockReport>, EngineError> {
    report(home, |_| None)
}

/// Reads the whole segment.
///
/// # Errors
/// As [`list_blocks`]; what is wrong with a block stands in its report.
pub fn verify_segment(home: &SharedBytes) -> Result<Vec<BlockReport>, EngineError> {
    report(home, |block| verify(block).err())
}

/// Sequences of the rows of those blocks that are whole, in no order.
///
/// # Errors
/// As [`list_blocks`].
pub fn list_whole_sequences(home: &SharedBytes) -> Result<Vec<u64>, EngineError> {
    let mut sequences = Vec::new();
    for (_, entry) in open_segment(0, home)? {
        let block = entry.block_uncached()?;
        if verify(&block).is_ok() {
            sequences.extend(BlockReader::new(&block)?.columns()?.sequences.iter());
        }
    }
    Ok(sequences)
}

/// Writes a segment of those blocks that are whole; answers its length in bytes.
///
/// # Errors
/// Those of [`list_blocks`] and of `out`.
pub fn salvage_segment(home: &SharedBytes, out: impl Write) -> Result<u64, MergeError> {
    let mut segment = SegmentWriter::new(out)?;
    for (_, entry) in open_segment(0, home)? {
        let block = entry.block_uncached()?;
        if verify(&block).is_ok() {
            segment.push(&block)?;
        }
    }
    Ok(segment.finish()?)
}

fn report(
    home: &SharedBytes,
    fault: impl Fn(&Block) -> Option<EngineError>,
) -> Result<Vec<BlockReport>, EngineError> {
    let start = (**home).as_ref().as_ptr().addr();
    let blocks = open_segment(0, home)?;
    let report = blocks.iter().map(|(source, entry)| {
        let block = entry.block_uncached()?;
        Ok(BlockReport {
            source: *source,
            rows: entry.rows,
            first_ns: entry.first_ns,
            last_ns: entry.last_ns,
            first_sequence: block.summary.first_sequence,
            last_sequence: block.summary.last_sequence,
            offset: (block.bytes().as_ptr().addr() - start) as u64,
            bytes: block.bytes().len() as u64,
            fault: fault(&block),
        })
    });
    report.collect()
}

/// Every section of a block reads, and its rows are those of its summary.
fn verify(block: &Block) -> Result<(), EngineError> {
    let summary = &block.summary;
    let reader = BlockReader::new(block)?;
    let columns = reader.columns()?;
    let expect = |holds: bool, expected| {
        let error = EngineError::Corrupt {
            what: "block",
            offset: 0,
            expected,
        };
        if holds { Ok(()) } else { Err(error) }
    };
    let times = (
        columns.timestamps_ns.first().copied(),
        columns.timestamps_ns.last().copied(),
    );
    expect(
        times == (Some(summary.first_ns), Some(summary.last_ns)),
        "the bounds of time that the footer says",
    )?;
    let sequences = (
        columns.sequences.iter().min().copied(),
        columns.sequences.iter().max().copied(),
    );
    let said = (Some(summary.first_sequence), Some(summary.last_sequence));
    expect(sequences == said, "the sequences that the footer says")?;
    let in_order = (1..columns.rows()).all(|row| columns.key(row - 1) < columns.key(row));
    expect(in_order, "rows in order of time and sequence")?;
    for field in &summary.fields {
        let count = columns
            .field(field.field)
            .map_or(0, |column| column.count(columns.rows()));
        expect(
            count as u64 == field.aggregate.count,
            "as many values of a field as the footer says",
        )?;
    }
    for level in 0..LEVELS.len() {
        let Some(starts) = reader.rollup_starts_ns(level)? else {
            continue;
        };
        for field in &summary.fields {
            let cells = reader.rollup(level, field.field, starts.len())?;
            let count: u64 = cells.iter().map(|cell| cell.count).sum();
            expect(count == field.aggregate.count, "rollups of all rows")?;
        }
        if let Some(rows) = reader.rollup_rows(level, starts.len())? {
            let rows: u64 = rows.iter().sum();
            expect(rows == u64::from(summary.rows), "rollups of all rows")?;
        }
    }
    Ok(())
}
