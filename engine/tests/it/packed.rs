//! Blocks whose integers are packed.

use std::sync::Arc;

use engine::query::{ScanQuery, Selection, scan};
use engine::rows::RowsWriter;
use engine::{SegmentFile, SegmentWriter, Store, Values};

use crate::fixtures::path;

const SOURCE: u32 = 1;
const ROWS: i64 = 300;
const MILLISECOND: i64 = 1_000_000;

/// Irregular numbers.
fn noise(row: i64, below: i64) -> i64 {
    row * row * 7_919 % 1_009 % below
}

/// Late by up to 200 ms.
fn time(row: i64) -> i64 {
    (row * 10_000 + noise(row, 200)) * MILLISECOND
}

/// With one decimal.
fn value(row: i64) -> f64 {
    (2_000 + noise(row + 1_000, 97)) as f64 / 10.0
}

fn store() -> Store {
    let mut writer = RowsWriter::new();
    for row in 0..ROWS {
        writer.begin(SOURCE);
        writer.number(0, value(row), 1);
        writer.commit(time(row));
    }
    let mut rows = Vec::new();
    writer.encode(&mut rows);
    let mut store = Store::new();
    store.apply(&rows, 1, &[]).unwrap();
    store
}

fn segment() -> Vec<u8> {
    let checkpoint = store().begin_checkpoint().unwrap();
    let mut bytes = Vec::new();
    let mut segment = SegmentWriter::new(&mut bytes).unwrap();
    segment.begin_bucket(1);
    checkpoint.write(&mut segment).unwrap();
    segment.finish().unwrap();
    bytes
}

fn values(store: &Store) -> Vec<(i64, f64)> {
    let series = store.view().series(SOURCE).unwrap();
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: false,
        after: None,
        skip: 0,
        limit: 2 * ROWS as usize,
        metadata: None,
        stop: &|| false,
    };
    let page = scan(&[Selection::new(&series, None)], &query).unwrap();
    let values = page.rows.iter().map(|(run, row)| {
        let (columns, row) = (&page.runs[*run as usize].columns, *row as usize);
        let Values::Numbers { values, .. } = &columns.field(0).unwrap().values else {
            panic!("numbers")
        };
        (columns.key(row).0, values[row])
    });
    values.collect()
}

#[test]
fn segments_with_packed_integers_are_read() {
    let (now, kept) = (segment(), std::fs::read(path("segment-3-packed.bin")).unwrap());
    let expected: Vec<(i64, f64)> = (0..ROWS).map(|row| (time(row), value(row))).collect();
    for bytes in [now, kept] {
        // Form 3, order 1, 9 bits: the times.
        assert!(bytes.windows(3).any(|part| part == [3, 1, 9]));
        let file = SegmentFile::open(1, Arc::new(bytes)).unwrap();
        let mut store = Store::new();
        store.add_segment(file.part(1).unwrap().unwrap());
        assert_eq!(values(&store), expected);
    }
}
