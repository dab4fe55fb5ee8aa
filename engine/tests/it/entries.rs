//! Aggregates of whole blocks, which are in the footer of a segment.

use std::sync::Arc;

use engine::query::{GroupQuery, group};
use engine::rows::{NOT_DECIMAL, RowsWriter};
use engine::{SegmentFile, SegmentWriter, Store, Unit};

use crate::fixtures::path;

const SOURCE: u32 = 1;
const ROWS: i64 = 300;
const SECOND: i64 = 1_000_000_000;

/// The value of a field in a row as a mantissa, and its decimal places; `None` if the row has none.
fn value(field: u16, row: i64) -> Option<(i64, u8)> {
    match field {
        // Negative, and not in every row.
        0 => (row % 3 != 0).then_some((-1_250 + row % 7 * 25, 2)),
        // Far from zero.
        1 => Some((20_125 + row % 5 * 1_000, 3)),
        2 => (row == 17).then_some((42, 0)),
        3 => Some((row % 2 - 1, 6)),
        _ => None,
    }
}

/// A field whose numbers are no decimals: its entry has doubles.
const IRRATIONAL: u16 = 4;

fn segment() -> Vec<u8> {
    let mut writer = RowsWriter::new();
    for row in 0..ROWS {
        writer.begin(SOURCE);
        for field in 0..4 {
            if let Some((mantissa, decimals)) = value(field, row) {
                let number = mantissa as f64 / 10f64.powi(decimals.into());
                writer.number(field, number, decimals);
            }
        }
        writer.number(IRRATIONAL, (2.0 + row as f64).sqrt(), NOT_DECIMAL);
        writer.commit(row * SECOND);
    }
    let (mut store, mut rows) = (Store::new(), Vec::new());
    writer.encode(&mut rows);
    store.apply(&rows, 1, &[]).unwrap();
    let checkpoint = store.begin_checkpoint().unwrap();
    SegmentWriter::of_bucket(1, |segment| checkpoint.write(segment)).unwrap()
}

#[test]
fn aggregates_of_whole_blocks_are_read_from_entries_of_every_version() {
    let now = segment();
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::write(path("segment-4-decimals.bin"), &now).unwrap();
    }
    let kept = |name| std::fs::read(path(name)).unwrap();
    for bytes in [
        now,
        kept("segment-4-decimals.bin"),
        kept("segment-3-decimals.bin"),
    ] {
        let file = SegmentFile::open(1, Arc::new(bytes)).unwrap();
        let mut store = Store::new();
        store.add_segment(file.part(1).unwrap().unwrap());
        let query = GroupQuery {
            range_ns: (i64::MIN, i64::MAX),
            step: Unit::Month.into(),
            fields: &[0, 1, 2, 3, IRRATIONAL],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        let series = store.view().series(SOURCE).unwrap();
        let groups = group(&series, &query).unwrap();
        assert_eq!(groups.starts_ns, [0]);
        let cell = groups.cell(0);
        for (field, found) in (0..4).zip(cell) {
            let values = || (0..ROWS).filter_map(|row| value(field, row));
            let (_, decimals) = values().next().unwrap();
            let number = |mantissa: i64| mantissa as f64 / 10f64.powi(decimals.into());
            let mantissas = || values().map(|(mantissa, _)| mantissa);
            assert_eq!(found.count, values().count() as u64, "field {field}");
            assert_eq!(found.sum(), number(mantissas().sum()), "field {field}");
            assert_eq!(found.min, number(mantissas().min().unwrap()), "field {field}");
            assert_eq!(found.max, number(mantissas().max().unwrap()), "field {field}");
        }
        let sum: f64 = (0..ROWS).map(|row| (2.0 + row as f64).sqrt()).sum();
        let found = &cell[usize::from(IRRATIONAL)];
        assert!(
            (found.sum() - sum).abs() < 1e-9 * sum,
            "{} against {sum}",
            found.sum()
        );
        assert_eq!((found.count, found.min), (ROWS as u64, 2f64.sqrt()));
        assert_eq!(found.max, (1.0 + ROWS as f64).sqrt());
    }
}
