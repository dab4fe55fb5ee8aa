//! Reads segments for their own sake: every block decoded, every checksum compared. For the operator's check, not for
//! queries, which read no more than they need.

use std::collections::BTreeMap;

use crate::EngineError;
use crate::block::{Block, BlockReader, FieldKind};
use crate::merge::MergeError;
use crate::rollup::LEVELS;
use crate::segment::{SegmentPart, SegmentWriter};

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
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// What is wrong with it; `None` also when it was not read.
    pub fault: Option<EngineError>,
}

impl SegmentPart {
    /// What the footer says of the blocks, with what is wrong with each or with the head before it; all are read. A
    /// block with nothing wrong but its head is whole to the other functions here.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where the footer is not what it was when the file was opened.
    pub fn verify(&self) -> Result<Vec<BlockReport>, EngineError> {
        self.report(verify_block)
    }

    /// The same by the checksums alone, which costs a tenth: a block that has them is as it was written.
    ///
    /// # Errors
    /// As [`SegmentPart::verify`].
    pub fn compare_checksums(&self) -> Result<Vec<BlockReport>, EngineError> {
        self.report(|block| BlockReader::new(block)?.compare_checksums())
    }

    /// Which fields have values, by source, and of which kind; a source without any is there, too.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] where an entry of the footer is not what it was when the file was opened.
    pub fn fields(&self) -> Result<BTreeMap<u32, BTreeMap<u16, FieldKind>>, EngineError> {
        let mut sources: BTreeMap<u32, BTreeMap<u16, FieldKind>> = BTreeMap::new();
        for (source, entry) in &self.blocks {
            let block = entry.block_uncached()?;
            let fields = block.summary.fields.iter().map(|field| (field.field, field.kind));
            sources.entry(*source).or_default().extend(fields);
        }
        Ok(sources)
    }

    fn report(
        &self,
        check: impl Fn(&Block) -> Result<(), EngineError>,
    ) -> Result<Vec<BlockReport>, EngineError> {
        let reports = self.blocks.iter().map(|(source, entry)| {
            let block = entry.block_uncached()?;
            Ok(BlockReport {
                source: *source,
                rows: entry.rows,
                first_ns: entry.first_ns,
                last_ns: entry.last_ns,
                first_sequence: block.summary.first_sequence,
                last_sequence: block.summary.last_sequence,
                offset: block.place().start as u64,
                bytes: block.bytes().len() as u64,
                fault: check(&block)
                    .and_then(|()| self.file.check_head(self.bucket, &block))
                    .err()
                    .map(EngineError::fault),
            })
        });
        reports.collect()
    }

    /// Sequences of the rows of those blocks that are whole, in no order.
    ///
    /// # Errors
    /// As [`SegmentPart::verify`].
    pub fn whole_sequences(&self) -> Result<Vec<u64>, EngineError> {
        let mut sequences = Vec::new();
        for (_, entry) in &self.blocks {
            let block = entry.block_uncached()?;
            if verify_block(&block).is_ok() {
                sequences.extend(BlockReader::new(&block)?.columns()?.sequences.iter());
            }
        }
        Ok(sequences)
    }

    /// Copies the blocks as they are, as those of the bucket that `out` has begun.
    ///
    /// # Errors
    /// Those of the file, and as [`SegmentPart::verify`].
    pub fn copy(&self, out: &mut SegmentWriter<'_>) -> Result<(), MergeError> {
        self.copy_those(out, |_| true)
    }

    /// The same with those blocks that are whole.
    ///
    /// # Errors
    /// As [`SegmentPart::copy`].
    pub fn salvage(&self, out: &mut SegmentWriter<'_>) -> Result<(), MergeError> {
        self.copy_those(out, |block| verify_block(block).is_ok())
    }

    fn copy_those(
        &self,
        out: &mut SegmentWriter<'_>,
        which: impl Fn(&Block) -> bool,
    ) -> Result<(), MergeError> {
        for (_, entry) in &self.blocks {
            let block = entry.block_uncached()?;
            if which(&block) {
                out.push(&block)?;
            }
        }
        Ok(())
    }

    /// Least and greatest sequence of its rows, by the footer; `None` without blocks.
    ///
    /// # Errors
    /// As [`SegmentPart::verify`].
    pub fn sequences(&self) -> Result<Option<(u64, u64)>, EngineError> {
        let mut bounds: Option<(u64, u64)> = None;
        for (_, entry) in &self.blocks {
            let summary = entry.block_uncached()?.summary;
            let (first, last) = bounds.unwrap_or((summary.first_sequence, summary.last_sequence));
            bounds = Some((first.min(summary.first_sequence), last.max(summary.last_sequence)));
        }
        Ok(bounds)
    }
}

/// Every section of a block reads, and its rows are those of its summary.
pub(crate) fn verify_block(block: &Block) -> Result<(), EngineError> {
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
