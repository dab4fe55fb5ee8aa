//! Reading a segment to the last byte: what `check` reports on, and what `repair` can save.

use std::io::{self, Write};
use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockReader, SharedBytes};
use crate::rollup::LEVELS;
use crate::segment::{SegmentWriter, open_segment};

/// One block of a segment, read whole.
#[derive(Debug, Clone)]
pub struct BlockReport {
    /// The source's ordinal.
    pub source: u32,
    /// Its rows.
    pub rows: u32,
    /// Least and greatest timestamp.
    pub range_ns: (i64, i64),
    /// What does not read, if anything.
    pub fault: Option<EngineError>,
}

/// Reads every section of every block.
///
/// # Errors
/// [`EngineError::Corrupt`] where the footer does not read: then nothing in the file can be found.
pub fn verify_segment(home: &SharedBytes) -> Result<Vec<BlockReport>, EngineError> {
    Ok(open_segment(0, home)?.iter().map(report).collect())
}

/// Writes a segment of the blocks that read, and reports on all.
///
/// # Errors
/// As [`verify_segment`]; those of `out`.
pub fn salvage_segment(home: &SharedBytes, out: impl Write) -> io::Result<Vec<BlockReport>> {
    let blocks = open_segment(0, home).map_err(io::Error::other)?;
    let mut segment = SegmentWriter::new(out)?;
    let mut reports = Vec::with_capacity(blocks.len());
    for block in &blocks {
        let report = report(block);
        if report.fault.is_none() {
            segment.push(block)?;
        }
        reports.push(report);
    }
    segment.finish()?;
    Ok(reports)
}

fn report(block: &Arc<Block>) -> BlockReport {
    let summary = &block.summary;
    BlockReport {
        source: summary.source,
        rows: summary.rows,
        range_ns: (summary.first_ns, summary.last_ns),
        fault: read_all(block).err(),
    }
}

fn read_all(block: &Block) -> Result<(), EngineError> {
    let reader = BlockReader::new(block)?;
    let columns = reader.columns()?;
    let sorted = (1..columns.rows()).all(|row| columns.key(row - 1) < columns.key(row));
    if !sorted {
        return Err(EngineError::Corrupt {
            what: "block",
            offset: 0,
            expected: "rows in order",
        });
    }
    for level in 0..LEVELS.len() {
        if let Some(starts) = reader.rollup_starts_ns(level)? {
            for field in &block.summary.fields {
                reader.rollup(level, field.field, starts.len())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::rows::RowsWriter;

    fn segment() -> Vec<u8> {
        let mut writer = RowsWriter::new();
        for row in 0..300i64 {
            writer.begin(row as u32 % 2);
            writer.number(0, (row * row % 97) as f64, 0);
            writer.commit(row);
        }
        let mut rows = Vec::new();
        writer.encode(&mut rows);
        let mut store = Store::new();
        store.apply(&rows, 1).unwrap();
        let mut file = Vec::new();
        store.begin_checkpoint().unwrap().write(&mut file).unwrap();
        file
    }

    #[test]
    fn a_damaged_block_is_named_and_the_other_is_saved() {
        let whole: SharedBytes = Arc::new(segment());
        let sound = verify_segment(&whole).unwrap();
        assert_eq!(
            sound.iter().map(|block| block.rows).collect::<Vec<_>>(),
            [150, 150]
        );
        assert!(sound.iter().all(|block| block.fault.is_none()));
        let mut damaged = segment();
        damaged[60] ^= 4;
        let damaged: SharedBytes = Arc::new(damaged);
        let mut saved = Vec::new();
        let reports = salvage_segment(&damaged, &mut saved).unwrap();
        assert!(reports[0].fault.is_some() && reports[1].fault.is_none());
        let saved: SharedBytes = Arc::new(saved);
        let kept = verify_segment(&saved).unwrap();
        assert_eq!(
            kept.iter()
                .map(|block| (block.source, block.rows))
                .collect::<Vec<_>>(),
            [(1, 150)]
        );
    }
}
