//! The store of one bucket: its sources' series and the segments that contain them. One owner writes to it; readers
//! hold snapshots, which share immutable chunks and blocks with it and never wait.

use crate::EngineError;
use crate::block::BlockId;
use crate::cache::Cache;
use crate::checkpoint::{Checkpoint, CheckpointPart};
use crate::ends::{AllSeries, ENDS_ORDINALS_FROM, ends_of, source_of_ends};
use crate::entry::BlockEntry;
use crate::members::{Members, SERIES_ORDINALS_FROM, SeriesRef};
use crate::merge::Merge;
use crate::segment::SegmentPart;
use crate::series::{Seal, Sealed, Series, SeriesStats};
use crate::snapshot::View;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

mod apply;

/// A store's part of a segment file.
struct Held {
    /// Size of its blocks and of their footer entries in bytes.
    bytes: u64,
    /// Number of rows in blocks that a series still uses.
    live_rows: u64,
}

/// Size of a store's own cache in bytes, for use without a server whose stores share one.
const OWN_CACHE_BYTES: u64 = 4 << 20;

/// The sources of a bucket and their rows.
pub struct Store {
    series: AllSeries,
    /// The series of the sources that are split by dimensions.
    members: Members,
    segments: BTreeMap<u64, Held>,
    /// Sources with rows that no segment contains yet; among them all that have a head.
    unsaved: BTreeSet<u32>,
    unsaved_rows: u64,
    unsaved_bytes: u64,
    /// Size of the unsaved rows in the log, in bytes.
    unsaved_encoded_bytes: u64,
    /// Rows that fill blocks, until the owner takes them for sealing.
    seals: Vec<Seal>,
    /// Cache of decoded block parts, shared with other stores.
    cache: Cache,
}

/// Whether a series from a segment does not belong to a source yet.
fn is_unassigned(series: &Series) -> bool {
    series.source >= SERIES_ORDINALS_FROM
}

impl Default for Store {
    fn default() -> Self {
        Self::with_cache(Cache::new(OWN_CACHE_BYTES))
    }
}

impl Store {
    /// An empty store with a small cache of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that uses this cache.
    pub fn with_cache(cache: Cache) -> Self {
        Store {
            series: AllSeries::default(),
            members: Members::default(),
            segments: BTreeMap::new(),
            unsaved: BTreeSet::new(),
            unsaved_rows: 0,
            unsaved_bytes: 0,
            unsaved_encoded_bytes: 0,
            seals: Vec::new(),
            cache,
        }
    }

    /// Adds this bucket's part of a segment. Which sources its series belong to is added by [`Store::assign`].
    pub fn add_segment(&mut self, part: SegmentPart) {
        let held = Held {
            bytes: part.bytes,
            live_rows: part.rows,
        };
        self.segments.insert(part.file.id(), held);
        // The blocks of a series follow each other. Millions of series with one block each are usual, so that
        // they are not collected in a map first.
        let mut of_series = Vec::new();
        let mut blocks = part.blocks.into_iter().peekable();
        while let Some((ordinal, block)) = blocks.next() {
            of_series.push(block);
            if blocks.peek().is_some_and(|(next, _)| *next == ordinal) {
                continue;
            }
            self.series.change_or_insert(ordinal, |series| {
                series.source = source_of_ends(ordinal).unwrap_or(ordinal);
                series.adopt(&mut of_series);
            });
        }
    }

    /// Records that a series from a segment belongs to this source.
    pub fn assign(&mut self, series: SeriesRef) {
        let assigned = self
            .series
            .change(series.ordinal, |held| held.source = series.source);
        if assigned.is_some() {
            self.members.insert(series);
        }
    }

    /// The greatest ordinal of a series that is not that of a source.
    pub fn greatest_series(&self) -> Option<u32> {
        let greatest = self.series.points.greatest()?;
        (greatest >= SERIES_ORDINALS_FROM).then_some(greatest)
    }

