//! Rows that had expired before the retention was extended. They stay deleted, while later rows with the same
//! timestamps are kept: timestamps that were refused before may be sent now.

use std::sync::Arc;

use crate::EngineError;
use crate::block::{Block, BlockReader, BlockSummary, encode_block};
use crate::cache::Cache;
use crate::columns::Columns;
use crate::entry::BlockEntry;

/// Deleted rows: those with a timestamp before `before_ns` and a sequence below `before_sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiredRows {
    /// UTC nanoseconds.
    pub before_ns: i64,
    /// Order of arrival within the bucket.
    pub before_sequence: u64,
}

impl ExpiredRows {
    fn hold(self, timestamp_ns: i64, sequence: u64) -> bool {
        timestamp_ns < self.before_ns && sequence < self.before_sequence
    }

    fn hold_all(self, block: &BlockSummary) -> bool {
        self.hold(block.last_ns, block.last_sequence)
    }

    fn may_hold_some(self, block: &BlockSummary) -> bool {
        self.hold(block.first_ns, block.first_sequence)
    }
}

/// How many rows of a block have expired.
pub(crate) enum Reach {
    None,
    /// Possibly some.
    Some,
    All,
}

/// Determined from the block's summary; `block` is called only if the block is old enough.
pub(crate) fn reach(
    expired: &[ExpiredRows],
    entry: &BlockEntry,
    block: impl FnOnce() -> Result<Block, EngineError>,
) -> Result<Reach, EngineError> {
    if is_young(expired, entry.first_ns) {
        return Ok(Reach::None);
    }
    let summary = block()?.summary;
    Ok(if expired.iter().any(|rows| rows.hold_all(&summary)) {
        Reach::All
    } else if expired.iter().any(|rows| rows.may_hold_some(&summary)) {
        Reach::Some
    } else {
        Reach::None
    })
}

/// Whether rows from this time on are newer than all expired rows, as most are.
pub(crate) fn is_young(expired: &[ExpiredRows], first_ns: i64) -> bool {
    expired.iter().all(|rows| first_ns >= rows.before_ns)
}

/// Whether a row has expired.
pub(crate) fn is_gone(expired: &[ExpiredRows], timestamp_ns: i64, sequence: u64) -> bool {
    expired.iter().any(|rows| rows.hold(timestamp_ns, sequence))
}

/// The blocks that overlap the range, both ends inclusive, without expired rows. Only blocks that contain both expired
/// and live rows, as of the extension of the retention, are encoded again.
pub(crate) fn live_blocks(
    blocks: &[BlockEntry],
    range_ns: (i64, i64),
    expired: &[ExpiredRows],
    cache: &Cache,
) -> Result<Vec<BlockEntry>, EngineError> {
    let mut live = Vec::new();
    for entry in blocks.iter().filter(|entry| entry.overlaps(range_ns)) {
        match reach(expired, entry, || entry.block(cache))? {
            Reach::All => {}
            Reach::None => live.push(entry.clone()),
            Reach::Some => {
                let block = entry.block(cache)?;
                match live_rows(&BlockReader::new(&block)?.columns()?, expired) {
                    None => live.push(entry.clone()),
                    Some(left) if left.rows() == 0 => {}
                    Some(left) => {
                        let block = encode_block(block.summary.source, &left);
                        live.push(BlockEntry::heap(Arc::new(block)));
                    }
                }
            }
        }
    }
    live.sort_by_key(|entry| entry.first_ns);
    Ok(live)
}

/// The live rows in the same order; `None` if all rows are live.
pub(crate) fn live_rows(columns: &Columns, expired: &[ExpiredRows]) -> Option<Columns> {
    let before_ns = expired.iter().map(|rows| rows.before_ns).max()?;
    let mut timestamps_ns = columns.timestamps_ns.iter();
    if timestamps_ns.all(|timestamp_ns| *timestamp_ns >= before_ns) {
        return None;
    }
    let is_live = |row: &u32| {
        let (timestamp_ns, sequence) = columns.key(*row as usize);
        !is_gone(expired, timestamp_ns, sequence)
    };
    let rows = (0..columns.rows() as u32).filter(is_live);
    let picks: Vec<(u32, u32)> = rows.map(|row| (0, row)).collect();
    (picks.len() < columns.rows()).then(|| Columns::gather(&[columns], &picks))
}
