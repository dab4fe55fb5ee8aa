//! One series: a head that accepts rows, and sealed blocks.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::block::{Block, BlockId, encode_block};
use crate::columns::Columns;
use crate::ends::{source_of_ends, without_repeats};
use crate::entry::BlockEntry;
use crate::head::{Head, memory_of};
use crate::rows::Table;

/// A list of blocks keeps spare capacity of one in this many entries.
const SPARE_ENTRIES_PART: usize = 16;

/// Number of points, and first and last timestamp, of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeriesStats {
    /// Number of points.
    pub points: u64,
    /// Least and greatest timestamp; `None` without points.
    pub bounds_ns: Option<(i64, i64)>,
}

impl SeriesStats {
    pub(crate) fn add(&mut self, points: u64, first_ns: i64, last_ns: i64) {
        if points > 0 {
            let (first, last) = self.bounds_ns.unwrap_or((first_ns, last_ns));
            self.bounds_ns = Some((first.min(first_ns), last.max(last_ns)));
            self.points += points;
        }
    }

    pub(crate) fn add_block(&mut self, entry: &BlockEntry) {
        self.add(u64::from(entry.rows), entry.first_ns, entry.last_ns);
    }

    fn add_rows(&mut self, timestamps_ns: &[i64]) {
        for timestamp_ns in timestamps_ns {
            self.add(1, *timestamp_ns, *timestamp_ns);
        }
    }

    /// Adds those of other points.
    pub fn join(&mut self, other: SeriesStats) {
        if let Some((first_ns, last_ns)) = other.bounds_ns {
            self.add(other.points, first_ns, last_ns);
        }
    }

    /// Whether the bounds overlap the range, both ends inclusive.
    pub(crate) fn reaches(&self, (start, end): (i64, i64)) -> bool {
        self.bounds_ns
            .is_some_and(|(first, last)| first <= end && last >= start)
    }

    /// Mean interval between consecutive points in nanoseconds; `None` for fewer than two points.
    pub fn average_interval_ns(&self) -> Option<f64> {
        let (first, last) = self.bounds_ns?;
        (self.points >= 2).then(|| (last as f64 - first as f64) / (self.points - 1) as f64)
    }
}

/// The rows of a data source. Small, because most sources of a large fleet are idle at any moment. A clone shares head
/// and blocks.
#[derive(Clone, Default)]
pub(crate) struct Series {
    /// The data source that it belongs to.
    pub(crate) source: u32,
    /// `None` if all rows are in blocks.
    head: Option<Arc<Head>>,
    /// Sorted by first timestamp.
    blocks: Arc<Vec<BlockEntry>>,
    /// Greatest timestamp received; rows with smaller ones are late.
    newest_ns: Option<i64>,
    stats: SeriesStats,
}

/// Rows that fill a block, to be sealed on any thread; they stay readable meanwhile.
pub struct Seal {
    source: u32,
    runs: Vec<Arc<Columns>>,
}

/// The result of a [`Seal`].
pub struct Sealed {
    pub(crate) source: u32,
    pub(crate) runs: Vec<Arc<Columns>>,
    pub(crate) blocks: Vec<Arc<Block>>,
}

impl Sealed {
    /// Approximate memory of its rows, and of its blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> (usize, usize) {
        let blocks = self.blocks.iter().map(|block| block.place().len());
        (memory_of(&self.runs), blocks.sum())
    }
}

impl Seal {
    /// Approximate memory of its rows in bytes.
    pub fn memory_bytes(&self) -> usize {
        memory_of(&self.runs)
    }

    /// Compresses the rows, which takes some hundred microseconds.
    pub fn run(self) -> Sealed {
        let runs: Vec<&Columns> = self.runs.iter().map(|run| &**run).collect();
        let rows = Columns::merged(&runs);
        let blocks = cut_blocks(self.source, &rows, 0..rows.rows());
        Sealed {
            source: self.source,
            runs: self.runs,
            blocks,
        }
    }
}

impl Series {
    /// Adds these rows of a request's table; adds to `seals` what fills blocks. Returns the approximate growth of the head in
    /// bytes, which may be less than the added rows if a copied chunk loses spare capacity. If a field has another type
    /// than before, `None` is returned, and the series must be discarded.
    pub(crate) fn append(
        &mut self,
        source: u32,
        table: &Table<'_>,
        rows: Range<usize>,
        first_sequence: u64,
        seals: &mut Vec<Seal>,
    ) -> Option<i64> {
        let head = Arc::make_mut(self.head.get_or_insert_default());
        self.stats.add_rows(&table.timestamps_ns[rows.clone()]);
        let appended = head.append(table, rows, first_sequence, &mut self.newest_ns)?;
        let full = appended.full.into_iter();
        seals.extend(full.map(|runs| Seal { source, runs }));
        Some(appended.growth)
    }

    /// Replaces rows by the blocks made of them; false if a checkpoint was faster.
    pub(crate) fn finish_seal(&mut self, sealed: Sealed) -> bool {
        let Some(head) = &self.head else { return false };
        let all = sealed.runs.iter().all(|run| head.is_sealing(run));
        if all {
            let blocks = sealed.blocks.into_iter().map(BlockEntry::heap);
            self.replace(&sealed.runs, &HashSet::new(), blocks.collect());
        }
        all
    }

    /// Approximate memory of unsaved data in bytes.
    pub(crate) fn unsaved_bytes(&self) -> usize {
        let head = self.head.as_ref().map_or(0, |head| head.memory_bytes());
        let blocks = self.blocks.iter().filter_map(BlockEntry::unsaved);
        head + blocks.map(|block| block.place().len()).sum::<usize>()
    }

