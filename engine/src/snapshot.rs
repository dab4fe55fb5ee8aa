//! What a reader holds: the chunks and blocks of some sources at one moment, shared with the store and never changed.

use std::sync::{Arc, OnceLock};

use crate::EngineError;
use crate::block::BlockReader;
use crate::cache::Cache;
use crate::columns::Columns;
use crate::entry::BlockEntry;
use crate::expired::{ExpiredRows, live_blocks, live_rows};
use crate::series::{Series, SeriesStats, sorted};

/// Some sources of one bucket at one moment: a request's rows are in it all, or not at all.
pub struct Snapshot {
    /// In the order asked for.
    pub series: Vec<SeriesSnapshot>,
}

/// One source at one moment.
pub struct SeriesSnapshot {
    /// The source's ordinal.
    pub source: u32,
    blocks: Arc<Vec<BlockEntry>>,
    chunks: Vec<Arc<Columns>>,
    stats: SeriesStats,
    expired: Arc<[ExpiredRows]>,
    live: OnceLock<Live>,
    cache: Cache,
}

/// What readers see of it.
pub(crate) struct Live {
    /// Ascending by first timestamp.
    pub(crate) blocks: Arc<Vec<BlockEntry>>,
    /// The head's rows, each chunk sorted.
    pub(crate) chunks: Vec<Arc<Columns>>,
}

impl Snapshot {
    /// The same without these rows. They are sorted out by the reader, when it first looks.
    #[must_use]
    pub fn without(mut self, expired: &Arc<[ExpiredRows]>) -> Self {
        for series in &mut self.series {
            series.expired = Arc::clone(expired);
            series.live = OnceLock::new();
        }
        self
    }
}

impl SeriesSnapshot {
    pub(crate) fn of(source: u32, series: &Series, cache: &Cache) -> Self {
        SeriesSnapshot {
            source,
            blocks: Arc::clone(series.blocks()),
            chunks: series.chunks().cloned().collect(),
            stats: series.stats(),
            expired: Arc::default(),
            live: OnceLock::new(),
            cache: cache.clone(),
        }
    }

    /// Keeps what is decoded of its blocks.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// What is there to be read; the sorting is done by the reader, once.
    pub(crate) fn live(&self) -> Result<&Live, EngineError> {
        if let Some(live) = self.live.get() {
            return Ok(live);
        }
        let sorted_live = |chunk: &Arc<Columns>| match live_rows(chunk, &self.expired) {
            None => sorted(Arc::clone(chunk)),
            Some(left) => sorted(Arc::new(left)),
        };
        let live = Live {
            blocks: self.live_blocks()?,
            chunks: self.chunks.iter().map(sorted_live).collect(),
        };
        Ok(self.live.get_or_init(|| live))
    }

    fn live_blocks(&self) -> Result<Arc<Vec<BlockEntry>>, EngineError> {
        if self.expired.is_empty() {
            return Ok(Arc::clone(&self.blocks));
        }
        live_blocks(&self.blocks, &self.expired, &self.cache).map(Arc::new)
    }

    /// Points and bounds, points before the cutoff not counted.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where a block that the cutoff cuts through does not read.
    pub fn stats(&self, cutoff_ns: i64) -> Result<SeriesStats, EngineError> {
        let none_expired = self.stats.bounds_ns.is_none_or(|(first, _)| first >= cutoff_ns);
        if none_expired && self.expired.is_empty() {
            return Ok(self.stats);
        }
        // Counting needs no order, so that the actor, which counts too, is spared the sorting.
        let (blocks, chunks) = if self.expired.is_empty() {
            (&self.blocks, &self.chunks)
        } else {
            let live = self.live()?;
            (&live.blocks, &live.chunks)
        };
        let mut stats = SeriesStats::default();
        for entry in blocks.iter().filter(|entry| entry.last_ns >= cutoff_ns) {
            if entry.first_ns >= cutoff_ns {
                stats.add(u64::from(entry.rows), entry.first_ns, entry.last_ns);
            } else {
                let timestamps = BlockReader::new(&entry.block(&self.cache)?)?.timestamps_ns()?;
                let expired = timestamps.partition_point(|timestamp| *timestamp < cutoff_ns);
                stats.add(
                    (timestamps.len() - expired) as u64,
                    timestamps[expired],
                    entry.last_ns,
                );
            }
        }
        for chunk in chunks {
            let live = chunk
                .timestamps_ns
                .iter()
                .filter(|timestamp| **timestamp >= cutoff_ns);
            live.for_each(|timestamp| stats.add(1, *timestamp, *timestamp));
        }
        Ok(stats)
    }
}
