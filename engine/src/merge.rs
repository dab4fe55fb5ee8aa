//! Merges segments (compaction): small and overlapping blocks of one source become full ones in order of time; full
//! blocks without overlap are copied unchanged. Expired rows are dropped.

use std::io;

use thiserror::Error;

use crate::EngineError;
use crate::block::{BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES, BlockReader};
use crate::columns::Columns;
use crate::entry::BlockEntry;
use crate::expired::{ExpiredRows, Reach, live_rows, reach};
use crate::segment::SegmentWriter;
use crate::series::cut_blocks;

/// Maximum number of rows read at a time: some megabytes.
const REWRITE_ROWS: usize = 16 * BLOCK_ROWS_MAX;
/// Maximum size of the distinct texts in them, in bytes.
const REWRITE_TEXT_BYTES: usize = 8 * BLOCK_TEXT_BYTES;
/// Blocks with fewer rows are combined with their neighbours,
const SMALL_BLOCK_ROWS: u32 = BLOCK_ROWS_MAX as u32 / 2;
/// unless they have at least this many bytes: blocks with large texts are full with few rows.
const SMALL_BLOCK_BYTES: usize = BLOCK_TEXT_BYTES / 16;

/// A bucket's part of a segment merge: its live blocks in these segments, by source.
pub struct Merge {
    pub(crate) sources: Vec<(u32, Vec<BlockEntry>)>,
}

/// A merge failed; the store remains unchanged.
#[derive(Debug, Error)]
pub enum MergeError {
    /// A block cannot be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The new segment cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Merge {
    /// Writes the merged blocks to the bucket that the segment has begun. Rows before `cutoff_ns` and `expired` rows
    /// are dropped.
    ///
    /// # Errors
    /// A block that cannot be read, or an I/O error of the file.
    pub fn write(
        &self,
        segment: &mut SegmentWriter<'_>,
        cutoff_ns: i64,
        expired: &[ExpiredRows],
    ) -> Result<(), MergeError> {
        for (source, blocks) in &self.sources {
            let mut live = Vec::with_capacity(blocks.len());
            for entry in blocks.iter().filter(|entry| entry.last_ns >= cutoff_ns) {
                match reach(expired, entry, || entry.block_uncached())? {
                    Reach::None => live.push((entry, false)),
                    Reach::Some => live.push((entry, true)),
                    Reach::All => {}
                }
            }
            let mut blocks = live;
            blocks.sort_by_key(|(entry, _)| entry.first_ns);
            let mut rewrite = Rewrite {
                source: *source,
                cutoff_ns,
                expired,
                blocks: Vec::new(),
            };
            let mut index = 0;
            while index < blocks.len() {
                let overlapping = overlapping(&blocks[index..]);
                let group = &blocks[index..index + overlapping];
                index += overlapping;
                let (first, cut) = group[0];
                let alone = overlapping == 1 && first.first_ns >= cutoff_ns && !cut;
                if alone && !is_small(first)? {
                    rewrite.finish(segment)?;
                    let block = first.block_uncached()?;
                    if !block.is_here() {
                        // What is copied may come from a cache, and takes the place of the original.
                        BlockReader::new(&block)?.compare_checksums()?;
                    }
                    segment.push(&block)?;
                } else {
                    rewrite.blocks.extend(group.iter().map(|(entry, _)| *entry));
                }
            }
            rewrite.finish(segment)?;
        }
        Ok(())
    }
}

fn is_small(entry: &BlockEntry) -> Result<bool, EngineError> {
    Ok(entry.rows < SMALL_BLOCK_ROWS && entry.block_uncached()?.place().len() < SMALL_BLOCK_BYTES)
}

/// Number of blocks, from the first on, that overlap in time, directly or through each other.
fn overlapping(blocks: &[(&BlockEntry, bool)]) -> usize {
    let mut last_ns = blocks[0].0.last_ns;
    let mut count = 1;
    // Blocks that only share their boundary timestamp do not count as overlapping: readers order such rows. Otherwise
    // every block of a source that sends several rows per timestamp would overlap the next one.
    while let Some((next, _)) = blocks.get(count).filter(|(next, _)| next.first_ns < last_ns) {
        last_ns = last_ns.max(next.last_ns);
        count += 1;
    }
    count
}