    /// Whether series from segments have not been [assigned](Self::assign) to a source.
    pub fn has_unassigned(&self) -> bool {
        self.series.iter().any(|(_, series)| is_unassigned(series))
    }

    /// Rows that fill blocks, to be sealed on any thread and passed back to [`Store::finish_seal`]. They stay readable
    /// meanwhile.
    pub fn take_seals(&mut self) -> Vec<Seal> {
        std::mem::take(&mut self.seals)
    }

    /// Returns rows that were taken but not sealed, for the next [`Store::take_seals`].
    pub fn give_back(&mut self, seal: Seal) {
        self.seals.push(seal);
    }

    /// Replaces rows by their sealed blocks. Rows that were deleted or written by a checkpoint in the meantime are
    /// skipped.
    pub fn finish_seal(&mut self, sealed: Sealed) {
        let (rows, blocks) = sealed.memory_bytes();
        let source = sealed.source;
        if let Some(true) = self.series.change(source, |series| series.finish_seal(sealed)) {
            self.unsaved_bytes = (self.unsaved_bytes + blocks as u64).saturating_sub(rows as u64);
        }
    }

    /// Number of rows that no segment contains yet, and their approximate memory in bytes.
    pub fn unsaved(&self) -> (u64, u64) {
        (self.unsaved_rows, self.unsaved_bytes)
    }

    /// Memory of the table of series in bytes, unused capacity included.
    #[cfg(test)]
    pub(crate) fn table_bytes(&self) -> usize {
        self.series.points.memory_bytes()
    }

    #[cfg(test)]
    pub(crate) fn all_series(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().map(|(_, series)| series)
    }

    /// Size of the log records with rows that no segment contains yet, in bytes; those of removed sources count until
    /// the next checkpoint.
    pub fn unsaved_encoded_bytes(&self) -> u64 {
        self.unsaved_encoded_bytes
    }

    /// Removes a series from a segment that has not been [assigned](Self::assign) to a source.
    pub fn drop_unassigned(&mut self, ordinal: u32) {
        if self.series.get(ordinal).is_some_and(is_unassigned) {
            self.remove_series(ordinal);
        }
    }

    /// Removes a source with its series and their ends; returns its number of points.
    pub fn remove_source(&mut self, source: u32) -> u64 {
        self.remove_series(ends_of(source));
        let members = self.members.of(source).cloned().unwrap_or_default();
        let members: u64 = members.iter().map(|ordinal| self.remove_series(ordinal)).sum();
        members + self.remove_series(source)
    }

    /// Returns its number of points.
    fn remove_series(&mut self, ordinal: u32) -> u64 {
        self.unsaved.remove(&ordinal);
        if self.unsaved.is_empty() {
            (self.unsaved_rows, self.unsaved_encoded_bytes) = (0, 0);
        }
        let Some(series) = self.series.remove(ordinal) else {
            return 0;
        };
        self.members.remove(SeriesRef {
            ordinal,
            source: series.source,
        });
        self.unsaved_bytes = self.unsaved_bytes.saturating_sub(series.unsaved_bytes() as u64);
        self.release(series.blocks().iter().filter_map(BlockEntry::rows_of_segment));
        match source_of_ends(ordinal) {
            None => series.stats().points,
            Some(_) => 0,
        }
    }

    /// Removes all sources; returns their number of points.
    pub fn remove_all(&mut self) -> u64 {
        self.retain_sources(|_| false)
    }

    /// Removes the series of all sources for which `known` returns false: after a restart, those that were deleted
    /// before it, and series that were assigned to no source. Returns their number of points.
    pub fn retain_sources(&mut self, known: impl Fn(u32) -> bool) -> u64 {
        let is_unknown = |series: &Series| is_unassigned(series) || !known(series.source);
        let unknown = self.series.iter().filter(|(_, series)| is_unknown(series));
        let unknown: Vec<u32> = unknown.map(|(ordinal, _)| ordinal).collect();
        unknown
            .into_iter()
            .map(|ordinal| self.remove_series(ordinal))
            .sum()
    }

