//! Files of earlier format versions stay readable. `TIDEWATCH_WRITE_FIXTURES=1` writes those of the present version,
//! which is done once, when a version is new.

use std::path::PathBuf;
use std::sync::Arc;

use engine::query::{GroupQuery, ScanQuery, Selection, group, scan};
use engine::rows::{NOT_DECIMAL, RowsWriter};
use engine::{Store, Unit, Values};

const SECOND: i64 = 1_000_000_000;
const ROWS: i64 = 10_000;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Two sources, every kind of column, a late row, missing values, metadata.
fn rows() -> Vec<u8> {
    let mut writer = RowsWriter::new();
    for row in 0..ROWS {
        writer.begin(1);
        writer.number(0, (row * 37 % 1_000) as f64 / 100.0, 2);
        if row % 2 == 0 {
            writer.number(1, (row as f64).sqrt(), NOT_DECIMAL);
            writer.boolean(2, row % 3 == 0);
        }
        writer.string(3, ["open", "closed", "stuck"][row as usize % 3]);
        if row % 100 == 0 {
            writer.metadata("{\"room\": \"a\"}");
        }
        writer.commit(row * SECOND);
    }
    writer.begin(2);
    writer.number(0, -0.0, NOT_DECIMAL);
    writer.commit(7);
    writer.begin(1);
    writer.number(0, 1.5, 1);
    writer.commit(-SECOND);
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    bytes
}

fn check(store: &Store) {
    let snapshot = store.snapshot([1, 2]);
    let query = GroupQuery {
        range_ns: (0, i64::MAX),
        unit: Unit::Hour,
        fields: &[0, 1, 2, 3],
        metadata: None,
        stop: &|| false,
    };
    let groups = group(&snapshot.series[0], &query).unwrap();
    assert_eq!(groups.starts_ns, [0, 3_600 * SECOND, 7_200 * SECOND]);
    let expected: i64 = (0..3_600).map(|row| row * 37 % 1_000).sum();
    let cell = groups.cell(0);
    assert!((cell[0].sum() - expected as f64 / 100.0).abs() < 1e-6);
    assert_eq!(
        cell.iter().map(|aggregate| aggregate.count).collect::<Vec<_>>(),
        [3_600, 1_800, 1_800, 3_600]
    );
    let selections: Vec<Selection<'_>> = snapshot
        .series
        .iter()
        .map(|series| Selection { series, fields: None })
        .collect();
    let query = ScanQuery {
        range_ns: (i64::MIN, i64::MAX),
        descending: false,
        after: None,
        skip: 0,
        limit: 4,
        metadata: None,
        stop: &|| false,
    };
    let page = scan(&selections, &query).unwrap();
    let rows: Vec<_> = page
        .rows
        .iter()
        .map(|(run, row)| {
            let run = &page.runs[*run as usize];
            let Values::Numbers { values, .. } = &run.columns.field(0).unwrap().values else {
                panic!("numbers")
            };
            let metadata = run
                .columns
                .metadata
                .as_ref()
                .is_some_and(|metadata| metadata.has(*row as usize));
            (
                run.source,
                run.columns.key(*row as usize),
                values[*row as usize],
                metadata,
            )
        })
        .collect();
    let late = ROWS as u64 + 2;
    assert_eq!(
        rows,
        [
            (1, (-SECOND, late), 1.5, false),
            (1, (0, 1), 0.0, true),
            (2, (7, ROWS as u64 + 1), 0.0, false),
            (1, (SECOND, 2), 0.37, false),
        ]
    );
}

fn written() -> (Vec<u8>, Vec<u8>) {
    let rows = rows();
    let mut store = Store::new();
    store.apply(&rows, 1).unwrap();
    let mut segment = Vec::new();
    store.begin_checkpoint().unwrap().write(&mut segment).unwrap();
    (rows, segment)
}

#[test]
fn rows_and_segments_of_version_1_are_read() {
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        let (rows, segment) = written();
        std::fs::create_dir_all(path("")).unwrap();
        std::fs::write(path("rows-1.bin"), rows).unwrap();
        std::fs::write(path("segment-1.bin"), segment).unwrap();
    }
    let mut store = Store::new();
    store
        .apply(&std::fs::read(path("rows-1.bin")).unwrap(), 1)
        .unwrap();
    check(&store);
    let mut store = Store::new();
    store
        .add_segment(1, Arc::new(std::fs::read(path("segment-1.bin")).unwrap()))
        .unwrap();
    check(&store);
}

#[test]
fn what_is_written_now_is_read_now() {
    let (rows, segment) = written();
    let mut store = Store::new();
    store.apply(&rows, 1).unwrap();
    check(&store);
    let mut store = Store::new();
    store.add_segment(1, Arc::new(segment)).unwrap();
    check(&store);
}
