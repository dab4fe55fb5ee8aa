//! Blocks whose integers are packed, of a fixed width or as digits.

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

/// A time and the value of each field.
type Row = (i64, Vec<f64>);

fn segment_of(rows: &[Row]) -> Vec<u8> {
    let (mut writer, mut bytes, mut store) = (RowsWriter::new(), Vec::new(), Store::new());
    for (time, values) in rows {
        writer.begin(SOURCE);
        for (field, value) in (0..).zip(values) {
            writer.number(field, *value, 1);
        }
        writer.commit(*time);
    }
    writer.encode(&mut bytes);
    store.apply(&bytes, 1, &[]).unwrap();
    let checkpoint = store.begin_checkpoint().unwrap();
    SegmentWriter::of_bucket(1, |segment| checkpoint.write(segment)).unwrap()
}

fn rows_of(segment: Vec<u8>, fields: u16) -> Vec<Row> {
    let file = SegmentFile::open(1, Arc::new(segment)).unwrap();
    let mut store = Store::new();
    store.add_segment(file.part(1).unwrap().unwrap());
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
    let rows = page.rows.iter().map(|(run, row)| {
        let (columns, row) = (&page.runs[*run as usize].columns, *row as usize);
        let value = |field| match &columns.field(field).unwrap().values {
            Values::Numbers { values, .. } => values[row],
            _ => panic!("numbers"),
        };
        (columns.key(row).0, (0..fields).map(value).collect())
    });
    rows.collect()
}

#[test]
fn segments_with_packed_integers_are_read() {
    let expected: Vec<Row> = (0..ROWS).map(|row| (time(row), vec![value(row)])).collect();
    let kept = std::fs::read(path("segment-3-packed.bin")).unwrap();
    for bytes in [segment_of(&expected), kept] {
        // Form 3, order 1, 9 bits: the times.
        assert!(bytes.windows(3).any(|part| part == [3, 1, 9]));
        assert_eq!(rows_of(bytes, 1), expected);
    }
}

/// The bases of digits. The steps of each field are so many.
const BASES: [i64; 6] = [3, 5, 6, 9, 10, 11];

#[test]
fn segments_with_integers_as_digits_are_read() {
    let mut levels = [0; BASES.len()];
    let walks = (0..ROWS).map(|row| {
        for (level, base) in levels.iter_mut().zip(BASES) {
            *level += noise(row, base);
        }
        (time(row), levels.map(|level| level as f64 / 10.0).to_vec())
    });
    let expected: Vec<Row> = walks.collect();
    let (now, name) = (segment_of(&expected), path("segment-4-digits.bin"));
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::write(&name, &now).unwrap();
    }
    for bytes in [now, std::fs::read(name).unwrap()] {
        for base in BASES {
            // Form 4, order 1: the field's values.
            assert!(
                bytes.windows(3).any(|part| part == [4, 1, base as u8]),
                "base {base}"
            );
        }
        assert_eq!(rows_of(bytes, BASES.len() as u16), expected);
    }
}
