//! The store of one bucket: its sources' series and the segments they lie in. One owner writes to it; readers hold
//! snapshots, which share immutable chunks and blocks with it and never wait.

use crate::EngineError;
use crate::block::BlockId;
use crate::cache::Cache;
use crate::checkpoint::{Checkpoint, CheckpointPart};
use crate::entry::BlockEntry;
use crate::merge::Merge;
use crate::pages::Pages;
use crate::rows::RowsReader;
use crate::segment::SegmentPart;
use crate::series::{Seal, Sealed, Series, SeriesStats};
use crate::snapshot::{Snapshot, View};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a store has in a segment file.
struct Held {
    /// Bytes of its blocks and of what the footer says of them.
    bytes: u64,
    /// Rows of the blocks that some series still uses.
    live_rows: u64,
}

/// Bytes that a store keeps decoded by itself, where there is no server whose stores share a cache.
const OWN_CACHE_BYTES: u64 = 4 << 20;

/// A bucket's sources and their rows.
pub struct Store {
    series: Pages,
    segments: BTreeMap<u64, Held>,
    /// Sources with rows that no segment holds yet.
    unsaved: BTreeSet<u32>,
    unsaved_rows: u64,
    unsaved_bytes: u64,
    /// Bytes that the unsaved rows take in the log.
    unsaved_encoded_bytes: u64,
    /// Rows that fill blocks, until the owner takes them to be sealed.
    seals: Vec<Seal>,
    /// What is decoded of blocks; shared with other stores.
    cache: Cache,
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

    /// An empty store that keeps what it decodes in this cache.
    pub fn with_cache(cache: Cache) -> Self {
        Store {
            series: Pages::default(),
            segments: BTreeMap::new(),
            unsaved: BTreeSet::new(),
            unsaved_rows: 0,
            unsaved_bytes: 0,
            unsaved_encoded_bytes: 0,
            seals: Vec::new(),
            cache,
        }
    }

    /// Takes in what a segment holds of this bucket.
    pub fn add_segment(&mut self, part: SegmentPart) {
        let (id, rows) = (part.file.id(), part.rows);
        for (source, blocks) in self.take_in(part) {
            self.series
                .change_or_insert(source, |series| series.adopt(blocks));
        }
        if let Some(held) = self.segments.get_mut(&id) {
            held.live_rows = rows;
        }
    }

    /// Adds the rows of one log record, as `RowsWriter::encode` wrote them; the first has `first_sequence`.
    /// Answers how many.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where the bytes do not read; rows of tables before the fault are in then, so the
    /// caller must not go on with this store.
    pub fn apply(&mut self, rows: &[u8], first_sequence: u64) -> Result<u32, EngineError> {
        let mut applied = 0;
        let mut reader = RowsReader::new(rows)?;
        while let Some(table) = reader.next()? {
            let count = table.timestamps_ns.len() as u32;
            let seals = &mut self.seals;
            let append = |series: &mut Series| series.append(table.source, &table, first_sequence, seals);
            let growth = self.series.change_or_insert(table.source, append);
            let growth = growth.ok_or(EngineError::Corrupt {
                what: "rows of a log record",
                offset: 0,
                expected: "fields of the types that they have had",
            })?;
            self.unsaved.insert(table.source);
            self.unsaved_rows += u64::from(count);
            self.unsaved_bytes = self.unsaved_bytes.saturating_add_signed(growth);
            applied += count;
        }
        self.unsaved_encoded_bytes += rows.len() as u64;
        Ok(applied)
    }

    /// Rows that fill blocks by now, to be sealed on any thread and given back to [`Store::finish_seal`]. They stay
    /// readable as they are meanwhile.
    pub fn take_seals(&mut self) -> Vec<Seal> {
        std::mem::take(&mut self.seals)
    }

    /// Takes back rows that were taken and not sealed, for the next [`Store::take_seals`].
    pub fn give_back(&mut self, seal: Seal) {
        self.seals.push(seal);
    }

    /// Puts sealed blocks in the place of their rows. What was deleted or written by a checkpoint since is left out.
    pub fn finish_seal(&mut self, sealed: Sealed) {
        let (rows, blocks) = sealed.memory_bytes();
        let source = sealed.source;
        if let Some(true) = self.series.change(source, |series| series.finish_seal(sealed)) {
            self.unsaved_bytes = (self.unsaved_bytes + blocks as u64).saturating_sub(rows as u64);
        }
    }

    /// Rows that no segment holds yet, and about how many bytes of memory they take.
    pub fn unsaved(&self) -> (u64, u64) {
        (self.unsaved_rows, self.unsaved_bytes)
    }

    /// Memory of the table of series, in bytes: what it has room for.
    #[cfg(test)]
    pub(crate) fn table_bytes(&self) -> usize {
        self.series.memory_bytes()
    }

    #[cfg(test)]
    pub(crate) fn all_series(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().map(|(_, series)| series)
    }

    /// Bytes of the log's records that hold the rows that no segment holds yet; those of removed sources count until
    /// the next checkpoint.
    pub fn unsaved_encoded_bytes(&self) -> u64 {
        self.unsaved_encoded_bytes
    }

