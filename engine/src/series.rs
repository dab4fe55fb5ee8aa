//! One series: a head that accepts rows, and sealed blocks.
//!
//! The head is a list of small chunks. A full chunk never changes; the last one is copied if a reader still shares it
//! (`Arc::make_mut`). That costs at most [`CHUNK_ROWS_MAX`] rows once per reader; in return, readers need no lock and
//! see exactly the rows that existed when they took their snapshot.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::block::{BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES, Block, BlockId, encode_block};
use crate::columns::Columns;
use crate::ends::{source_of_ends, without_repeats};
use crate::entry::BlockEntry;
use crate::rows::Table;

/// Maximum number of rows of a chunk.
const CHUNK_ROWS_MAX: usize = 1_024;
const CHUNKS_PER_BLOCK: usize = BLOCK_ROWS_MAX / CHUNK_ROWS_MAX;
/// Size of distinct texts in bytes at which a chunk is full, whatever its number of rows.
const CHUNK_TEXT_BYTES: usize = BLOCK_TEXT_BYTES / CHUNKS_PER_BLOCK;

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

/// Rows that are not in a block yet.
#[derive(Clone, Default)]
struct Head {
    /// Rows that arrived in order of time, ties by sequence.
    main: Vec<Arc<Columns>>,
    /// Late rows: received after a greater timestamp. All chunks except the last are sorted.
    late: Vec<Arc<Columns>>,
    /// Chunks to be sealed; each is sorted.
    sealing: Vec<Arc<Columns>>,
    /// Chunks to be written by a checkpoint; each is sorted. Blocks sealed of them meanwhile are discarded, or the rows
    /// would exist twice, in the blocks and in the segment.
    saving: Vec<Arc<Columns>>,
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
    /// Whether the table's fields have the same types as in the head, whose chunks all agree because of this check.
    /// Most fields are found in the last chunk.
    fn takes(&self, table: &Table<'_>) -> bool {
        let Some(head) = &self.head else { return true };
        let newest = [head.main.last(), head.late.last()];
        table.columns.iter().enumerate().all(|(place, column)| {
            // Usually the rows before had the same fields.
            if let Some(known) = newest[0].and_then(|chunk| chunk.fields.get(place))
                && known.field == column.field
            {
                return known.column.values.kind() == column.values.kind();
            }
            let mut chunks = newest.into_iter().flatten().chain(head.chunks());
            let known = chunks.find_map(|chunk| chunk.field(column.field));
            known.is_none_or(|known| known.values.kind() == column.values.kind())
        })
    }

    /// Adds the rows of one request; adds to `seals` what fills blocks. Returns the approximate growth of the head in
    /// bytes, which may be less than the added rows if a copied chunk loses spare capacity. If a field has another type
    /// than before, nothing is added and `None` is returned.
    pub(crate) fn append(
        &mut self,
        source: u32,
        table: &Table<'_>,
        first_sequence: u64,
        seals: &mut Vec<Seal>,
    ) -> Option<i64> {
        if !self.takes(table) {
            return None;
        }
        let mut growth = 0;
        let head = Arc::make_mut(self.head.get_or_insert_default());
        let timestamps = &table.timestamps_ns;
        let mut row = 0;
        while row < timestamps.len() {
            let late = self.newest_ns.is_some_and(|newest| timestamps[row] < newest);
            let start = row;
            while row < timestamps.len()
                && self.newest_ns.is_some_and(|newest| timestamps[row] < newest) == late
            {
                if !late {
                    self.newest_ns = Some(timestamps[row]);
                }
                row += 1;
            }
            let chunks = if late { &mut head.late } else { &mut head.main };
            growth += append_rows(chunks, table, start..row, first_sequence, late);
        }
        self.stats.add_rows(timestamps);
        seals.extend(head.take_full(source));
        Some(growth)
    }

    /// Replaces rows by the blocks made of them; false if a checkpoint was faster.
    pub(crate) fn finish_seal(&mut self, sealed: Sealed) -> bool {
        let Some(head) = &self.head else { return false };
        let still = |run: &Arc<Columns>| head.sealing.iter().any(|chunk| Arc::ptr_eq(chunk, run));
        let all = sealed.runs.iter().all(still);
        if all {
            let blocks = sealed.blocks.into_iter().map(BlockEntry::heap);
            self.replace(&sealed.runs, &HashSet::new(), blocks.collect());
        }
        all
    }

