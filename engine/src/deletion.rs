//! Deletes points that a filter selects, from blocks in segments. A block whose rows are all selected becomes dead; one
//! with some of them is written anew without them. Nothing changes in place: the caller writes the new blocks to a
//! segment, stores durably which blocks are dead, and then replaces them in the store, as after a merge.
//!
//! A deletion that selects by time and series alone takes the ends of these series along. One that looks at metadata or
//! values leaves ends, which have neither.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringBitmap;

use crate::block::{BlockReader, encode_block};
use crate::cache::Cache;
use crate::columns::Columns;
use crate::ends::{ENDED_SERIES, source_of_ends};
use crate::entry::BlockEntry;
use crate::expired::{ExpiredRows, is_gone, is_young};
use crate::members::SeriesRef;
use crate::merge::{Merge, MergeError};
use crate::query::{Budget, Matching, MetadataFilter, Run, ValueFilter, check_stop, matching};
use crate::rows::Scalar;
use crate::segment::{DeadRanges, SegmentWriter};
use crate::snapshot::{SeriesSnapshot, View};

/// What a row must be to be selected: all filters must select it.
#[derive(Clone, Copy)]
pub struct RowFilters<'a> {
    /// By its metadata.
    pub metadata: Option<MetadataFilter<'a>>,
    /// By its values.
    pub values: &'a [ValueFilter<'a>],
}

impl RowFilters<'_> {
    /// Whether every row is selected.
    fn select_all(&self) -> bool {
        self.metadata.is_none() && self.values.is_empty()
    }
}

/// Selects points of a bucket.
pub trait PointFilter: Send + Sync {
    /// First and last timestamp, both inclusive.
    fn range_ns(&self) -> (i64, i64);

    /// Ordinals of the series in this view; `None` for all.
    ///
    /// # Errors
    /// They cannot be looked up.
    fn series(&self, view: &View) -> Result<Option<Vec<u32>>, MergeError>;

