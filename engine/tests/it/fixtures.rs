//! Files of earlier format versions stay readable. `TIDEWATCH_WRITE_FIXTURES=1` writes those of the current version,
//! once for each new version.

use std::path::PathBuf;
use std::sync::Arc;

use engine::query::{
    Budget, Completion, GroupQuery, Grouping, NeededField, Needs, ScanQuery, Selection, Statistics, Value,
    Wanted, for_each_end, group, scan,
};
use engine::rows::{NOT_DECIMAL, RowsWriter, Scalar};
use engine::{
    Checkpoint, MergeError, SERIES_ORDINALS_FROM, SegmentFile, SegmentPart, SegmentWriter, SeriesRef, Store,
    Unit, Values,
};

const SECOND: i64 = 1_000_000_000;
const ROWS: i64 = 10_000;

/// Path of a kept file.
pub(crate) fn path(name: &str) -> PathBuf {
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
    let snapshot = [1, 2].map(|source| store.view().series(source).unwrap());
    let query = GroupQuery {
        range_ns: (0, i64::MAX),
        step: Unit::Hour.into(),
        fields: &[0, 1, 2, 3],
        metadata: None,
        stop: &|| false,
        values: &[],
    };
    let groups = group(&snapshot[0], &query).unwrap();
    assert_eq!(groups.starts_ns, [0, 3_600 * SECOND, 7_200 * SECOND]);
    let expected: i64 = (0..3_600).map(|row| row * 37 % 1_000).sum();
    let cell = groups.cell(0);
    assert!((cell[0].sum() - expected as f64 / 100.0).abs() < 1e-6);
    assert_eq!(
        cell.iter().map(|aggregate| aggregate.count).collect::<Vec<_>>(),
        [3_600, 1_800, 1_800, 3_600]
    );
    let selections: Vec<Selection<'_>> = snapshot
        .iter()
        .map(|series| Selection::new(series, None))
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

/// The remainder of an hour whose sum exceeded the range of doubles: 2^960.
const REST: f64 = f64::from_bits((1_023 + 960) << 52);

/// A third source, whose sums exceed the range of doubles: over the whole block, and in hours.
fn rows_with_carries() -> Vec<u8> {
    let mut writer = RowsWriter::new();
    for row in 0..7_200i64 {
        writer.begin(3);
        let value = match row {
            0 => 1e16,
            3_600 => REST,
            3_601 => 1.7e308,
            3_602 => 1.6e308,
            _ if row < 3_600 => 1.0,
            _ => 0.0,
        };
        writer.number(0, value, NOT_DECIMAL);
        writer.commit(row * SECOND);
    }
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    bytes
}

/// Checks the hours of the third source after subtraction.
fn check_carries(store: &mut Store) {
    let mut writer = RowsWriter::new();
    for (row, value) in [(0, -1e16), (3_600, -1.7e308), (3_601, -1.6e308)] {
        writer.begin(3);
        writer.number(0, value, NOT_DECIMAL);
        writer.commit(row * SECOND);
    }
    let mut rows = Vec::new();
    writer.encode(&mut rows);
    store.apply(&rows, 1 << 20, &[]).unwrap();
    let snapshot = [store.view().series(3).unwrap()];
    for (unit, expected) in [(Unit::Hour, &[3_599.0, REST][..]), (Unit::Day, &[REST])] {
        let query = GroupQuery {
            range_ns: (i64::MIN, i64::MAX),
            step: unit.into(),
            fields: &[0],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        let groups = group(&snapshot[0], &query).unwrap();
        let sums: Vec<f64> = (0..expected.len())
            .map(|cell| groups.cell(cell)[0].sum())
            .collect();
        assert_eq!(sums, expected);
    }
}

fn checkpoint_of(all: &[(&[u8], u64)]) -> Checkpoint {
    let mut store = Store::new();
    for (rows, first_sequence) in all {
        store.apply(rows, *first_sequence, &[]).unwrap();
    }
    store.begin_checkpoint().unwrap()
}

/// Buckets in the segment of the current version: one with the rows, one with the sums, one with both.
const ROWS_BUCKET: u32 = 1;
const CARRIES_BUCKET: u32 = 2;
const BOTH_BUCKET: u32 = 70_000;

/// A segment of the current version.
fn segment() -> Vec<u8> {
    let (rows, carries) = (rows(), rows_with_carries());
    let buckets = [
        (ROWS_BUCKET, checkpoint_of(&[(&rows, 1)])),
        (CARRIES_BUCKET, checkpoint_of(&[(&carries, 1)])),
        (
            BOTH_BUCKET,
            checkpoint_of(&[(&rows, 1), (&carries, ROWS as u64 + 3)]),
        ),
    ];
    let mut bytes = Vec::new();
    let mut segment = SegmentWriter::new(&mut bytes).unwrap();
    for (bucket, checkpoint) in &buckets {
        segment.begin_bucket(*bucket);
        checkpoint.write(&mut segment).unwrap();
    }
    segment.finish().unwrap();
    bytes
}

fn store_of(file: &Arc<SegmentFile>, bucket: u32) -> Store {
    let part = file.part(bucket).unwrap().unwrap();
    let blocks = part.verify().unwrap();
    assert!(blocks.iter().all(|block| block.fault.is_none()), "{blocks:?}");
    let rows: u64 = blocks.iter().map(|block| u64::from(block.rows)).sum();
    let stats = file.parts().find(|part| part.bucket == bucket).unwrap();
    assert_eq!((stats.blocks as usize, stats.rows), (blocks.len(), rows));
    let mut store = Store::new();
    store.add_segment(part);
    store
}

/// Checks the content of a segment of the current version.
fn check_segment(bytes: Vec<u8>) {
    let file = SegmentFile::open(1, Arc::new(bytes)).unwrap();
    let buckets: Vec<u32> = file.parts().map(|part| part.bucket).collect();
    assert_eq!(buckets, [ROWS_BUCKET, CARRIES_BUCKET, BOTH_BUCKET]);
    check(&store_of(&file, ROWS_BUCKET));
    check_carries(&mut store_of(&file, CARRIES_BUCKET));
    let mut both = store_of(&file, BOTH_BUCKET);
    check(&both);
    check_carries(&mut both);
    assert!(file.part(3).unwrap().is_none());
}

/// A file of version 1 or 2, and a copy of its rows in a file of the current version.
fn old_and_copied(name: &str) -> [Store; 2] {
    const BUCKET: u32 = 12;
    let bytes = std::fs::read(path(name)).unwrap();
    assert!(SegmentFile::open(1, Arc::new(bytes.clone())).is_err());
    let file = SegmentFile::open_of_bucket(1, BUCKET, Arc::new(bytes)).unwrap();
    assert!(file.part(BUCKET + 1).unwrap().is_none());
    let part = file.part(BUCKET).unwrap().unwrap();
    let copy: Result<Vec<u8>, MergeError> = SegmentWriter::of_bucket(BUCKET, |segment| part.copy(segment));
    let copied = SegmentFile::open(2, Arc::new(copy.unwrap())).unwrap();
    let copied_part = copied.part(BUCKET).unwrap().unwrap();
    // In a file of another version, the offset of a block differs.
    let reports = |part: &SegmentPart| {
        let mut reports = part.verify().unwrap();
        reports.iter_mut().for_each(|report| report.offset = 0);
        reports
    };
    assert_eq!(reports(&copied_part), reports(&part));
    assert_eq!(copied_part.sequences(), part.sequences());
    let sequences = |part: &SegmentPart| -> Vec<u64> {
        let blocks = part.whole_sequences().unwrap().into_iter();
        blocks.flat_map(|(_, rows)| rows).collect()
    };
    assert_eq!(sequences(&copied_part), sequences(&part));
    [store_of(&file, BUCKET), store_of(&copied, BUCKET)]
}

#[test]
fn rows_and_segments_of_every_version_are_read() {
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::create_dir_all(path("")).unwrap();
        std::fs::write(path("rows-1.bin"), rows()).unwrap();
        std::fs::write(path("segment-4.bin"), segment()).unwrap();
    }
    let mut store = Store::new();
    store
        .apply(&std::fs::read(path("rows-1.bin")).unwrap(), 1, &[])
        .unwrap();
    check(&store);
    old_and_copied("segment-1.bin").iter().for_each(check);
    for mut store in old_and_copied("segment-2.bin") {
        check(&store);
        check_carries(&mut store);
    }
    for name in ["segment-3.bin", "segment-4.bin"] {
        check_segment(std::fs::read(path(name)).unwrap());
    }
}

#[test]
fn rows_and_segments_written_by_this_version_are_read() {
    let mut store = Store::new();
    store.apply(&rows(), 1, &[]).unwrap();
    check(&store);
    let mut store = Store::new();
    store.apply(&rows_with_carries(), 1, &[]).unwrap();
    check_carries(&mut store);
    check_segment(segment());
}

/// A row for each of sources 4 to 23, with values of every kind and metadata.
fn single_rows() -> Vec<u8> {
    let mut writer = RowsWriter::new();
    for source in 4..24u32 {
        writer.begin(source);
        writer.number(
            0,
            f64::from(source) / 8.0,
            if source % 2 == 0 { 3 } else { NOT_DECIMAL },
        );
        writer.boolean(2, source % 3 == 0);
        writer.string(3, ["open", "closed"][source as usize % 2]);
        writer.metadata("{\"room\": \"a\"}");
        writer.commit(i64::from(100 - source) * SECOND);
    }
    let mut bytes = Vec::new();
    assert!(writer.encode(&mut bytes), "single rows");
    bytes
}

#[test]
fn single_rows_of_every_version_are_read() {
    let now = single_rows();
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        std::fs::write(path("rows-1-single.bin"), &now).unwrap();
    }
    for bytes in [now, std::fs::read(path("rows-1-single.bin")).unwrap()] {
        let mut store = Store::new();
        assert_eq!(store.apply(&bytes, 1, &[]).unwrap(), 20);
        for source in 4..24u32 {
            let snapshot = store.view().series(source).unwrap();
            let query = ScanQuery {
                range_ns: (i64::MIN, i64::MAX),
                descending: false,
                after: None,
                skip: 0,
                limit: 10,
                metadata: None,
                stop: &|| false,
            };
            let page = scan(&[Selection::new(&snapshot, None)], &query).unwrap();
            let [(run, row)] = page.rows[..] else {
                panic!("one row")
            };
            let columns = &page.runs[run as usize].columns;
            let row = row as usize;
            let key = (i64::from(100 - source) * SECOND, u64::from(source) - 3);
            assert_eq!(columns.key(row), key);
            let value = |field| columns.field(field).unwrap().value(row);
            assert_eq!(value(0), Some(Scalar::Number(f64::from(source) / 8.0)));
            assert_eq!(value(2), Some(Scalar::Boolean(source % 3 == 0)));
            assert_eq!(
                value(3),
                Some(Scalar::Text(["open", "closed"][source as usize % 2]))
            );
            let metadata = columns.metadata.as_ref().unwrap().value(row);
            assert_eq!(metadata, Some(Scalar::Text("{\"room\": \"a\"}")));
        }
    }
}

