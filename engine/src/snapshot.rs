//! Snapshots for readers: a bucket, or some of its series, at one moment, shared with the store and immutable.

use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use crate::EngineError;
use crate::cache::Cache;
use crate::columns::Columns;
use crate::ends::ends_of;
use crate::entry::BlockEntry;
use crate::expired::{ExpiredRows, is_young, live_blocks, live_rows};
use crate::head::sorted;
use crate::left::rows_left;
use crate::members::Members;
use crate::pages::Pages;
use crate::series::{Series, SeriesStats};

/// Number of the series of a source that have points, and their points together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Number of series with points.
    pub series: u64,
    /// Their points.
    pub points: SeriesStats,
}

/// All time.
const ALWAYS_NS: (i64, i64) = (i64::MIN, i64::MAX);

/// All sources of one bucket at one moment; a request's rows are either all visible or not at all. Taking a view costs
/// a few reference counts, whatever the bucket contains; the reader then selects sources and counts on its own thread.
///
/// Keep it only until the sources are selected: while a view exists, the store copies every page it writes to. A
/// snapshot of some sources limits that to their pages.
#[derive(Clone)]
pub struct View {
    pages: Pages,
    ends: Pages,
    members: Members,
    expired: Arc<[ExpiredRows]>,
    cache: Cache,
}

/// One series at one moment.
pub struct SeriesSnapshot {
    /// The series' ordinal; that of the source if the source is not split by dimensions.
    pub ordinal: u32,
    /// The source's ordinal.
    pub source: u32,
    series: Series,
    expired: Arc<[ExpiredRows]>,
    live: OnceLock<Box<Live>>,
    cache: Cache,
}

/// The live data of a source, without expired rows.
pub(crate) struct Live {
    /// The range for which it is complete: if blocks had to be encoded again, blocks outside of the range are omitted.
    range_ns: (i64, i64),
    /// Sorted by first timestamp.
    pub(crate) blocks: Arc<Vec<BlockEntry>>,
    /// The head's rows; each chunk is sorted and has some.
    pub(crate) chunks: Vec<Arc<Columns>>,
    /// The live data for another range, if one was requested.
    next: OnceLock<Box<Live>>,
}

impl View {
    pub(crate) fn of(pages: &Pages, ends: &Pages, members: &Members, cache: &Cache) -> Self {
        View {
            pages: pages.clone(),
            ends: ends.clone(),
            members: members.clone(),
            expired: Arc::default(),
            cache: cache.clone(),
        }
    }

    /// Excludes these rows. The reader removes them when it first accesses the data.
    #[must_use]
    pub fn without(self, expired: &Arc<[ExpiredRows]>) -> Self {
        View {
            expired: Arc::clone(expired),
            ..self
        }
    }

    /// The cache of decoded blocks.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A series by its ordinal; `None` if it never had a point.
    pub fn series(&self, ordinal: u32) -> Option<SeriesSnapshot> {
        Some(self.of_series(ordinal, self.pages.get(ordinal)?))
    }

    /// The ends of a source's series, for [`for_each_end`](crate::query::for_each_end); `None` if there are none.
    pub fn ends(&self, source: u32) -> Option<SeriesSnapshot> {
        let ordinal = ends_of(source);
        Some(self.of_series(ordinal, self.ends.get(ordinal)?))
    }

    /// The ends of all sources that may have some within the range, both ends inclusive.
    pub(crate) fn ends_reaching(&self, range_ns: (i64, i64)) -> impl Iterator<Item = SeriesSnapshot> {
        let reaching = self.ends.reaching(range_ns);
        reaching.map(|(ordinal, series)| self.of_series(ordinal, series))
    }

    /// The ordinals of the series of a source that is split by dimensions.
    pub fn members(&self, source: u32) -> Option<&Arc<RoaringBitmap>> {
        self.members.of(source)
    }

    /// The series of a source, ascending by ordinal. The cost grows with their number.
    pub fn source(&self, source: u32) -> impl Iterator<Item = SeriesSnapshot> {
        let members = self
            .members
            .of(source)
            .into_iter()
            .flat_map(|members| members.iter());
        let ordinals = std::iter::once(source).chain(members);
        ordinals.filter_map(|ordinal| self.series(ordinal))
    }