    /// Approximate memory of unsaved data in bytes.
    pub(crate) fn unsaved_bytes(&self) -> usize {
        let chunks = self.chunks().map(|chunk| chunk.memory_bytes());
        let blocks = self.blocks.iter().filter_map(BlockEntry::unsaved);
        chunks.sum::<usize>() + blocks.map(|block| block.place().len()).sum::<usize>()
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
                let Head { sealing, saving, .. } = Arc::make_mut(head);
                let is_other = |chunk: &Arc<Columns>| !runs.iter().any(|run| Arc::ptr_eq(run, chunk));
                sealing.retain(is_other);
                saving.retain(is_other);
            }
            if head.chunks().next().is_none() {
                self.head = None;
            }
        }
        if !old.is_empty() {
            self.retain(|entry| !old.contains(&entry.id()));
        }
        self.insert(new.into_iter());
    }

    /// Freezes the head for a checkpoint; it stays readable. Returns all rows that are not in a segment yet.
    pub(crate) fn freeze(&mut self) -> (Vec<Arc<Columns>>, Vec<Arc<Block>>) {
        let head = self.head.as_mut();
        let runs = head.map(|head| Arc::make_mut(head).freeze()).unwrap_or_default();
        let unsaved = self.blocks.iter().filter_map(BlockEntry::unsaved);
        (runs, unsaved.cloned().collect())
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
        for chunk in self.chunks() {
            stats.add_rows(&chunk.timestamps_ns);
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

    /// The head's chunks, which a reader may share. The last late chunk may be unsorted.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Arc<Columns>> {
        self.head.iter().flat_map(|head| head.chunks())
    }

    /// Whether it has no rows at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none() && self.blocks.is_empty()
    }

    pub(crate) fn has_head(&self) -> bool {
        self.head.is_some()
    }
}

impl Head {
    fn chunks(&self) -> impl Iterator<Item = &Arc<Columns>> {
        let frozen = self.saving.iter().chain(&self.sealing);
        frozen.chain(&self.main).chain(&self.late)
    }

    /// Takes the oldest chunks that fill a block, as long as there are any.
    fn take_full(&mut self, source: u32) -> Vec<Seal> {
        let mut seals = Vec::new();
        for chunks in [&mut self.main, &mut self.late] {
            while let Some(count) = full_chunks(chunks) {
                let runs: Vec<Arc<Columns>> = chunks.drain(..count).collect();
                self.sealing.extend(runs.iter().cloned());
                seals.push(Seal { source, runs });
            }
        }
        seals
    }

    fn freeze(&mut self) -> Vec<Arc<Columns>> {
        self.saving.append(&mut self.sealing);
        self.saving.append(&mut self.main);
        self.saving.extend(self.late.drain(..).map(sorted));
        self.saving.clone()
    }
}

/// Approximate memory in bytes.
fn memory_of(chunks: &[Arc<Columns>]) -> usize {
    chunks.iter().map(|chunk| chunk.memory_bytes()).sum()
}

/// Number of chunks, from the first on, that fill a block, if they do. All chunks except the last are full, by rows or
/// by texts.
fn full_chunks(chunks: &[Arc<Columns>]) -> Option<usize> {
    let (_, full) = chunks.split_last()?;
    let mut text_bytes = 0;
    for (index, chunk) in full.iter().enumerate() {
        text_bytes += chunk.text_bytes();
        if index + 1 == CHUNKS_PER_BLOCK || text_bytes >= BLOCK_TEXT_BYTES {
            return Some(index + 1);
        }
    }
    None
}

/// Returns the approximate growth of the chunks in bytes.
fn append_rows(
    chunks: &mut Vec<Arc<Columns>>,
    table: &Table<'_>,
    range: Range<usize>,
    first_sequence: u64,
    late: bool,
) -> i64 {
    let mut growth = 0;
    let mut start = range.start;
    while start < range.end {
        let room = match chunks.last() {
            Some(chunk) if chunk.text_bytes() < CHUNK_TEXT_BYTES => {
                CHUNK_ROWS_MAX.saturating_sub(chunk.rows())
            }
            _ => 0,
        };
        if room == 0 {
            if let Some(full) = chunks.last_mut().filter(|_| late) {
                growth -= full.memory_bytes() as i64;
                *full = sorted(Arc::clone(full));
                growth += full.memory_bytes() as i64;
            }
            let chunk = Arc::<Columns>::default();
            growth += chunk.memory_bytes() as i64;
            chunks.push(chunk);
            continue;
        }
        let end = range.end.min(start + room);
        if let Some(chunk) = chunks.last_mut() {
            growth -= chunk.memory_bytes() as i64;
            Arc::make_mut(chunk).append(table, start..end, first_sequence);
            growth += chunk.memory_bytes() as i64;
        }
        start = end;
    }
    growth
}

/// The chunk itself if it is sorted, otherwise a sorted copy.
pub(crate) fn sorted(chunk: Arc<Columns>) -> Arc<Columns> {
    if chunk.is_sorted() {
        chunk
    } else {
        Arc::new(Columns::merged(&[&chunk]))
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
