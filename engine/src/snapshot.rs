//! What a reader holds: a bucket at one moment, or some of its sources, shared with the store and never changed.

use std::sync::{Arc, OnceLock};

use crate::EngineError;
use crate::cache::Cache;
use crate::columns::Columns;
use crate::entry::BlockEntry;
use crate::expired::{ExpiredRows, is_young, live_blocks, live_rows};
use crate::left::rows_left;
use crate::pages::{Pages, Part};
use crate::series::{Series, SeriesStats, sorted};

/// All time.
const ALWAYS_NS: (i64, i64) = (i64::MIN, i64::MAX);

/// All sources of one bucket at one moment: a request's rows are in it all, or not at all. Taking one costs a few
/// counters, whatever the bucket holds; whoever has it chooses the sources and counts on a thread of its own.
///
/// Held no longer than it takes to choose: while it lives, the store copies whatever pages it writes to, where it would
/// copy only what belongs to the chosen sources.
#[derive(Clone)]
pub struct View {
    pages: Pages,
    expired: Arc<[ExpiredRows]>,
    cache: Cache,
}

/// Some sources of one bucket at one moment.
pub struct Snapshot {
    /// In the order asked for.
    pub series: Vec<SeriesSnapshot>,
}

/// One source at one moment.
pub struct SeriesSnapshot {
    /// The source's ordinal.
    pub source: u32,
    series: Series,
    expired: Arc<[ExpiredRows]>,
    live: OnceLock<Box<Live>>,
    cache: Cache,
}

/// What readers see of it.
pub(crate) struct Live {
    /// What it is good for: blocks outside of this range are left out where some had to be written anew.
    range_ns: (i64, i64),
    /// Ascending by first timestamp.
    pub(crate) blocks: Arc<Vec<BlockEntry>>,
    /// The head's rows, each chunk sorted.
    pub(crate) chunks: Vec<Arc<Columns>>,
    /// For who asks about another range.
    next: OnceLock<Box<Live>>,
}

impl View {
    pub(crate) fn of(pages: &Pages, cache: &Cache) -> Self {
        View {
            pages: pages.clone(),
            expired: Arc::default(),
            cache: cache.clone(),
        }
    }

    /// The same without these rows. They are sorted out by the reader, when it first looks.
    #[must_use]
    pub fn without(self, expired: &Arc<[ExpiredRows]>) -> Self {
        View {
            expired: Arc::clone(expired),
            ..self
        }
    }

    /// A source; `None` where it never had a point.
    pub fn source(&self, source: u32) -> Option<SeriesSnapshot> {
        Some(self.of_series(source, self.pages.get(source)?))
    }

    /// Some sources. Those that never had a point are left out.
    pub fn select(&self, sources: impl IntoIterator<Item = u32>) -> Snapshot {
        let series = sources.into_iter().filter_map(|source| self.source(source));
        Snapshot {
            series: series.collect(),
        }
    }

    /// The sources that may have points within the range, both ends inclusive, ascending by ordinal. Costs about what it
    /// gives: pages of sources without any are passed over.
    pub fn reaching(&self, range_ns: (i64, i64)) -> impl Iterator<Item = SeriesSnapshot> {
        let reaching = self.pages.reaching(range_ns);
        reaching.map(|(source, series)| self.of_series(source, series))
    }

    /// Whether any point may be from before the cutoff, or be gone otherwise, so that [`View::stats`] has to look
    /// closer than at running totals.
    pub fn has_expired(&self, cutoff_ns: i64) -> bool {
        let first = self.pages.totals().bounds_ns.map(|(first, _)| first);
        first.is_some_and(|first| first < self.surely_live_from_ns(cutoff_ns))
    }

    /// Points and bounds of all sources, points before the cutoff not counted. Costs a look at each 1,024 sources where
    /// nothing has expired; else one at those of the sources of whose page something may have, and their blocks that are
    /// cut are read.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where a block that is cut does not read, [`EngineError::Stopped`] when `stop` says so,
    /// which is asked before each block of those.
    pub fn stats(&self, cutoff_ns: i64, stop: &dyn Fn() -> bool) -> Result<SeriesStats, EngineError> {
        self.stats_passing_over(cutoff_ns, stop, &mut Err)
    }

