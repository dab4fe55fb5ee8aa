//! What a reader holds: the chunks and blocks of some sources at one moment, shared with the store and never changed.

use std::sync::{Arc, OnceLock};

use crate::EngineError;
use crate::block::BlockReader;
use crate::columns::Columns;
use crate::series::{BlockEntry, Series, SeriesStats, sorted};

/// Some sources of one bucket at one moment: a request's rows are in it all, or not at all.
pub struct Snapshot {
    /// In the order asked for.
    pub series: Vec<SeriesSnapshot>,
}

/// One source at one moment.
pub struct SeriesSnapshot {
    /// The source's ordinal.
    pub source: u32,
    pub(crate) blocks: Arc<Vec<BlockEntry>>,
    chunks: Vec<Arc<Columns>>,
    sorted_chunks: OnceLock<Vec<Arc<Columns>>>,
    stats: SeriesStats,
}

impl SeriesSnapshot {
    pub(crate) fn of(source: u32, series: &Series) -> Self {
        SeriesSnapshot {
            source,
            blocks: Arc::clone(series.blocks()),
            chunks: series.chunks().cloned().collect(),
            sorted_chunks: OnceLock::new(),
            stats: series.stats(),
        }
    }

    /// The head's rows, each chunk sorted; the sorting is done by the reader, once.
    pub(crate) fn chunks(&self) -> &[Arc<Columns>] {
        self.sorted_chunks
            .get_or_init(|| self.chunks.iter().cloned().map(sorted).collect())
    }

    /// Points and bounds, points before the cutoff not counted.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where a block that the cutoff cuts through does not read.
    pub fn stats(&self, cutoff_ns: i64) -> Result<SeriesStats, EngineError> {
        if self.stats.bounds_ns.is_none_or(|(first, _)| first >= cutoff_ns) {
            return Ok(self.stats);
        }
        let mut stats = SeriesStats::default();
        for entry in self.blocks.iter().filter(|entry| entry.last_ns >= cutoff_ns) {
            if entry.first_ns >= cutoff_ns {
                stats.add(u64::from(entry.block.summary.rows), entry.first_ns, entry.last_ns);
            } else {
                let timestamps = BlockReader::new(&entry.block)?.timestamps_ns()?;
                let expired = timestamps.partition_point(|timestamp| *timestamp < cutoff_ns);
                stats.add(
                    (timestamps.len() - expired) as u64,
                    timestamps[expired],
                    entry.last_ns,
                );
            }
        }
        for chunk in self.chunks.iter() {
            let live = chunk
                .timestamps_ns
                .iter()
                .filter(|timestamp| **timestamp >= cutoff_ns);
            live.for_each(|timestamp| stats.add(1, *timestamp, *timestamp));
        }
        Ok(stats)
    }
}