/// Neighbouring blocks to be combined into full ones.
struct Rewrite<'a> {
    source: u32,
    cutoff_ns: i64,
    expired: &'a [ExpiredRows],
    /// Sorted by first timestamp.
    blocks: Vec<&'a BlockEntry>,
}

impl Rewrite<'_> {
    /// Reads some of the blocks at a time and writes full blocks as soon as their rows are in final order. If more
    /// blocks overlap than are read at a time, the written blocks overlap too, but fewer than before, and memory stays
    /// bounded.
    fn finish(&mut self, segment: &mut SegmentWriter<'_>) -> Result<(), MergeError> {
        let mut blocks = std::mem::take(&mut self.blocks).into_iter().peekable();
        let mut pending = Columns::default();
        while blocks.peek().is_some() {
            let mut runs = vec![std::mem::take(&mut pending)];
            let (mut rows, mut text_bytes) = (runs[0].rows(), runs[0].text_bytes());
            while rows < REWRITE_ROWS
                && text_bytes < REWRITE_TEXT_BYTES
                && let Some(entry) = blocks.next()
            {
                let run = BlockReader::new(&entry.block_uncached()?)?.columns()?;
                let run = live_rows(&run, self.expired).unwrap_or(run);
                rows += run.rows();
                text_bytes += run.text_bytes();
                runs.push(run);
            }
            let merged = Columns::merged(&runs.iter().collect::<Vec<_>>());
            let expired = merged
                .timestamps_ns
                .partition_point(|timestamp| *timestamp < self.cutoff_ns);
            // Rows before the start of the next block are in final order. If they are few, the remaining rows are
            // written as well: otherwise they would only accumulate.
            let settled = match blocks.peek() {
                Some(next) => merged
                    .timestamps_ns
                    .partition_point(|t| *t < next.first_ns)
                    .max(expired),
                None => merged.rows(),
            };
            let settled = if settled - expired < merged.rows() / 2 {
                merged.rows()
            } else {
                settled
            };
            let cut = match blocks.peek() {
                // Rows that do not fill a block wait for the next rows.
                Some(_) => merged.full_until(expired, settled),
                None => settled,
            };
            let full = cut_blocks(self.source, &merged, expired..cut);
            full.iter().try_for_each(|block| segment.push(block))?;
            pending = merged.slice(cut..merged.rows());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::choose::MERGE_SEGMENTS_MIN;
    use crate::rows::RowsWriter;
    use crate::saved::{begin_merge, checkpoint, part, write_merge};
    use crate::{SegmentFile, Store};

    const ROWS: usize = 5_000;

    /// Rows of a source, one nanosecond apart.
    fn apply(store: &mut Store, source: u32, first_ns: usize, first_sequence: usize) {
        let mut rows = RowsWriter::new();
        for row in 0..ROWS {
            rows.begin(source);
            rows.number(0, row as f64, 0);
            rows.commit((first_ns + row) as i64);
        }
        let mut encoded = Vec::new();
        rows.encode(&mut encoded);
        store.apply(&encoded, first_sequence as u64, &[]).unwrap();
    }

    /// Merges four segments of one block each, where every block begins `step` rows after the previous one; returns the
    /// row counts of the merged blocks.
    fn merged(step: usize) -> Vec<u32> {
        let mut store = Store::new();
        let mut files = BTreeMap::new();
        for segment in 0..MERGE_SEGMENTS_MIN {
            assert!(begin_merge(&mut store, &files).is_none(), "too few");
            apply(&mut store, 0, segment * step, segment * ROWS);
            let id = segment as u64 + 1;
            files.insert(id, checkpoint(&mut store, id));
        }
        let merge = begin_merge(&mut store, &files).unwrap();
        let blocks = part(9, &write_merge(&merge)).verify().unwrap();
        assert!(blocks.iter().all(|block| block.fault.is_none()), "{blocks:?}");
        blocks.iter().map(|block| block.rows).collect()
    }

    /// Regression: blocks that shared a timestamp counted as overlapping, so a source that sends many rows per
    /// timestamp was rewritten completely at every merge.
    #[test]
    fn adjacent_blocks_are_copied_unchanged() {
        let rows = ROWS as u32;
        assert_eq!(merged(ROWS), [rows; 4], "apart");
        assert_eq!(merged(ROWS - 1), [rows; 4], "touching");
        assert_eq!(merged(ROWS / 2)[0], BLOCK_ROWS_MAX as u32, "overlapping");
    }

    /// Regression: a segment was kept as long as one block of it was live, even a segment of a gigabyte.
    #[test]
    fn a_mostly_dead_segment_is_rewritten() {
        let mut store = Store::new();
        (0..4).for_each(|source| apply(&mut store, source, 0, source as usize * ROWS));
        let mut files = BTreeMap::from([(1, checkpoint(&mut store, 1))]);
        let before = store.segment_bytes();
        for source in [0, 1] {
            assert!(begin_merge(&mut store, &files).is_none(), "half of it is in use");
            store.remove_source(source);
        }
        assert!(begin_merge(&mut store, &files).is_none(), "half of it is in use");
        store.remove_source(2);
        let merge = begin_merge(&mut store, &files).unwrap();
        files.insert(2, write_merge(&merge));
        store.finish_merge(merge, Some(part(2, &files[&2])), i64::MIN);
        assert_eq!(store.live_segments(), [(2, ROWS as u64)]);
        assert!(store.segment_bytes() * 3 < before);
        assert_eq!(store.stats(3, i64::MIN).unwrap().points, ROWS as u64);
        assert!(begin_merge(&mut store, &files).is_none(), "once");
    }

    /// The rows left by a merge of two blocks, whose times and sequences start at 0 and at [`ROWS`].
    fn left_by(expired: &[ExpiredRows]) -> Vec<(i64, u64)> {
        let mut store = Store::new();
        apply(&mut store, 0, 0, 0);
        checkpoint(&mut store, 1);
        apply(&mut store, 0, ROWS, ROWS);
        checkpoint(&mut store, 2);
        let merge = store.begin_merge(&[1, 2]).unwrap();
        let write = |segment: &mut SegmentWriter<'_>| merge.write(segment, i64::MIN, expired);
        let bytes = SegmentWriter::of_bucket(5, write).unwrap();
        let file = SegmentFile::open(3, Arc::new(bytes)).unwrap();
        let Some(part) = file.part(5).unwrap() else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        for (_, entry) in &part.blocks {
            let block = entry.block_uncached().unwrap();
            let columns = BlockReader::new(&block).unwrap().columns().unwrap();
            rows.extend((0..columns.rows()).map(|row| columns.key(row)));
        }
        rows
    }

    #[test]
    fn only_expired_rows_are_dropped() {
        let all = |rows: std::ops::Range<usize>| -> Vec<(i64, u64)> {
            rows.map(|row| (row as i64, row as u64)).collect()
        };
        let gone = |before_ns: usize, before_sequence: usize| ExpiredRows {
            before_ns: before_ns as i64,
            before_sequence: before_sequence as u64,
        };
        assert_eq!(left_by(&[]), all(0..2 * ROWS));
        assert_eq!(left_by(&[gone(10, ROWS)]), all(10..2 * ROWS), "some of a block");
        assert_eq!(
            left_by(&[gone(ROWS, 10)]),
            all(10..2 * ROWS),
            "those that came first"
        );
        assert_eq!(left_by(&[gone(ROWS, ROWS)]), all(ROWS..2 * ROWS), "a whole block");
        assert_eq!(
            left_by(&[gone(ROWS + 7, 2 * ROWS)]),
            all(ROWS + 7..2 * ROWS),
            "a block and some"
        );
        assert_eq!(
            left_by(&[gone(ROWS, 5), gone(3, ROWS)]),
            all(5..2 * ROWS),
            "either"
        );
        assert_eq!(left_by(&[gone(2 * ROWS, 2 * ROWS)]), [], "all");
    }
}
