//! Counts the live rows of a series and their time bounds. Most blocks are counted by their bounds and row counts. For
//! blocks that are partly outside the range or expired, only the timestamps are read, and the sequences if they matter.

use crate::EngineError;
use crate::block::BlockReader;
use crate::cache::Cache;
use crate::entry::BlockEntry;
use crate::expired::{ExpiredRows, Reach, is_gone, is_young, reach};
use crate::query::{check_stop, rows_within};
use crate::series::{Series, SeriesStats};

/// Number and bounds of the rows within the range, both ends inclusive, without expired rows. Calls `stop` before each
/// block. If `pass_over` accepts the error of a damaged block, the block's rows are not counted.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true.
pub(crate) fn rows_left(
    series: &Series,
    range_ns: (i64, i64),
    expired: &[ExpiredRows],
    cache: &Cache,
    stop: &dyn Fn() -> bool,
    pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
) -> Result<SeriesStats, EngineError> {
    let (start, end) = range_ns;
    let all = series.stats();
    let Some((first, last)) = all.bounds_ns.filter(|_| all.reaches(range_ns)) else {
        return Ok(SeriesStats::default());
    };
    if start <= first && last <= end && is_young(expired, first) {
        return Ok(all);
    }
    let mut left = SeriesStats::default();
    for entry in series.blocks().iter().filter(|entry| entry.overlaps(range_ns)) {
        check_stop(stop)?;
        add_block(&mut left, entry, range_ns, expired, cache).or_else(&mut *pass_over)?;
    }
    for (timestamp_ns, sequence) in series.positions() {
        if (start..=end).contains(&timestamp_ns) && !is_gone(expired, timestamp_ns, sequence) {
            left.add(1, timestamp_ns, timestamp_ns);
        }
    }
    Ok(left)
}

fn add_block(
    left: &mut SeriesStats,
    entry: &BlockEntry,
    range_ns: (i64, i64),
    expired: &[ExpiredRows],
    cache: &Cache,
) -> Result<(), EngineError> {
    let whole = entry.is_within(range_ns);
    let reach = reach(expired, entry, || entry.block(cache))?;
    match reach {
        Reach::All => return Ok(()),
        Reach::None if whole => {
            left.add_block(entry);
            return Ok(());
        }
        Reach::None | Reach::Some => {}
    }
    let reader = BlockReader::new(&entry.block(cache)?)?;
    let timestamps_ns = reader.timestamps_ns()?;
    let rows = rows_within(&timestamps_ns, range_ns);
    if let Reach::Some = reach {
        let sequences = reader.sequences()?;
        for row in rows {
            if !is_gone(expired, timestamps_ns[row], sequences[row]) {
                left.add(1, timestamps_ns[row], timestamps_ns[row]);
            }
        }
    } else if let within = &timestamps_ns[rows]
        && let (Some(first), Some(last)) = (within.first(), within.last())
    {
        left.add(within.len() as u64, *first, *last);
    }
    Ok(())
}
