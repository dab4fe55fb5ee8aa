//! The cache is bounded and changes no answer, and a series without cached data takes little memory.

use std::sync::Arc;

use crate::calendar::Unit;
use crate::entry::BlockEntry;
use crate::query::{GroupQuery, HourCounts, ScanQuery, Selection, group, scan};
use crate::rows::RowsWriter;
use crate::saved::{checkpoint, part};
use crate::series::Series;
use crate::{Cache, SharedBytes, Store};

const SECOND_NS: i64 = 1_000_000_000;
const STEP_NS: i64 = 10 * SECOND_NS;
const ROWS_PER_BLOCK: i64 = 1_500;
const BLOCKS: i64 = 60;

/// Segments of one block each, several hours long, with a common field and another in every third row.
fn segments() -> Vec<SharedBytes> {
    let mut store = Store::new();
    let segment = |block: i64| {
        let mut writer = RowsWriter::new();
        for row in block * ROWS_PER_BLOCK..(block + 1) * ROWS_PER_BLOCK {
            writer.begin(0);
            if block % 2 == 0 || row % 2 == 0 {
                writer.number(0, (row % 977) as f64 / 10.0, 1);
            }
            if row % 3 == 0 {
                writer.number(1, row as f64, 0);
            }
            writer.boolean(2, row % 5 == 0);
            writer.commit(row * STEP_NS);
        }
        let mut rows = Vec::new();
        writer.encode(&mut rows);
        store
            .apply(&rows, 1 + (block * ROWS_PER_BLOCK) as u64, &[])
            .unwrap();
        checkpoint(&mut store, 1 + block as u64)
    };
    (0..BLOCKS).map(segment).collect()
}

/// Answers to queries over a range, as text.
fn run_queries(store: &Store, range_ns: (i64, i64)) -> String {
    let snapshot = [store.view().series(0).unwrap()];
    let series = &snapshot[0];
    let stop = || false;
    let mut text = String::new();
    for unit in [Unit::Minute, Unit::Hour, Unit::Day] {
        let query = GroupQuery {
            range_ns,
            step: unit.into(),
            fields: &[0, 1, 2, 9],
            metadata: None,
            stop: &stop,
            values: &[],
        };
        let groups = group(series, &query).unwrap();
        text += &format!("{:?}{:?}", groups.starts_ns, groups.aggregates);
    }
    let mut hours = HourCounts::new(range_ns);
    let rows = hours.add(series, &stop).unwrap();
    assert_eq!(
        rows,
        series.stats_within(range_ns, &stop, &mut Err).unwrap().points
    );
    text += &format!("{:?}", hours.hours().collect::<Vec<_>>());
    for fields in [None, Some(Arc::from([1]))] {
        let query = ScanQuery {
            range_ns,
            descending: false,
            after: None,
            skip: rows / 2,
            limit: 10,
            metadata: None,
            stop: &stop,
        };
        let page = scan(&[Selection::new(series, fields)], &query).unwrap();
        let key = |(run, row): &(u32, u32)| page.runs[*run as usize].columns.key(*row as usize);
        text += &format!("{:?}", page.rows.iter().map(key).collect::<Vec<_>>());
    }
    text
}

/// Regression: cached summaries and levels were never released.
#[test]
fn a_small_cache_changes_no_result_and_keeps_its_bound() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let segments = segments();
    let (small, large) = (Cache::new(16 << 10), Cache::new(16 << 20));
    let opened = |cache: &Cache| {
        let mut store = Store::with_cache(cache.clone());
        for (id, home) in (1..).zip(&segments) {
            store.add_segment(part(id, home));
        }
        store
    };
    let (little, much) = (opened(&small), opened(&large));
    assert_eq!(large.bytes(), 0, "opening decodes nothing to keep");
    let end_ns = BLOCKS * ROWS_PER_BLOCK * STEP_NS;
    for round in 0..20 {
        let range_ns = match round {
            0 => (0, end_ns),
            _ => {
                let (one, other) = (random.i64(0..end_ns), random.i64(0..end_ns));
                (one.min(other), one.max(other))
            }
        };
        assert_eq!(
            run_queries(&little, range_ns),
            run_queries(&much, range_ns),
            "{range_ns:?}"
        );
        assert!(small.bytes() <= small.bytes_max(), "{} bytes", small.bytes());
        assert!(small.bytes() > 0);
    }
    assert!(large.bytes() > 4 * small.bytes_max(), "{} bytes", large.bytes());
}

/// The bound holds for all stores and threads together at every moment.
#[test]
fn all_stores_share_one_bound() {
    let segments = segments();
    let cache = Cache::new(20 << 10);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut store = Store::with_cache(cache.clone());
                for (id, home) in (1..).zip(&segments) {
                    store.add_segment(part(id, home));
                }
                for block in 0..BLOCKS {
                    let start_ns = block * ROWS_PER_BLOCK * STEP_NS;
                    run_queries(&store, (start_ns, start_ns + 2 * ROWS_PER_BLOCK * STEP_NS));
                    assert!(cache.bytes() <= cache.bytes_max(), "{} bytes", cache.bytes());
                }
            });
        }
    });
}

#[test]
fn an_entry_for_a_block_is_small() {
    assert!(size_of::<BlockEntry>() <= 40, "{}", size_of::<BlockEntry>());
    assert!(size_of::<Series>() <= 72, "{}", size_of::<Series>());
}

/// Regression: each further segment in which a source had a block took 600 bytes.
#[test]
fn a_source_with_a_block_in_ten_segments_takes_less_than_a_kibibyte() {
    const SOURCES: u32 = 5_000;
    let cache = Cache::new(1 << 20);
    let mut store = Store::with_cache(cache.clone());
    let mut segments = Vec::new();
    for id in 1..=10 {
        let mut writer = RowsWriter::new();
        for source in 0..SOURCES {
            writer.begin(source);
            writer.number(0, f64::from(source), 0);
            writer.commit(id * STEP_NS);
        }
        let mut rows = Vec::new();
        writer.encode(&mut rows);
        store.apply(&rows, id as u64 * u64::from(SOURCES), &[]).unwrap();
        segments.push(checkpoint(&mut store, id as u64));
    }
    let bytes_a_source = |store: &Store| {
        assert!(store.all_series().all(|series| !series.has_head()));
        assert!(store.all_series().all(|series| series.blocks().len() == 10));
        let lists: usize = store.all_series().map(Series::list_bytes).sum();
        (store.table_bytes() + lists) / SOURCES as usize
    };
    let after_checkpoints = bytes_a_source(&store);
    let mut store = Store::with_cache(cache.clone());
    for (id, home) in (1..).zip(&segments) {
        store.add_segment(part(id, home));
    }
    let after_restart = bytes_a_source(&store);
    println!("{after_checkpoints} bytes a source, {after_restart} after a restart");
    assert!(after_checkpoints <= 1 << 10 && after_restart <= 1 << 10);
    assert_eq!(cache.bytes(), 0, "nothing was asked");
}