    /// Forgets a source; answers its points.
    pub fn remove_source(&mut self, source: u32) -> u64 {
        self.unsaved.remove(&source);
        if self.unsaved.is_empty() {
            (self.unsaved_rows, self.unsaved_encoded_bytes) = (0, 0);
        }
        let Some(series) = self.series.remove(source) else {
            return 0;
        };
        self.unsaved_bytes = self.unsaved_bytes.saturating_sub(series.unsaved_bytes() as u64);
        self.release(series.blocks().iter().filter_map(BlockEntry::rows_of_segment));
        series.stats().points
    }

    /// Forgets all sources; answers their points.
    pub fn remove_all(&mut self) -> u64 {
        let sources: Vec<u32> = self.series.iter().map(|(source, _)| source).collect();
        sources.into_iter().map(|source| self.remove_source(source)).sum()
    }

    /// Forgets all sources but those that `known` knows: after a restart, what was deleted before it.
    pub fn retain_sources(&mut self, known: impl Fn(u32) -> bool) {
        let gone: Vec<u32> = self
            .series
            .iter()
            .map(|(source, _)| source)
            .filter(|source| !known(*source))
            .collect();
        for source in gone {
            self.remove_source(source);
        }
    }

    /// Notes that blocks with so many rows are no longer used of these segments.
    fn release(&mut self, rows: impl Iterator<Item = (u64, u32)>) {
        for (id, rows) in rows {
            if let Some(held) = self.segments.get_mut(&id) {
                held.live_rows -= u64::from(rows);
            }
        }
    }

    /// Lets go of all blocks that lie wholly before the cutoff.
    pub fn expire(&mut self, cutoff_ns: i64) {
        let expired = self.series.expire(cutoff_ns);
        self.release(expired.into_iter());
    }

    /// The segments in use, and how many of their rows are. Those that no series uses any more are forgotten here.
    pub fn live_segments(&mut self) -> Vec<(u64, u64)> {
        self.segments.retain(|_, held| held.live_rows > 0);
        let live = self.segments.iter();
        live.map(|(id, held)| (*id, held.live_rows)).collect()
    }

    /// Bytes that the bucket's blocks take in the segments in use, the dead ones included.
    pub fn segment_bytes(&self) -> u64 {
        self.segments.values().map(|held| held.bytes).sum()
    }

    /// Points and bounds of a source, expired points not counted.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] where the block that the cutoff cuts through does not read.
    pub fn stats(&self, source: u32, cutoff_ns: i64) -> Result<SeriesStats, EngineError> {
        match self.view().source(source) {
            None => Ok(SeriesStats::default()),
            Some(series) => series.stats(cutoff_ns),
        }
    }

    /// All that the store holds now, for readers on any thread. Costs a few counters, whatever that is.
    pub fn view(&self) -> View {
        View::of(&self.series, &self.cache)
    }

    /// What the sources hold now, for readers on any thread. Sources that never had a point are left out. Costs as much as
    /// there are sources: an owner that must not wait hands out a [`Store::view`].
    pub fn snapshot(&self, sources: impl IntoIterator<Item = u32>) -> Snapshot {
        self.view().select(sources)
    }

    /// Begins a checkpoint: sets aside all rows that no segment holds, which stay readable. `None` when there are
    /// none. The caller writes the checkpoint's segment, then calls [`Store::finish_checkpoint`]; where writing
    /// fails it just begins again later.
    pub fn begin_checkpoint(&mut self) -> Option<Checkpoint> {
        // The checkpoint writes these rows: blocks of them would have them twice.
        self.seals.clear();
        let mut parts = Vec::with_capacity(self.unsaved.len());
        for source in &self.unsaved {
            let set_aside = |series: &mut Series| {
                let last_ns = series.blocks().iter().map(|entry| entry.last_ns);
                let sealed_until_ns = last_ns.max().unwrap_or(i64::MIN);
                let (runs, blocks) = series.freeze();
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

    /// Replaces what the checkpoint set aside by the blocks of its segment, now durable; `part` is what that holds of
    /// this bucket.
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
        // Saturating: what was counted may have been deleted since, and taken off then.
        self.unsaved_rows = self.unsaved_rows.saturating_sub(done.counted.0);
        self.unsaved_encoded_bytes = self.unsaved_encoded_bytes.saturating_sub(done.counted.1);
        self.recount();
        self.expire(cutoff_ns);
    }

    /// The blocks by source, noted as held and not yet used.
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

    /// Counts the live rows of all segments and the memory of unsaved rows anew: sources may have gone while a segment
    /// was written.
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

    /// The blocks in use that lie in the segments chosen for a merge; `None` where there are none.
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

    /// Replaces the merged blocks by those of the new segment, now durable; `part` is what that holds of this bucket.
    /// What has been deleted or has expired since the merge began stays gone.
    pub fn finish_merge(&mut self, done: Merge, part: Option<SegmentPart>, cutoff_ns: i64) {
        let mut new = part.map(|part| self.take_in(part)).unwrap_or_default();
        for (source, old) in done.sources {
            let old = old.iter().map(BlockEntry::id).collect();
            let blocks = new.remove(&source).unwrap_or_default();
            self.series.change(source, |series| {
                series.replace(&[], &old, blocks);
                series.recount();
            });
        }
        self.recount();
        self.expire(cutoff_ns);
    }
}
