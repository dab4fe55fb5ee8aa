//! Ends of series through the life of a store: what sees them, and when they go.

use std::collections::BTreeMap;

use crate::members::{SERIES_ORDINALS_FROM, SeriesRef};
use crate::query::{Budget, for_each_end};
use crate::rows::RowsWriter;
use crate::saved::{checkpoint, part, write_merge};
use crate::{SharedBytes, Store};

const SOURCE: u32 = 3;

fn series(number: u32) -> SeriesRef {
    SeriesRef {
        ordinal: SERIES_ORDINALS_FROM + number,
        source: SOURCE,
    }
}

/// A request: points of series at times, and ends.
fn apply(store: &mut Store, sequence: u64, points: &[(u32, i64)], ends: &[(u32, i64)]) -> u32 {
    let numbers = points.iter().chain(ends).map(|(number, _)| *number);
    let mut named: Vec<u32> = numbers.collect();
    named.sort_unstable();
    named.dedup();
    let table = |number: u32| {
        let place = named.iter().position(|named| *named == number).unwrap();
        SERIES_ORDINALS_FROM + place as u32
    };
    let mut rows = RowsWriter::new();
    // Ends first: the order within a request does not matter.
    for (number, timestamp_ns) in ends {
        rows.end_series(SOURCE, table(*number), *timestamp_ns);
    }
    for (number, timestamp_ns) in points {
        rows.begin(table(*number));
        rows.number(0, 1.0, 0);
        rows.commit(*timestamp_ns);
    }
    assert_eq!(rows.points() as usize, points.len());
    assert_eq!(rows.rows() as usize, points.len() + ends.len());
    let mut encoded = Vec::new();
    rows.encode(&mut encoded);
    let named: Vec<SeriesRef> = named.into_iter().map(series).collect();
    store.apply(&encoded, sequence, &named).unwrap()
}

fn ends(store: &Store) -> Vec<(i64, u32)> {
    let Some(ends) = store.view().ends(SOURCE) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let all = (i64::MIN, i64::MAX);
    for_each_end(
        &ends,
        all,
        &Budget::unlimited(),
        &|| false,
        |(time_ns, _), ordinal| {
            found.push((time_ns, ordinal - SERIES_ORDINALS_FROM));
        },
    )
    .unwrap();
    found
}

/// A store of these files, as after a start.
fn opened(files: &BTreeMap<u64, SharedBytes>) -> Store {
    let mut store = Store::new();
    for (id, home) in files {
        store.add_segment(part(*id, home));
    }
    assert_eq!(store.greatest_series(), Some(SERIES_ORDINALS_FROM + 1));
    (0..2).for_each(|number| store.assign(series(number)));
    assert!(!store.has_unassigned());
    assert_eq!(store.retain_sources(|source| source == SOURCE), 0);
    store
}

/// What readers of points see, whatever has ended.
fn assert_points(store: &Store, points: u64, last_ns: i64) {
    let stats = store.stats(SOURCE, i64::MIN).unwrap();
    assert_eq!(stats.points, points);
    assert_eq!(stats.bounds_ns.map(|(_, last_ns)| last_ns), Some(last_ns));
    let view = store.view();
    let all = (i64::MIN, i64::MAX);
    let counted = view.stats(i64::MIN, &|| false, &mut Err).unwrap();
    assert_eq!(counted, stats, "of the bucket");
    assert!(
        view.reaching(all)
            .all(|series| series.ordinal >= SERIES_ORDINALS_FROM),
        "ends are not found among the series"
    );
    assert_eq!(view.source(SOURCE).count(), 2);
    assert_eq!(store.series_count(), 2);
}