/// A series of source 4 with a point.
const ENDED: SeriesRef = SeriesRef {
    ordinal: SERIES_ORDINALS_FROM + 9,
    source: 4,
};

/// Ends of that series, and of source 4 itself.
fn rows_with_ends() -> Vec<u8> {
    let mut writer = RowsWriter::new();
    writer.end_series(4, SERIES_ORDINALS_FROM, 30 * SECOND);
    for table in [SERIES_ORDINALS_FROM, 4] {
        writer.begin(table);
        writer.number(0, 1.0, 0);
        writer.commit(15 * SECOND);
    }
    writer.end_series(4, 4, 31 * SECOND);
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    bytes
}

fn store_with_ends(rows: &[u8]) -> Store {
    let mut store = Store::new();
    assert_eq!(store.apply(rows, 1, &[ENDED]).unwrap(), 2, "points");
    store
}

fn check_ends(store: &Store) {
    let ends = store.view().ends(4).unwrap();
    let (all, mut found) = ((i64::MIN, i64::MAX), Vec::new());
    let each = |position, ordinal| found.push((position, ordinal));
    for_each_end(&ends, all, &Budget::unlimited(), &|| false, each).unwrap();
    let expected = [((30 * SECOND, 1), ENDED.ordinal), ((31 * SECOND, 4), 4)];
    assert_eq!(found, expected);
}