    /// Number of series of sources that are split by dimensions.
    pub fn series_count(&self) -> u64 {
        self.members.len()
    }

    /// Number of such series that were removed so far, because they had no rows left or with their source.
    pub fn removed_series(&self) -> u64 {
        self.members.removed()
    }

    /// The greatest timestamp that a series has received; `None` if it has no points.
    pub fn newest_ns(&self, ordinal: u32) -> Option<i64> {
        self.series.get(ordinal)?.newest_ns()
    }

    /// Subtracts rows that are no longer used from these segments.
    fn release(&mut self, rows: impl Iterator<Item = (u64, u32)>) {
        for (id, rows) in rows {
            if let Some(held) = self.segments.get_mut(&id) {
                held.live_rows -= u64::from(rows);
            }
        }
    }

    /// Drops all blocks that end before the cutoff.
    pub fn expire(&mut self, cutoff_ns: i64) {
        let expired = self.series.expire(cutoff_ns);
        self.release(expired.rows.into_iter());
        self.forget_empty(expired.emptied);
    }

    /// Removes those of these series that have no rows, and are not a source's own points.
    fn forget_empty(&mut self, changed: impl IntoIterator<Item = u32>) {
        let others = changed
            .into_iter()
            .filter(|ordinal| *ordinal >= ENDS_ORDINALS_FROM);
        for ordinal in others {
            if self.series.get(ordinal).is_some_and(Series::is_empty) {
                self.remove_series(ordinal);
            }
        }
    }

    /// The segments in use, each with its number of live rows. Segments without live rows are forgotten.
    pub fn live_segments(&mut self) -> Vec<(u64, u64)> {
        self.segments.retain(|_, held| held.live_rows > 0);
        let live = self.segments.iter();
        live.map(|(id, held)| (*id, held.live_rows)).collect()
    }

    /// Size of the bucket's blocks in the segments in use, in bytes, dead blocks included.
    pub fn segment_bytes(&self) -> u64 {
        self.segments.values().map(|held| held.bytes).sum()
    }

    /// Number and bounds of a source's points, without those before the cutoff.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] if the block that contains the cutoff cannot be read.
    pub fn stats(&self, source: u32, cutoff_ns: i64) -> Result<SeriesStats, EngineError> {
        let counted = self.view().source_stats(source, cutoff_ns, &|| false, &mut Err)?;
        Ok(counted.points)
    }

    /// A view of the current content, for readers on any thread. Costs a few reference counts, whatever the size.
    pub fn view(&self) -> View {
        View::of(&self.series.points, &self.series.ends, &self.members, &self.cache)
    }

    /// Begins a checkpoint: takes all rows that no segment contains, which stay readable. `None` if there are none. The
    /// caller writes the checkpoint's segment, then calls [`Store::finish_checkpoint`]; if writing fails, it can simply
    /// begin again later.
    pub fn begin_checkpoint(&mut self) -> Option<Checkpoint> {
        // The checkpoint writes these rows; sealing them too would duplicate them.
        self.seals.clear();
        let mut parts = Vec::with_capacity(self.unsaved.len());
        for source in &self.unsaved {
            let set_aside = |series: &mut Series| {
                let last_ns = series.blocks().iter().map(|entry| entry.last_ns);
                let sealed_until_ns = last_ns.max().unwrap_or(i64::MIN);
                let (runs, blocks, growth) = series.freeze();
                self.unsaved_bytes = self.unsaved_bytes.saturating_add_signed(growth);
                CheckpointPart {
                    source: *source,
                    runs,
                    blocks,
                    sealed_until_ns,
                }
            };
            parts.extend(self.series.change(*source, set_aside));
        }
        let counted = (self.unsaved_rows, self.unsaved_encoded_bytes);
        (!parts.is_empty()).then_some(Checkpoint { parts, counted })
    }

