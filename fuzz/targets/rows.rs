//! The rows of a log record from arbitrary bytes: an error, or a store that can be read completely and that a
//! checkpoint writes to a segment with the same number of points.

use std::sync::Arc;

use engine::query::{Budget, ScanQuery, Selection, for_each_end, scan};
use engine::{SERIES_ORDINALS_FROM, SegmentFile, SegmentWriter, SeriesRef, Store, source_of_ends};

const BUCKET: u32 = 7;
/// The series that rows may name.
const SERIES: [SeriesRef; 2] = [
    SeriesRef {
        ordinal: SERIES_ORDINALS_FROM + 3,
        source: 5,
    },
    SeriesRef {
        ordinal: SERIES_ORDINALS_FROM + 40,
        source: 6,
    },
];

pub fn check(data: &[u8]) {
    let mut store = Store::new();
    let Ok(applied) = store.apply(data, 1, &SERIES) else {
        return;
    };
    let view = store.view();
    let stats = view.stats(i64::MIN, &|| false, &mut Err).unwrap();
    assert_eq!(stats.points, u64::from(applied));
    let snapshot: Vec<_> = view.reaching((i64::MIN, i64::MAX)).collect();
    let selections: Vec<Selection<'_>> = snapshot
        .iter()
        .map(|series| Selection::new(series, None))
        .collect();
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: data.len().is_multiple_of(2),
        after: None,
        skip: 0,
        limit: 1_000,
        metadata: None,
        stop: &|| false,
    };
    let page = scan(&selections, &query).unwrap();
    assert!(page.more || page.rows.len() == applied as usize);
    for ends in snapshot.iter().filter_map(|series| view.ends(series.source)) {
        let all = (i64::MIN, i64::MAX);
        let each = |_, ordinal| assert!(view.series(ordinal).is_some(), "only what exists ends");
        for_each_end(&ends, all, &Budget::unlimited(), &|| false, each).unwrap();
    }
    for seal in store.take_seals() {
        let sealed = seal.run();
        store.finish_seal(sealed);
    }
    let Some(checkpoint) = store.begin_checkpoint() else {
        assert_eq!(applied, 0);
        return;
    };
    let bytes = SegmentWriter::of_bucket(BUCKET, |segment| checkpoint.write(segment)).unwrap();
    let file = SegmentFile::open(1, Arc::new(bytes)).unwrap();
    let part = file.part(BUCKET).unwrap();
    let blocks = part.as_ref().map(|part| part.verify().unwrap());
    let blocks = blocks.into_iter().flatten();
    let of_points = blocks.filter(|block| source_of_ends(block.source).is_none());
    assert_eq!(
        of_points.map(|block| u64::from(block.rows)).sum::<u64>(),
        u64::from(applied)
    );
    store.finish_checkpoint(checkpoint, part, i64::MIN);
    assert_eq!(store.view().stats(i64::MIN, &|| false, &mut Err).unwrap(), stats);
}