/// Ends of series, which were added later under the same versions.
#[test]
fn ends_of_series_are_read() {
    let segment = |store: &mut Store| {
        let checkpoint = store.begin_checkpoint().unwrap();
        SegmentWriter::of_bucket(ROWS_BUCKET, |segment| checkpoint.write(segment)).unwrap()
    };
    let names = ["rows-1-ends.bin", "segment-3-ends.bin"];
    let now = [rows_with_ends(), segment(&mut store_with_ends(&rows_with_ends()))];
    if std::env::var_os("TIDEWATCH_WRITE_FIXTURES").is_some() {
        // The segment has blocks of version 1.
        std::fs::write(path(names[0]), &now[0]).unwrap();
    }
    let kept = names.map(|name| std::fs::read(path(name)).unwrap());
    for [rows, segment] in [now, kept] {
        check_ends(&store_with_ends(&rows));
        let file = SegmentFile::open(1, Arc::new(segment)).unwrap();
        check_ends(&store_of(&file, ROWS_BUCKET));
    }
}

/// A value and its position.
type Positioned = ((i64, u64), Value);

/// Last values of the first source, and the number of rows that were read for them.
fn last_values(store: &Store) -> (Vec<Positioned>, u64) {
    let query = GroupQuery {
        // From the second block on.
        range_ns: (8_191 * SECOND, i64::MAX),
        step: Unit::Month.into(),
        fields: &[0, 1, 2, 3],
        metadata: None,
        stop: &|| false,
        values: &[],
    };
    let needs = Needs {
        ends: true,
        ..Needs::default()
    };
    let fields = [0, 1, 2, 3].map(|field| NeededField {
        field,
        number: field.into(),
        needs,
    });
    let completion = Completion {
        quantiles: &[],
        is_merged: false,
        holds_until_ns: i64::MAX,
    };
    let budget = Budget::unlimited();
    let mut grouping: Grouping<'_, Statistics> = Grouping::new(Wanted::ALL, &budget);
    let series = store.view().series(1).unwrap();
    grouping
        .add_rows(0, &series, &query, &fields, &completion)
        .unwrap();
    let found = grouping.finish().unwrap();
    let values = found.cells[0].values();
    let last = values.map(|(_, statistics)| statistics.ends().unwrap().last.clone());
    (last.collect(), found.touched.rows)
}

