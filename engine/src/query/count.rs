//! Counts rows, whatever fields they have, in each hour of a range. Blocks are counted by their row counts,
//! or by the row counts of their hours. Only blocks that contain an end of the range are read, and of them only the
//! timestamps.

use super::reader::Run;
use super::{check_stop, rows_within};
use crate::EngineError;
use crate::block::BlockReader;
use crate::cache::Cache;
use crate::calendar::Unit;
use crate::entry::BlockEntry;
use crate::rollup::HOUR;
use crate::snapshot::SeriesSnapshot;
use crate::step::HOUR_NS;

/// Row counts by UTC hour, over any number of sources. Takes eight bytes for each hour of its range.
pub struct HourCounts {
    range_ns: (i64, i64),
    first_hour: i64,
    counts: Vec<u64>,
}

impl HourCounts {
    /// Zero counts for the range, both ends inclusive.
    pub fn new(range_ns: (i64, i64)) -> Self {
        HourCounts {
            range_ns,
            first_hour: hour_of(range_ns.0),
            counts: vec![0; Unit::Hour.cells(range_ns.0, range_ns.1) as usize],
        }
    }

    /// Adds the rows of a source; returns how many of them are within the range.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true.
    pub fn add(&mut self, series: &SeriesSnapshot, stop: &dyn Fn() -> bool) -> Result<u64, EngineError> {
        let range_ns = self.range_ns;
        let mut rows = 0;
        for run in series.live(range_ns)?.runs(range_ns) {
            check_stop(stop)?;
            rows += match run {
                Run::Block(entry) => self.add_block(entry, series.cache())?,
                Run::Chunk(chunk) => self.add_rows(&chunk.timestamps_ns),
            };
        }
        Ok(rows)
    }

    /// The hours that have rows, ascending: start and row count of each.
    pub fn hours(&self) -> impl Iterator<Item = (i64, u64)> {
        let hours = self.first_hour..;
        let counted = hours.zip(&self.counts).filter(|(_, rows)| **rows > 0);
        counted.map(|(hour, rows)| (hour.saturating_mul(HOUR_NS), *rows))
    }

    fn add_block(&mut self, entry: &BlockEntry, cache: &Cache) -> Result<u64, EngineError> {
        let rows = u64::from(entry.rows);
        let whole = entry.is_within(self.range_ns);
        if whole && hour_of(entry.first_ns) == hour_of(entry.last_ns) {
            *self.of(entry.first_ns) += rows;
            return Ok(rows);
        }
        let block = entry.block(cache)?;
        if whole
            && let Some(hours) = block.level(HOUR, cache)?
            && let Some(rows_of_hours) = hours.rows()?
        {
            for (start_ns, rows) in hours.starts_ns.iter().zip(&*rows_of_hours) {
                *self.of(*start_ns) += rows;
            }
            return Ok(rows);
        }
        Ok(self.add_rows(&BlockReader::new(&block)?.timestamps_ns()?))
    }

    /// Adds those of the ascending timestamps that are within the range, hour by hour.
    fn add_rows(&mut self, timestamps_ns: &[i64]) -> u64 {
        let within = &timestamps_ns[rows_within(timestamps_ns, self.range_ns)];
        let mut rest = within;
        while let Some(first_ns) = rest.first() {
            let next_ns = Unit::Hour.next_ns(*first_ns);
            // At the end of time an hour has no successor.
            let rows = rest.partition_point(|timestamp| *timestamp < next_ns).max(1);
            *self.of(*first_ns) += rows as u64;
            rest = &rest[rows..];
        }
        within.len() as u64
    }

    /// The count of the hour of a timestamp. The first hour may start before the range.
    fn of(&mut self, timestamp_ns: i64) -> &mut u64 {
        let index = hour_of(timestamp_ns) - self.first_hour;
        &mut self.counts[index as usize]
    }
}

fn hour_of(timestamp_ns: i64) -> i64 {
    timestamp_ns.div_euclid(HOUR_NS)
}