    /// Number and bounds of a source's points, without those before the cutoff.
    ///
    /// # Errors
    /// As for [`SeriesSnapshot::stats_within`].
    pub fn source_stats(
        &self,
        source: u32,
        cutoff_ns: i64,
        stop: &dyn Fn() -> bool,
        pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
    ) -> Result<SourceStats, EngineError> {
        let mut stats = SourceStats::default();
        for series in self.source(source) {
            let counted = series.stats_within((cutoff_ns, i64::MAX), stop, pass_over)?;
            stats.series += u64::from(counted.points > 0);
            stats.points.join(counted);
        }
        Ok(stats)
    }

    /// The series of a source that is split by dimensions, without those whose points have all expired. If no point of
    /// the bucket has expired, this costs nothing; otherwise it grows with the number of series.
    ///
    /// # Errors
    /// As for [`SeriesSnapshot::stats_within`].
    pub fn visible(
        &self,
        source: u32,
        cutoff_ns: i64,
        stop: &dyn Fn() -> bool,
        pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
    ) -> Result<Arc<RoaringBitmap>, EngineError> {
        let Some(members) = self.members.of(source) else {
            return Ok(Arc::default());
        };
        if !self.has_expired(cutoff_ns) {
            return Ok(Arc::clone(members));
        }
        let mut visible = RoaringBitmap::new();
        for ordinal in members.iter() {
            if self.is_visible(ordinal, cutoff_ns, stop, pass_over)? {
                visible.insert(ordinal);
            }
        }
        Ok(Arc::new(visible))
    }

    /// Whether a series has points that have not expired.
    ///
    /// # Errors
    /// As for [`SeriesSnapshot::stats_within`].
    pub fn is_visible(
        &self,
        ordinal: u32,
        cutoff_ns: i64,
        stop: &dyn Fn() -> bool,
        pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
    ) -> Result<bool, EngineError> {
        let Some(series) = self.pages.get(ordinal) else {
            return Ok(false);
        };
        match series.stats().bounds_ns {
            None => Ok(false),
            // The point with the last timestamp has not.
            Some((_, last_ns)) if last_ns >= self.surely_live_from_ns(cutoff_ns) => Ok(true),
            Some(_) => {
                let range_ns = (cutoff_ns, i64::MAX);
                let left = rows_left(series, range_ns, &self.expired, &self.cache, stop, pass_over)?;
                Ok(left.points > 0)
            }
        }
    }

    /// The sources that are split by dimensions and have series.
    pub fn split_sources(&self) -> impl Iterator<Item = u32> {
        self.members.sources()
    }

    /// The series that may have points within the range, both ends inclusive, ascending by ordinal. The cost grows
    /// with the result: pages without such series are skipped.
    pub fn reaching(&self, range_ns: (i64, i64)) -> impl Iterator<Item = SeriesSnapshot> {
        let reaching = self.pages.reaching(range_ns);
        reaching.map(|(ordinal, series)| self.of_series(ordinal, series))
    }

    /// Whether any point may have expired, by the cutoff or otherwise, so that [`View::stats`] cannot be answered from
    /// the running totals alone.
    pub fn has_expired(&self, cutoff_ns: i64) -> bool {
        let first = self.pages.totals().bounds_ns.map(|(first, _)| first);
        first.is_some_and(|first| first < self.surely_live_from_ns(cutoff_ns))
    }

    /// Number and bounds of the points of all sources, without those before the cutoff. If nothing has expired, this
    /// visits one total per 1,024 sources. Otherwise it visits the sources on pages that may contain expired points,
    /// and reads their partly expired blocks. If `pass_over` accepts the error of a damaged block, the block's rows are
    /// not counted.
    ///
    /// # Errors
    /// Those of `pass_over`; [`EngineError::Stopped`] if `stop`, which is called before each block, returns true.
    pub fn stats(
        &self,
        cutoff_ns: i64,
        stop: &dyn Fn() -> bool,
        pass_over: &mut dyn FnMut(EngineError) -> Result<(), EngineError>,
    ) -> Result<SeriesStats, EngineError> {
        let range_ns = (cutoff_ns, i64::MAX);
        self.pages.count(self.surely_live_from_ns(cutoff_ns), |series| {
            rows_left(series, range_ns, &self.expired, &self.cache, stop, pass_over)
        })
    }