    /// Replaces the checkpoint's rows by the blocks of its segment, which is durable now; `part` is this bucket's part
    /// of it.
    pub fn finish_checkpoint(&mut self, done: Checkpoint, part: Option<SegmentPart>, cutoff_ns: i64) {
        let mut new = part.map(|part| self.take_in(part)).unwrap_or_default();
        for part in done.parts {
            let blocks = new.remove(&part.source).unwrap_or_default();
            let old: HashSet<BlockId> = part.blocks.iter().map(|block| block.id()).collect();
            let replace = |series: &mut Series| {
                series.replace(&part.runs, &old, blocks);
                !series.has_head() && series.blocks().iter().all(|entry| entry.segment().is_some())
            };
            if let Some(true) = self.series.change(part.source, replace) {
                self.unsaved.remove(&part.source);
            }
        }
        // Saturating: counted rows may have been deleted since, and subtracted then.
        self.unsaved_rows = self.unsaved_rows.saturating_sub(done.counted.0);
        self.unsaved_encoded_bytes = self.unsaved_encoded_bytes.saturating_sub(done.counted.1);
        self.recount();
        self.expire(cutoff_ns);
    }

    /// The blocks by source. Adds the segment, without live rows yet.
    fn take_in(&mut self, part: SegmentPart) -> HashMap<u32, Vec<BlockEntry>> {
        let mut by_source: HashMap<u32, Vec<BlockEntry>> = HashMap::new();
        for (source, entry) in part.blocks {
            by_source.entry(source).or_default().push(entry);
        }
        let held = Held {
            bytes: part.bytes,
            live_rows: 0,
        };
        self.segments.insert(part.file.id(), held);
        by_source
    }

    /// Recomputes the live rows of all segments and the memory of unsaved rows: sources may have been deleted while a
    /// segment was written.
    fn recount(&mut self) {
        let unsaved = self.unsaved.iter().filter_map(|source| self.series.get(*source));
        self.unsaved_bytes = unsaved.map(|series| series.unsaved_bytes() as u64).sum();
        self.segments.values_mut().for_each(|held| held.live_rows = 0);
        let blocks = self.series.iter().flat_map(|(_, series)| series.blocks().iter());
        for (id, rows) in blocks.filter_map(BlockEntry::rows_of_segment) {
            if let Some(held) = self.segments.get_mut(&id) {
                held.live_rows += u64::from(rows);
            }
        }
    }

    /// The live blocks in the segments chosen for a merge; `None` if there are none.
    pub fn begin_merge(&self, chosen: &[u64]) -> Option<Merge> {
        if !chosen.iter().any(|id| self.segments.contains_key(id)) {
            return None;
        }
        let mut sources: Vec<(u32, Vec<BlockEntry>)> = Vec::new();
        for (source, series) in self.series.iter() {
            let is_chosen = |entry: &&BlockEntry| entry.segment().is_some_and(|id| chosen.contains(&id));
            let blocks: Vec<BlockEntry> = series.blocks().iter().filter(is_chosen).cloned().collect();
            if !blocks.is_empty() {
                sources.push((source, blocks));
            }
        }
        (!sources.is_empty()).then_some(Merge { sources })
    }

    /// Replaces the merged blocks by those of the new segment, which is durable now; `part` is this bucket's part of
    /// it. What was deleted or has expired since the merge began stays deleted.
    pub fn finish_merge(&mut self, done: Merge, part: Option<SegmentPart>, cutoff_ns: i64) {
        let mut new = part.map(|part| self.take_in(part)).unwrap_or_default();
        let changed: Vec<u32> = done.sources.iter().map(|(ordinal, _)| *ordinal).collect();
        for (source, old) in done.sources {
            let old = old.iter().map(BlockEntry::id).collect();
            let blocks = new.remove(&source).unwrap_or_default();
            self.series.change(source, |series| {
                series.replace(&[], &old, blocks);
                series.recount();
            });
        }
        self.forget_empty(changed);
        self.recount();
        self.expire(cutoff_ns);
    }
}