    /// The same; the rows of a damaged block that is cut are not counted where `pass_over` takes the damage.
    ///
    /// # Errors
    /// Those of `pass_over`, [`EngineError::Stopped`] when `stop` says so.
    pub fn stats_passing_over(
        &self,
        cutoff_ns: i64,
        stop: &dyn Fn() -> bool,
        pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
    ) -> Result<SeriesStats, EngineError> {
        let mut stats = SeriesStats::default();
        for part in self.pages.parts(self.surely_live_from_ns(cutoff_ns)) {
            stats.join(match part {
                Part::Whole(totals) => totals,
                Part::Series(series) => {
                    let range_ns = (cutoff_ns, i64::MAX);
                    rows_left(series, range_ns, &self.expired, &self.cache, stop, pass_over)?
                }
            });
        }
        Ok(stats)
    }

    /// No row from here on has expired.
    fn surely_live_from_ns(&self, cutoff_ns: i64) -> i64 {
        let before_ns = self.expired.iter().map(|rows| rows.before_ns);
        before_ns.fold(cutoff_ns, i64::max)
    }

    fn of_series(&self, source: u32, series: &Series) -> SeriesSnapshot {
        SeriesSnapshot {
            source,
            series: series.clone(),
            expired: Arc::clone(&self.expired),
            live: OnceLock::new(),
            cache: self.cache.clone(),
        }
    }
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
    /// Keeps what is decoded of its blocks.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// What is there to be read of a range; the sorting is done by the reader, once, and so is the cutting of blocks
    /// that have expired in part, of which only those are cut that reach into the range.
    pub(crate) fn live(&self, range_ns: (i64, i64)) -> Result<&Live, EngineError> {
        let mut place = &self.live;
        loop {
            match place.get() {
                Some(live) if live.range_ns.0 <= range_ns.0 && range_ns.1 <= live.range_ns.1 => {
                    return Ok(live);
                }
                Some(live) => place = &live.next,
                None => {
                    // Who was quicker may have asked about another range: it is looked at next.
                    let _ = place.set(Box::new(self.cut(range_ns)?));
                }
            }
        }
    }

    fn cut(&self, range_ns: (i64, i64)) -> Result<Live, EngineError> {
        let (first_ns, _) = self.series.stats().bounds_ns.unwrap_or_default();
        let none_expired = is_young(&self.expired, first_ns);
        let (range_ns, blocks) = match none_expired {
            true => (ALWAYS_NS, Arc::clone(self.series.blocks())),
            false => {
                let blocks = live_blocks(self.series.blocks(), range_ns, &self.expired, &self.cache)?;
                (range_ns, Arc::new(blocks))
            }
        };
        let sorted_live = |chunk: &Arc<Columns>| match live_rows(chunk, &self.expired) {
            None => sorted(Arc::clone(chunk)),
            Some(left) => sorted(Arc::new(left)),
        };
        Ok(Live {
            range_ns,
            blocks,
            chunks: self.series.chunks().map(sorted_live).collect(),
            next: OnceLock::new(),
        })
    }

    /// Points and bounds, points before the cutoff not counted.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where a block that the cutoff cuts through does not read.
    pub fn stats(&self, cutoff_ns: i64) -> Result<SeriesStats, EngineError> {
        self.stats_passing_over(cutoff_ns, &mut Err)
    }

    /// The same; the rows of a damaged block that the cutoff cuts through are not counted where `pass_over` takes the
    /// damage.
    ///
    /// # Errors
    /// Those of `pass_over`.
    pub fn stats_passing_over(
        &self,
        cutoff_ns: i64,
        pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
    ) -> Result<SeriesStats, EngineError> {
        self.stats_within((cutoff_ns, i64::MAX), &|| false, pass_over)
    }

    /// Points and bounds of the range, both ends inclusive. Only blocks that an end of the range cuts are read, and of them
    /// only the timestamps.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where such a block does not read, [`EngineError::Stopped`] when `stop` says so.
    pub fn within(&self, range_ns: (i64, i64), stop: &dyn Fn() -> bool) -> Result<SeriesStats, EngineError> {
        self.stats_within(range_ns, stop, &mut Err)
    }

    /// The same; the rows of a damaged block that has to be read are not counted where `pass_over` takes the damage.
    pub(crate) fn stats_within(
        &self,
        range_ns: (i64, i64),
        stop: &dyn Fn() -> bool,
        pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
    ) -> Result<SeriesStats, EngineError> {
        rows_left(
            &self.series,
            range_ns,
            &self.expired,
            &self.cache,
            stop,
            pass_over,
        )
    }

    /// Whether any row may lie within the range, both ends inclusive. Told by bounds, which rows may reach further that
    /// are gone.
    pub fn overlaps(&self, range_ns: (i64, i64)) -> bool {
        self.series.stats().reaches(range_ns)
    }
}