    /// Calls `read` once with the filters of a series' rows, or never if none of its rows is selected.
    fn of_series(&self, series: SeriesRef, read: &mut dyn FnMut(&RowFilters<'_>));
}

/// The blocks that may have selected rows, by series.
pub struct Deletion {
    /// Those of ends are found by their ordinals.
    series: Vec<(SeriesRef, Vec<BlockEntry>)>,
    /// The series whose ends are deleted; `None` for all.
    named: Option<RoaringBitmap>,
    cache: Cache,
}

/// A deletion whose new blocks are written, for [`crate::Store::finish_merge`].
pub struct Deleted {
    /// Number of points that are deleted. Expired ones do not count.
    pub points: u64,
    /// The blocks that are dead from now on, by segment.
    pub dead: BTreeMap<u64, DeadRanges>,
    /// The blocks to be replaced by those of the new segment.
    pub merge: Merge,
}

impl Deletion {
    /// Collects the blocks. Points that are in no segment are not selected: a checkpoint comes first.
    ///
    /// # Errors
    /// Those of the filter.
    pub fn of(view: &View, filter: &dyn PointFilter) -> Result<Self, MergeError> {
        let range_ns = filter.range_ns();
        let filed = |series: SeriesSnapshot| {
            let is_filed = |entry: &&BlockEntry| entry.segment().is_some() && entry.overlaps(range_ns);
            let blocks: Vec<BlockEntry> = series.blocks().iter().filter(is_filed).cloned().collect();
            let SeriesSnapshot { ordinal, source, .. } = series;
            (!blocks.is_empty()).then_some((SeriesRef { ordinal, source }, blocks))
        };
        let named = filter.series(view)?;
        let mut series: Vec<_> = match &named {
            None => {
                let points = view.reaching(range_ns);
                points
                    .chain(view.ends_reaching(range_ns))
                    .filter_map(filed)
                    .collect()
            }
            Some(named) => {
                let mut sources = BTreeSet::new();
                let points = named.iter().filter_map(|ordinal| view.series(*ordinal));
                let points = points.inspect(|series| {
                    sources.insert(series.source);
                });
                let mut found: Vec<_> = points.filter_map(filed).collect();
                let ends = sources.into_iter().filter_map(|source| view.ends(source));
                found.extend(ends.filter_map(filed));
                found
            }
        };
        series.sort_unstable_by_key(|(series, _)| series.ordinal);
        Ok(Deletion {
            series,
            named: named.map(RoaringBitmap::from_iter),
            cache: view.cache().clone(),
        })
    }

    /// Writes the rest of partly deleted blocks to the bucket that the segment has begun. `expired` rows are not counted.
    ///
    /// # Errors
    /// A block that cannot be read, an I/O error of the file, or [`crate::EngineError::Stopped`] if `stop`, which is called before
    /// each block, returns true.
    pub fn write(
        self,
        filter: &dyn PointFilter,
        expired: &[ExpiredRows],
        segment: &mut SegmentWriter<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Deleted, MergeError> {
        let mut deleted = Deleted {
            points: 0,
            dead: BTreeMap::new(),
            merge: Merge { sources: Vec::new() },
        };
        let range_ns = filter.range_ns();
        let named = self.named;
        let has_ended = |value: Scalar<'_>| match (value, &named) {
            (Scalar::Number(ordinal), Some(named)) => named.contains(ordinal as u32),
            _ => true,
        };
        let ended = [ValueFilter {
            field: ENDED_SERIES,
            passes: &has_ended,
            bounds: (f64::NEG_INFINITY, f64::INFINITY),
        }];
        let of_ends = RowFilters {
            metadata: None,
            values: if named.is_some() { &ended } else { &[] },
        };
        for (series, blocks) in self.series {
            let ordinal = series.ordinal;
            let is_ends = source_of_ends(ordinal).is_some();
            let points = deleted.points;
            let mut written = Ok::<Vec<BlockEntry>, MergeError>(Vec::new());
            filter.of_series(series, &mut |filters| {
                let filters = match is_ends {
                    false => filters,
                    true if filters.select_all() => &of_ends,
                    true => return,
                };
                let replaced = blocks.iter().map(|entry| {
                    check_stop(stop)?;
                    let (run, budget) = (Run::Block(entry), Budget::unlimited());
                    let selected = matching(run, range_ns, filters, &self.cache, stop, &budget)?;
                    let is_replaced = deleted.delete(ordinal, entry, selected, expired, segment)?;
                    Ok(is_replaced.then(|| entry.clone()))
                });
                written = replaced.filter_map(Result::transpose).collect();
            });
            let replaced = written?;
            if is_ends {
                deleted.points = points;
            }
            if !replaced.is_empty() {
                deleted.merge.sources.push((ordinal, replaced));
            }
        }
        Ok(deleted)
    }
}

impl Deleted {
    /// Returns whether the block is dead now.
    fn delete(
        &mut self,
        source: u32,
        entry: &BlockEntry,
        selected: Matching,
        expired: &[ExpiredRows],
        segment: &mut SegmentWriter<'_>,
    ) -> Result<bool, MergeError> {
        match selected {
            Matching::None => return Ok(false),
            Matching::All if is_young(expired, entry.first_ns) => self.points += u64::from(entry.rows),
            Matching::All => {
                let reader = BlockReader::new(&entry.block_uncached()?)?;
                let (timestamps_ns, sequences) = (reader.timestamps_ns()?, reader.sequences()?);
                let keys = timestamps_ns.iter().zip(&sequences);
                self.count(
                    keys.map(|(timestamp_ns, sequence)| (*timestamp_ns, *sequence)),
                    expired,
                );
            }
            Matching::Some(selected) => {
                let rows = BlockReader::new(&entry.block_uncached()?)?.columns()?;
                let (gone, left): (Vec<usize>, Vec<usize>) = (0..rows.rows()).partition(|row| selected[*row]);
                self.count(gone.into_iter().map(|row| rows.key(row)), expired);
                let picks: Vec<(u32, u32)> = left.into_iter().map(|row| (0, row as u32)).collect();
                segment.push(&encode_block(source, &Columns::gather(&[&rows], &picks)))?;
            }
        }
        if let Some((id, extent)) = entry.extent()? {
            self.dead.entry(id).or_default().add(extent);
        }
        Ok(true)
    }

    fn count(&mut self, keys: impl Iterator<Item = (i64, u64)>, expired: &[ExpiredRows]) {
        let live = keys.filter(|(timestamp_ns, sequence)| !is_gone(expired, *timestamp_ns, *sequence));
        self.points += live.count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::query::for_each_end;
    use crate::rows::RowsWriter;
    use crate::saved::{BUCKET, checkpoint};
    use crate::{SegmentFile, SharedBytes, Store};

    const SOURCES: u32 = 3;
    /// More than a block, so that some blocks are dead as a whole.
    const ROWS: i64 = 9_000;

    /// Selects rows of one source or of all by time, and by a field that is the row's number.
    #[derive(Clone, Copy, Debug)]
    struct Chosen {
        source: Option<u32>,
        range_ns: (i64, i64),
        divisor: Option<i64>,
    }

    impl Chosen {
        fn selects(&self, source: u32, timestamp_ns: i64, number: i64) -> bool {
            let (start, end) = self.range_ns;
            self.source.is_none_or(|chosen| chosen == source)
                && (start..=end).contains(&timestamp_ns)
                && self.divisor.is_none_or(|divisor| number % divisor == 0)
        }
    }

    impl PointFilter for Chosen {
        fn range_ns(&self) -> (i64, i64) {
            self.range_ns
        }

        fn series(&self, _: &View) -> Result<Option<Vec<u32>>, MergeError> {
            Ok(self.source.map(|source| vec![source]))
        }

        fn of_series(&self, _: SeriesRef, read: &mut dyn FnMut(&RowFilters<'_>)) {
            let divisor = self.divisor.unwrap_or(1);
            let passes =
                |value: Scalar<'_>| matches!(value, Scalar::Number(number) if number as i64 % divisor == 0);
            let filter = ValueFilter {
                field: 0,
                passes: &passes,
                bounds: (f64::NEG_INFINITY, f64::INFINITY),
            };
            let values: &[ValueFilter<'_>] = match self.divisor {
                Some(_) => &[filter],
                None => &[],
            };
            let metadata = None;
            read(&RowFilters { metadata, values });
        }
    }

    /// Three segments of three sources. The second overlaps the first in time.
    fn store() -> (Store, BTreeMap<u64, SharedBytes>) {
        let (mut store, mut files) = (Store::new(), BTreeMap::new());
        for segment in 1..=3 {
            let mut rows = RowsWriter::new();
            for row in 0..ROWS {
                for source in 0..SOURCES {
                    rows.begin(source);
                    rows.number(0, row as f64, 0);
                    rows.commit(segment * ROWS / 2 + row);
                }
            }
            let mut encoded = Vec::new();
            rows.encode(&mut encoded);
            let first_sequence = segment * ROWS * i64::from(SOURCES);
            store.apply(&encoded, first_sequence as u64, &[]).unwrap();
            files.insert(segment as u64, checkpoint(&mut store, segment as u64));
        }
        (store, files)
    }

    /// Source, time and number of each row.
    fn rows_of(store: &Store) -> Vec<(u32, i64, i64)> {
        let mut found = Vec::new();
        for series in store.view().reaching((i64::MIN, i64::MAX)) {
            for entry in series.blocks() {
                let block = entry.block_uncached().unwrap();
                let columns = BlockReader::new(&block).unwrap().columns().unwrap();
                for row in 0..columns.rows() {
                    let value = columns.field(0).and_then(|column| column.value(row));
                    let Some(Scalar::Number(number)) = value else {
                        panic!("a number");
                    };
                    found.push((series.source, columns.timestamps_ns[row], number as i64));
                }
            }
        }
        found.sort_unstable();
        found
    }

    fn delete(store: &mut Store, id: u64, chosen: &Chosen) -> (u64, BTreeMap<u64, DeadRanges>, SharedBytes) {
        let deletion = Deletion::of(&store.view(), chosen).unwrap();
        let mut deleted = None;
        let bytes = SegmentWriter::of_bucket(BUCKET, |segment| {
            deleted = Some(deletion.write(chosen, &[], segment, &|| false)?);
            Ok::<_, MergeError>(())
        });
        let (home, deleted): (SharedBytes, Deleted) = (Arc::new(bytes.unwrap()), deleted.unwrap());
        let part = SegmentFile::open(id, Arc::clone(&home)).unwrap().part(BUCKET);
        store.finish_merge(deleted.merge, part.unwrap(), i64::MIN);
        (deleted.points, deleted.dead, home)
    }

    #[test]
    fn what_is_left_is_the_same_in_the_store_and_after_opening_the_files_again() {
        let all = (i64::MIN, i64::MAX);
        let chosen = |source, range_ns, divisor| Chosen {
            source,
            range_ns,
            divisor,
        };
        for chosen in [
            chosen(None, all, None),
            chosen(Some(1), all, None),
            chosen(None, (2 * ROWS, 2 * ROWS + 9), None),
            chosen(Some(2), (ROWS, 2 * ROWS), None),
            chosen(None, all, Some(7)),
            chosen(Some(0), (0, 2 * ROWS), Some(2)),
            chosen(None, (-5, -1), None),
            chosen(Some(9), all, None),
        ] {
            let (mut store, mut files) = store();
            let before = rows_of(&store);
            let (points, dead, home) = delete(&mut store, 9, &chosen);
            let is_left = |row: &(u32, i64, i64)| !chosen.selects(row.0, row.1, row.2);
            let left: Vec<_> = before.iter().copied().filter(is_left).collect();
            assert_eq!(points as usize, before.len() - left.len(), "{chosen:?}");
            assert!(rows_of(&store) == left, "{chosen:?}");
            files.insert(9, home);
            let mut again = Store::new();
            for (id, home) in files {
                let dead = dead.get(&id).cloned().unwrap_or_default();
                let file = SegmentFile::open_without(id, home, dead).unwrap();
                if let Some(part) = file.part(BUCKET).unwrap() {
                    again.add_segment(part);
                }
            }
            assert!(rows_of(&again) == left, "{chosen:?}");
            for source in 0..SOURCES {
                let stats = |store: &Store| store.stats(source, i64::MIN).unwrap();
                assert_eq!(stats(&store), stats(&again), "{chosen:?}");
            }
            let live =
                |store: &mut Store| -> BTreeMap<u64, u64> { store.live_segments().into_iter().collect() };
            assert_eq!(live(&mut store), live(&mut again), "{chosen:?}");
        }
    }

    #[test]
    fn whole_blocks_are_deleted_without_a_block_being_read_or_written() {
        let (mut store, _) = store();
        let whole = Chosen {
            source: None,
            range_ns: (i64::MIN, i64::MAX),
            divisor: None,
        };
        let (points, dead, home) = delete(&mut store, 9, &whole);
        assert_eq!(points as i64, 3 * i64::from(SOURCES) * ROWS);
        let ranges: Vec<usize> = dead.values().map(DeadRanges::len).collect();
        assert_eq!(ranges, [1, 1, 1], "one range for a whole file");
        let file = SegmentFile::open(9, home).unwrap();
        assert_eq!(file.rows(), 0);
    }

    #[test]
    fn expired_rows_are_deleted_but_not_counted() {
        let (store, _) = store();
        let chosen = Chosen {
            source: Some(0),
            range_ns: (i64::MIN, i64::MAX),
            divisor: Some(3),
        };
        let expired = ExpiredRows {
            before_ns: ROWS / 2 + 9,
            before_sequence: u64::MAX,
        };
        let mut written = Vec::new();
        let mut segment = SegmentWriter::new(&mut written).unwrap();
        segment.begin_bucket(BUCKET);
        let deletion = Deletion::of(&store.view(), &chosen).unwrap();
        let deleted = deletion
            .write(&chosen, &[expired], &mut segment, &|| false)
            .unwrap();
        // Rows 0, 3 and 6 of the first segment had expired.
        assert_eq!(deleted.points as i64, 3 * ROWS / 3 - 3);
    }

    #[test]
    fn ends_go_with_the_points_of_their_time_unless_values_are_looked_at() {
        let all = (i64::MIN, i64::MAX);
        let chosen = |source, range_ns, divisor| Chosen {
            source,
            range_ns,
            divisor,
        };
        for (chosen, left) in [
            (
                chosen(None, (2 * ROWS, 3 * ROWS), None),
                vec![(0, ROWS), (1, ROWS)],
            ),
            (chosen(None, all, None), vec![]),
            (chosen(Some(1), all, None), vec![(0, ROWS), (0, 2 * ROWS)]),
            (
                chosen(Some(0), all, Some(2)),
                vec![(0, ROWS), (0, 2 * ROWS), (1, ROWS), (1, 2 * ROWS)],
            ),
        ] {
            let (mut store, _) = store();
            let points = rows_of(&store).len();
            let mut rows = RowsWriter::new();
            for source in 0..2 {
                rows.end_series(source, source, ROWS);
                rows.end_series(source, source, 2 * ROWS);
            }
            let mut encoded = Vec::new();
            rows.encode(&mut encoded);
            store.apply(&encoded, 1 << 40, &[]).unwrap();
            checkpoint(&mut store, 4);
            let (deleted, _, _) = delete(&mut store, 9, &chosen);
            assert_eq!(deleted as usize, points - rows_of(&store).len(), "{chosen:?}");
            let view = store.view();
            let mut found = Vec::new();
            for source in 0..2 {
                let Some(ends) = view.ends(source) else { continue };
                let each = |(timestamp_ns, _), ordinal| found.push((ordinal, timestamp_ns));
                for_each_end(&ends, all, &Budget::unlimited(), &|| false, each).unwrap();
            }
            assert_eq!(found, left, "{chosen:?}");
        }
    }
}