/// First and last values, which were added later under the same version; the kept file has blocks of version 1. Files without them are read by their rows.
#[test]
fn first_and_last_values_are_read() {
    let name = "segment-3-first-last.bin";
    let now = segment();
    let even = (9_998 * SECOND, 9_999);
    let odd = (9_999 * SECOND, 10_000);
    let expected = [
        (odd, Value::Number(9.63)),
        (even, Value::Number(9_998f64.sqrt())),
        (even, Value::Boolean(false)),
        (odd, Value::Text("open".into())),
    ];
    let of_file = |bytes: Vec<u8>| {
        let file = SegmentFile::open(1, Arc::new(bytes)).unwrap();
        last_values(&store_of(&file, ROWS_BUCKET))
    };
    let kept = |name: &str| std::fs::read(path(name)).unwrap();
    for bytes in [now, kept(name)] {
        assert_eq!(of_file(bytes), (expected.to_vec(), 0));
    }
    let (last, rows) = of_file(kept("segment-3.bin"));
    assert_eq!((last, rows > 0), (expected.to_vec(), true));
}

/// Truncation and damage to footer or trailer are refused as before.
#[test]
fn a_segment_of_an_older_version_with_a_damaged_end_is_refused() {
    for name in ["segment-1.bin", "segment-2.bin"] {
        let whole = std::fs::read(path(name)).unwrap();
        let open = |bytes: Vec<u8>| SegmentFile::open_of_bucket(1, 1, Arc::new(bytes));
        let footer_bytes = open(whole.clone()).unwrap().footer_bytes() as usize;
        for byte in whole.len() - 20 - footer_bytes..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[byte] ^= 1 << bit;
                assert!(open(damaged).is_err(), "{name}: byte {byte}, bit {bit}");
            }
        }
        for len in 0..whole.len() {
            assert!(open(whole[..len].to_vec()).is_err(), "{name}: {len} bytes");
        }
    }
}