    /// No row from this time on has expired.
    fn surely_live_from_ns(&self, cutoff_ns: i64) -> i64 {
        let before_ns = self.expired.iter().map(|rows| rows.before_ns);
        before_ns.fold(cutoff_ns, i64::max)
    }

    fn of_series(&self, ordinal: u32, series: &Series) -> SeriesSnapshot {
        SeriesSnapshot {
            ordinal,
            source: series.source,
            series: series.clone(),
            expired: Arc::clone(&self.expired),
            live: OnceLock::new(),
            cache: self.cache.clone(),
        }
    }
}

impl SeriesSnapshot {
    /// The cache of its decoded blocks.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The live data of a range. The reader sorts it once, and removes expired rows from partly expired blocks that
    /// overlap the range.
    pub(crate) fn live(&self, range_ns: (i64, i64)) -> Result<&Live, EngineError> {
        let mut place = &self.live;
        loop {
            match place.get() {
                Some(live) if live.range_ns.0 <= range_ns.0 && range_ns.1 <= live.range_ns.1 => {
                    return Ok(live);
                }
                Some(live) => place = &live.next,
                None => {
                    // If another thread was faster, it may have set another range, which is checked next.
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
        let chunks = self.series.chunks().map(sorted_live);
        Ok(Live {
            range_ns,
            blocks,
            chunks: chunks.filter(|chunk| chunk.rows() > 0).collect(),
            next: OnceLock::new(),
        })
    }

    /// Number and bounds of the points, without those before the cutoff.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if a block that contains the cutoff cannot be read.
    pub fn stats(&self, cutoff_ns: i64) -> Result<SeriesStats, EngineError> {
        self.stats_within((cutoff_ns, i64::MAX), &|| false, &mut Err)
    }

    /// Number and bounds of the points in the range, both ends inclusive. Only blocks that contain an end of the range
    /// are read, and of them only the timestamps. If `pass_over` accepts the error of a damaged block, the block's rows
    /// are not counted.
    ///
    /// # Errors
    /// Those of `pass_over`; [`EngineError::Stopped`] if `stop`, which is called before each block, returns true.
    pub fn stats_within(
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

    /// The greatest timestamp that it has received; `None` if it has no points.
    pub fn newest_ns(&self) -> Option<i64> {
        self.series.newest_ns()
    }

    /// Least and greatest timestamp, those of expired rows included; `None` if it has no points.
    pub fn bounds_ns(&self) -> Option<(i64, i64)> {
        self.series.stats().bounds_ns
    }

    /// Whether none of its rows has expired other than by the cutoff, so that no block has to be encoded again without
    /// such rows.
    pub fn none_expired(&self) -> bool {
        self.bounds_ns()
            .is_none_or(|(first, _)| is_young(&self.expired, first))
    }

    /// Number of blocks that overlap the range, both ends inclusive.
    pub fn blocks_within(&self, range_ns: (i64, i64)) -> usize {
        let blocks = self.blocks().iter();
        blocks.filter(|entry| entry.overlaps(range_ns)).count()
    }

    /// Whether reading its rows never waits for another machine.
    pub fn is_here(&self) -> bool {
        self.blocks().iter().all(BlockEntry::is_here)
    }

    /// Its blocks, with expired rows.
    pub(crate) fn blocks(&self) -> &[BlockEntry] {
        self.series.blocks()
    }

    /// Whether any row may be within the range, both ends inclusive. Determined by bounds, which may include expired
    /// rows.
    pub fn overlaps(&self, range_ns: (i64, i64)) -> bool {
        self.series.stats().reaches(range_ns)
    }
}