#[test]
fn ends_are_kept_like_points_and_counted_nowhere() {
    let (mut store, mut files) = (Store::new(), BTreeMap::new());
    assert_eq!(apply(&mut store, 1, &[(0, 10), (1, 10)], &[(0, 25)]), 2);
    assert_eq!(ends(&store), [(25, 0)], "of a series that is new in the request");
    assert_points(&store, 2, 10);
    files.insert(1, checkpoint(&mut store, 1));
    assert_eq!(apply(&mut store, 10, &[], &[(1, 20), (0, 5)]), 0, "no point");
    assert_eq!(ends(&store), [(5, 0), (20, 1), (25, 0)]);
    assert_points(&store, 2, 10);
    files.insert(2, checkpoint(&mut store, 2));
    assert!(store.begin_checkpoint().is_none(), "all are in segments");
    let again = opened(&files);
    assert_eq!(ends(&again), ends(&store));
    assert_points(&again, 2, 10);
    let merge = store.begin_merge(&[1, 2]).unwrap();
    let files = BTreeMap::from([(3, write_merge(&merge))]);
    store.finish_merge(merge, Some(part(3, &files[&3])), i64::MIN);
    assert_eq!(store.live_segments(), [(3, 5)]);
    for mut store in [store, opened(&files)] {
        assert_eq!(ends(&store), [(5, 0), (20, 1), (25, 0)]);
        assert_points(&store, 2, 10);
        store.expire(30);
        assert_eq!(ends(&store), [], "they expire with the blocks that have them");
        assert!(store.live_segments().is_empty());
    }
}

#[test]
fn blocks_have_no_repeats() {
    let (mut store, mut files) = (Store::new(), BTreeMap::new());
    let sent = [(0, 25), (1, 25), (0, 26), (0, 25), (1, 25)];
    apply(&mut store, 1, &[(0, 10), (1, 10)], &sent);
    assert_eq!(ends(&store).len(), 5);
    files.insert(1, checkpoint(&mut store, 1));
    assert_eq!(ends(&store), [(25, 0), (25, 1), (26, 0)]);
    apply(&mut store, 20, &[], &sent[..2]);
    files.insert(2, checkpoint(&mut store, 2));
    let merge = store.begin_merge(&[1, 2]).unwrap();
    let merged = write_merge(&merge);
    store.finish_merge(merge, Some(part(3, &merged)), i64::MIN);
    assert_eq!(ends(&store), [(25, 0), (25, 1), (26, 0)]);
    assert_eq!(store.live_segments(), [(3, 5)]);
}

#[test]
fn what_has_no_points_does_not_end() {
    let mut store = Store::new();
    apply(&mut store, 1, &[], &[(0, 5)]);
    assert!(store.view().ends(SOURCE).is_none());
    assert!(store.begin_checkpoint().is_none());
    let mut rows = RowsWriter::new();
    rows.end_series(SOURCE, SOURCE, 7);
    let mut encoded = Vec::new();
    rows.encode(&mut encoded);
    assert_eq!(rows.sources().collect::<Vec<_>>(), [SOURCE]);
    store.apply(&encoded, 2, &[]).unwrap();
    assert!(store.view().ends(SOURCE).is_none(), "nor a source without points");
}

#[test]
fn ends_go_with_their_source() {
    let (mut store, mut files) = (Store::new(), BTreeMap::new());
    apply(&mut store, 1, &[(0, 10), (1, 10)], &[(0, 25)]);
    files.insert(1, checkpoint(&mut store, 1));
    apply(&mut store, 9, &[], &[(1, 26)]);
    let mut again = opened(&files);
    assert_eq!(again.retain_sources(|_| false), 2, "ends are no points");
    assert_eq!(store.remove_source(SOURCE), 2, "ends are no points");
    for mut store in [store, again] {
        assert!(store.view().ends(SOURCE).is_none());
        assert!(store.live_segments().is_empty());
        assert!(store.begin_checkpoint().is_none());
        assert_eq!(store.unsaved(), (0, 0));
    }
}

#[test]
fn a_record_whose_ends_name_no_table_is_corrupt() {
    let mut rows = RowsWriter::new();
    rows.end_series(SOURCE, SERIES_ORDINALS_FROM + 1, 7);
    let mut encoded = Vec::new();
    rows.encode(&mut encoded);
    assert!(Store::new().apply(&encoded, 1, &[series(0)]).is_err());
}
