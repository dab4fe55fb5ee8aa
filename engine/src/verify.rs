//! Verifies segments: decodes every block and compares every checksum. For the operator's check; queries read no more
//! than they need.

use std::collections::BTreeMap;

use crate::EngineError;
use crate::block::{Block, BlockReader, FieldKind, are_of};
use crate::merge::MergeError;
use crate::rollup::LEVELS;
use crate::segment::{SegmentPart, SegmentWriter};

/// A block as described by the footer, and whether the block matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockReport {
    /// The source's ordinal.
    pub source: u32,
    /// Number of rows.
    pub rows: u32,
    /// Least timestamp.
    pub first_ns: i64,
    /// Greatest timestamp.
    pub last_ns: i64,
    /// Least sequence.
    pub first_sequence: u64,
    /// Greatest sequence.
    pub last_sequence: u64,
    /// Offset of the block in the file.
    pub offset: u64,
    /// Size of the block in bytes.
    pub bytes: u64,
    /// What is wrong with it; `None` if nothing is, or if it was not read.
    pub fault: Option<EngineError>,
}

impl SegmentPart {
    /// Reads all blocks; reports each as described by the footer, with an error in the block or in the head before it.
    /// The other functions here treat a block with a damaged head as intact.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if the footer has changed since the file was opened.
    pub fn verify(&self) -> Result<Vec<BlockReport>, EngineError> {
        self.verify_watched(|_| {})
    }

    /// The same; `read` is told the size of each block in bytes when it has been read.
    ///
    /// # Errors
    /// As for [`SegmentPart::verify`].
    pub fn verify_watched(&self, read: impl FnMut(u64)) -> Result<Vec<BlockReport>, EngineError> {
        self.report(verify_block, read)
    }

    /// The same, comparing only checksums, at a tenth of the cost: a block whose checksums match is as it was written.
    ///
    /// # Errors
    /// As for [`SegmentPart::verify`].
    pub fn compare_checksums(&self) -> Result<Vec<BlockReport>, EngineError> {
        self.report(|block| BlockReader::new(block)?.compare_checksums(), |_| {})
    }

    /// The fields that have values, with their types, by source; sources without values are included.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if a footer entry has changed since the file was opened.
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
        mut read: impl FnMut(u64),
    ) -> Result<Vec<BlockReport>, EngineError> {
        let reports = self.blocks.iter().map(|(source, entry)| {
            let block = entry.block_uncached()?;
            let bytes = block.place().len() as u64;
            let fault = check(&block)
                .and_then(|()| self.file.check_head(self.bucket, &block))
                .err()
                .map(EngineError::fault);
            read(bytes);
            Ok(BlockReport {
                source: *source,
                rows: entry.rows,
                first_ns: entry.first_ns,
                last_ns: entry.last_ns,
                first_sequence: block.summary.first_sequence,
                last_sequence: block.summary.last_sequence,
                offset: block.place().start as u64,
                bytes,
                fault,
            })
        });
        reports.collect()
    }

    /// The offset of each intact block, and the sequences of its rows, unordered.
    ///
    /// # Errors
    /// As for [`SegmentPart::verify`].
    pub fn whole_sequences(&self) -> Result<Vec<(u64, Vec<u64>)>, EngineError> {
        let mut sequences = Vec::new();
        for (_, entry) in &self.blocks {
            let block = entry.block_uncached()?;
            if verify_block(&block).is_ok() {
                let rows = BlockReader::new(&block)?.columns()?;
                sequences.push((block.place().start as u64, rows.sequences));
            }
        }
        Ok(sequences)
    }

    /// Copies the blocks unchanged to the bucket that `out` has begun.
    ///
    /// # Errors
    /// I/O errors of the file, and as for [`SegmentPart::verify`].
    pub fn copy(&self, out: &mut SegmentWriter<'_>) -> Result<(), MergeError> {
        for (_, entry) in &self.blocks {
            out.push(&entry.block_uncached()?)?;
        }
        Ok(())
    }

    /// Least and greatest sequence of its rows, from the footer; `None` without blocks.
    ///
    /// # Errors
    /// As for [`SegmentPart::verify`].
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

/// Checks that every section of a block can be read, and that its rows match its summary.
pub(crate) fn verify_block(block: &Block) -> Result<(), EngineError> {
    let summary = &block.summary;
    let reader = BlockReader::new(block)?;
    let columns = reader.columns()?;
    let expect = |holds: bool, expected| match holds {
        true => Ok(()),
        false => Err(EngineError::corrupt("block", 0, expected)),
    };
    let times = (columns.timestamps_ns.first(), columns.timestamps_ns.last());
    let stated = (Some(&summary.first_ns), Some(&summary.last_ns));
    expect(times == stated, "the bounds of time that the footer says")?;
    let sequences = (columns.sequences.iter().min(), columns.sequences.iter().max());
    let stated = (Some(&summary.first_sequence), Some(&summary.last_sequence));
    expect(sequences == stated, "the sequences that the footer says")?;
    expect(columns.is_sorted(), "rows in order of time and sequence")?;
    for field in &summary.fields {
        let count = columns
            .field(field.field)
            .map_or(0, |column| column.count(columns.rows()));
        expect(
            count as u64 == field.aggregate.count,
            "as many values of a field as the footer says",
        )?;
    }
    if let Some(stored) = reader.first_last()? {
        expect(are_of(&stored, &columns), "the first and last values of the rows")?;
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