    fn insert(&mut self, blocks: impl ExactSizeIterator<Item = BlockEntry>) {
        if blocks.len() == 0 {
            return;
        }
        let entries = Arc::make_mut(&mut self.blocks);
        let spare = entries.capacity() - entries.len();
        if spare < blocks.len() {
            // Sources with few blocks have no spare capacity; those with many are not reallocated for each block.
            let ahead = entries.len() / SPARE_ENTRIES_PART;
            entries.reserve_exact(blocks.len().max(ahead));
        }
        entries.extend(blocks);
        entries.sort_by_key(|entry| entry.first_ns);
    }

    /// Moves blocks of an open segment here.
    pub(crate) fn adopt(&mut self, blocks: &mut Vec<BlockEntry>) {
        for entry in &*blocks {
            self.stats.add_block(entry);
            self.newest_ns = self.newest_ns.max(Some(entry.last_ns));
        }
        self.insert(blocks.drain(..));
    }

    /// Removes blocks, and shrinks the list if much capacity is unused.
    fn retain(&mut self, keep: impl Fn(&BlockEntry) -> bool) {
        let entries = Arc::make_mut(&mut self.blocks);
        entries.retain(keep);
        if entries.capacity() - entries.len() > entries.len() / SPARE_ENTRIES_PART {
            entries.shrink_to_fit();
        }
    }

    /// Replaces what was sealed or rewritten by blocks with the same rows.
    pub(crate) fn replace(&mut self, runs: &[Arc<Columns>], old: &HashSet<BlockId>, new: Vec<BlockEntry>) {
        if let Some(head) = &mut self.head {
            if !runs.is_empty() {
                Arc::make_mut(head).remove(runs);
            }
            if head.is_empty() {
                self.head = None;
            }
        }
        if !old.is_empty() {
            self.retain(|entry| !old.contains(&entry.id()));
        }
        self.insert(new.into_iter());
    }

    /// Freezes the head for a checkpoint; it stays readable. Returns all rows that are not in a segment yet, and the
    /// approximate growth of the head in bytes.
    pub(crate) fn freeze(&mut self) -> (Vec<Arc<Columns>>, Vec<Arc<Block>>, i64) {
        let head = self.head.as_mut();
        let (runs, growth) = head.map(|head| Arc::make_mut(head).freeze()).unwrap_or_default();
        let unsaved = self.blocks.iter().filter_map(BlockEntry::unsaved);
        (runs, unsaved.cloned().collect(), growth)
    }

    /// Whether any block ends before the cutoff.
    pub(crate) fn has_expired(&self, cutoff_ns: i64) -> bool {
        self.blocks.iter().any(|entry| entry.last_ns < cutoff_ns)
    }

    /// Removes blocks that end before the cutoff; returns their segments and row counts.
    pub(crate) fn expire(&mut self, cutoff_ns: i64) -> Vec<(u64, u32)> {
        if !self.has_expired(cutoff_ns) {
            return Vec::new();
        }
        let expired = self.blocks.iter().filter(|entry| entry.last_ns < cutoff_ns);
        let segments = expired.filter_map(BlockEntry::rows_of_segment).collect();
        self.retain(|entry| entry.last_ns >= cutoff_ns);
        self.recount();
        segments
    }

    /// Recomputes the statistics, after expired rows were dropped.
    pub(crate) fn recount(&mut self) {
        let mut stats = SeriesStats::default();
        for entry in self.blocks.iter() {
            stats.add_block(entry);
        }
        for (timestamp_ns, _) in self.positions() {
            stats.add(1, timestamp_ns, timestamp_ns);
        }
        self.stats = stats;
    }

    /// Approximate memory of the list of blocks in bytes: the vector, and the counters of its `Arc`.
    #[cfg(test)]
    pub(crate) fn list_bytes(&self) -> usize {
        2 * size_of::<usize>()
            + size_of::<Vec<BlockEntry>>()
            + self.blocks.capacity() * size_of::<BlockEntry>()
    }

    pub(crate) fn blocks(&self) -> &Arc<Vec<BlockEntry>> {
        &self.blocks
    }

    pub(crate) fn stats(&self) -> SeriesStats {
        self.stats
    }

    pub(crate) fn newest_ns(&self) -> Option<i64> {
        self.newest_ns
    }

    /// The head's rows. The last late chunk may be unsorted.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Arc<Columns>> {
        self.head.iter().flat_map(|head| head.chunks())
    }

    /// Timestamps and sequences of the head's rows.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (i64, u64)> {
        self.head.iter().flat_map(|head| head.positions())
    }

    /// Whether it has no rows at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none() && self.blocks.is_empty()
    }

    pub(crate) fn has_head(&self) -> bool {
        self.head.is_some()
    }
}

/// Cuts the given rows of sorted columns into blocks. Of ends that repeat, the first is kept.
pub(crate) fn cut_blocks(source: u32, sorted: &Columns, rows: Range<usize>) -> Vec<Arc<Block>> {
    if source_of_ends(source).is_some()
        && let Some(kept) = without_repeats(sorted, rows.clone())
    {
        return cut_blocks(source, &kept, 0..kept.rows());
    }
    let mut blocks = Vec::new();
    let mut start = rows.start;
    while start < rows.end {
        let end = sorted.block_end(start, rows.end).unwrap_or(rows.end);
        blocks.push(Arc::new(if end - start == sorted.rows() {
            encode_block(source, sorted)
        } else {
            encode_block(source, &sorted.slice(start..end))
        }));
        start = end;
    }
    blocks
}
