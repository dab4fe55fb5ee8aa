//! Encoded rows round-trip; damage is an error.

use std::collections::BTreeMap;

use super::*;
use crate::column::Values;
use crate::columns::Columns;

fn columns_of(bytes: &[u8], source: u32) -> Columns {
    let mut reader = RowsReader::new(bytes, Table::default()).unwrap();
    let mut columns = Columns::default();
    while let Some(table) = reader.next().unwrap() {
        for (_, rows) in table.parts().filter(|(of, _)| *of == source) {
            columns.append(table, rows, 100);
        }
    }
    columns
}

/// The rows of each source: key, values by field, metadata.
pub(super) fn rows_by_source(bytes: &[u8]) -> BTreeMap<u32, Vec<String>> {
    read_with(bytes, Table::default()).0
}

/// The same with the buffers of an earlier reader, which are returned.
fn read_with(bytes: &[u8], buffers: Table<'static>) -> (BTreeMap<u32, Vec<String>>, Table<'static>) {
    let mut reader = RowsReader::new(bytes, buffers).unwrap();
    let mut found = BTreeMap::<u32, Columns>::new();
    while let Some(table) = reader.next().unwrap() {
        for (source, rows) in table.parts() {
            found.entry(source).or_default().append(table, rows, 100);
        }
    }
    let row = |columns: &Columns, row| {
        let fields = columns.fields.iter();
        let values = fields.filter_map(|field| Some((field.field, field.column.value(row)?)));
        let values: Vec<(u16, Scalar<'_>)> = values.collect();
        let metadata = columns.metadata.as_ref().and_then(|column| column.value(row));
        format!("{:?} {values:?} {metadata:?}", columns.key(row))
    };
    let sources = found.iter();
    let rows = sources
        .map(|(source, columns)| (*source, (0..columns.rows()).map(|at| row(columns, at)).collect()))
        .collect();
    (rows, reader.into_buffers())
}

#[test]
fn a_reader_may_use_the_buffers_of_another() {
    // A table of one source, or single rows of several.
    let record = |kind: usize, rows: i64, of_several: bool| {
        let mut writer = RowsWriter::new();
        for row in 0..rows {
            writer.begin(1 + if of_several { row as u32 / 2 } else { 0 });
            match kind {
                0 => writer.number(3, row as f64 / 4.0, 2),
                1 => writer.boolean(3, row % 2 == 0),
                _ => writer.string(3, ["open", "closed"][row as usize % 2]),
            }
            if row % 2 == 1 {
                writer.number(4, 1.0, 0);
                writer.metadata("{}");
            }
            writer.commit(row);
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        bytes
    };
    let mut buffers = Table::default();
    for (kind, rows, of_several) in [
        (0, 1, false),
        (0, 3, true),
        (2, 3, false),
        (2, 4, true),
        (1, 1, false),
        (2, 1, false),
        (1, 5, true),
        (0, 2, false),
        (0, 4, true),
        (0, 1, false),
        (2, 2, false),
        (1, 4, false),
    ] {
        let bytes = record(kind, rows, of_several);
        let (found, kept) = read_with(&bytes, buffers);
        assert_eq!(found, rows_by_source(&bytes), "{rows} rows of kind {kind}");
        assert!(kept.timestamps_ns.capacity() > 0);
        buffers = kept;
    }
    let (_, kept) = read_with(&record(0, 10_000, false), buffers);
    assert_eq!(
        kept.timestamps_ns.capacity(),
        0,
        "those of a large table are freed"
    );
}

fn sample() -> Vec<u8> {
    let mut writer = RowsWriter::new();
    for row in 0..20i64 {
        writer.begin(1 + row as u32 % 2);
        writer.number(0, row as f64 / 10.0, 1);
        if row % 3 == 0 {
            writer.boolean(1, row % 2 == 0);
            writer.string(2, if row % 6 == 0 { "open" } else { "closed" });
        }
        if row == 7 {
            writer.metadata("{\"a\": 1.0}");
        }
        writer.commit(1_000 * row);
    }
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    bytes
}

#[test]
fn rows_round_trip_by_source_with_their_places() {
    let columns = columns_of(&sample(), 2);
    assert_eq!(
        columns.timestamps_ns,
        (0..10).map(|row| 1_000 * (2 * row + 1)).collect::<Vec<i64>>()
    );
    assert_eq!(
        columns.sequences,
        (0..10).map(|row| 100 + 2 * row + 1).collect::<Vec<u64>>()
    );
    let Values::Numbers { values, decimals } = &columns.field(0).unwrap().values else {
        panic!("numbers")
    };
    assert_eq!((values[3], *decimals), (0.7, 1));
    let open = columns.field(2).unwrap();
    assert!(open.has(1) && !open.has(0), "row 3 has a text, row 1 has none");
    let metadata = columns.metadata.as_ref().unwrap();
    let Values::Texts(texts) = &metadata.values else {
        panic!("texts")
    };
    assert!((0..10).all(|row| metadata.has(row) == (row == 3)));
    assert_eq!(&**texts.get(3), "{\"a\": 1.0}");
}

#[test]
fn a_field_set_twice_keeps_the_later_value() {
    // Regression: only the last field was compared, so a field was stored twice with another between.
    let mut writer = RowsWriter::new();
    writer.begin(1);
    for (field, value) in [(5, 1.0), (3, 2.0), (4, 3.0), (5, 4.0)] {
        writer.number(field, value, 0);
    }
    writer.commit(0);
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    let columns = columns_of(&bytes, 1);
    let Values::Numbers { values, .. } = &columns.field(5).unwrap().values else {
        panic!("numbers")
    };
    assert_eq!(values, &[4.0]);
}

#[test]
fn scratch_keeps_nothing_of_the_previous_request() {
    let mut writer = RowsWriter::new();
    writer.begin(1);
    writer.string(0, "text");
    writer.commit(5);
    writer.begin(1);
    writer.number(1, 2.0, 0);
    writer.clear();
    assert_eq!(writer.sources().count(), 0);
    writer.begin(1);
    writer.number(0, 3.0, 0);
    writer.commit(6);
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    let columns = columns_of(&bytes, 1);
    assert_eq!((columns.rows(), columns.fields.len()), (1, 1));
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let read = |bytes: &[u8]| -> Result<(), crate::EngineError> {
        let mut reader = RowsReader::new(bytes, Table::default())?;
        while reader.next()?.is_some() {}
        Ok(())
    };
    check_damage(&sample(), read);
}

/// `read` fails if bytes are missing, and does not panic if bits are flipped.
pub(super) fn check_damage(bytes: &[u8], read: impl Fn(&[u8]) -> Result<(), crate::EngineError>) {
    for cut in 0..bytes.len() {
        assert!(read(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    for byte in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.to_vec();
            flipped[byte] ^= 1 << bit;
            let _ = read(&flipped);
        }
    }
}

/// One row of source 1 at time 0: field, kind and value of each column.
fn one_row(columns: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![1, 1, 1, 0, 0, 0, columns.len() as u8];
    columns.iter().for_each(|column| bytes.extend_from_slice(column));
    bytes.extend_from_slice(&[0]);
    bytes
}

/// A number (0.0), true and an empty text in field 2.
const OF_EVERY_KIND: [&[u8]; 3] = [&[2, 0, 1, 0, 0], &[2, 2, 1, 1], &[2, 3, 1, 0, 0]];

/// Found by the fuzz target `rows`: the second occurrence was appended to a column of another type, which panics.
#[test]
fn a_duplicate_or_retyped_field_is_damage() {
    for (index, first) in OF_EVERY_KIND.iter().enumerate() {
        for (other, second) in OF_EVERY_KIND.iter().enumerate() {
            let mut store = crate::Store::new();
            assert!(
                store.apply(&one_row(&[first, second]), 1, &[]).is_err(),
                "{index} and {other}"
            );
            let mut store = crate::Store::new();
            assert_eq!(store.apply(&one_row(&[first]), 1, &[]), Ok(1), "{index}");
            let then = store.apply(&one_row(&[second]), 2, &[]);
            assert_eq!(then.is_ok(), index == other, "{index}, then {other}: {then:?}");
        }
    }
}

#[test]
fn many_sources_in_any_order_keep_their_rows() {
    let seed = 11;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut writer = RowsWriter::new();
    for request in 0..20 {
        writer.clear();
        let sources = random.u32(1..300);
        let mut expected = BTreeMap::<u32, Vec<i64>>::new();
        for row in 0..600 {
            let source = random.u32(0..sources) * 7;
            writer.begin(source);
            writer.number(0, row as f64, 0);
            writer.commit(row);
            expected.entry(source).or_default().push(row);
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        let mut reader = RowsReader::new(&bytes, Table::default()).unwrap();
        let mut found = BTreeMap::new();
        while let Some(table) = reader.next().unwrap() {
            for (source, rows) in table.parts() {
                let earlier = found.insert(source, table.timestamps_ns[rows].to_vec());
                assert!(earlier.is_none(), "seed {seed}, request {request}: once each");
            }
        }
        assert_eq!(found, expected, "seed {seed}, request {request}");
        if request % 3 == 0 {
            writer.clear_keeping(10_000);
        }
    }
}

/// Single rows stay in a buffer that their sources share: whether they do makes no difference.
#[test]
fn single_rows_are_those_that_tables_have() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut writer = RowsWriter::new();
    for request in 0..200 {
        writer.clear();
        let sources = random.u32(1..50);
        for source in 0..sources {
            for _ in 0..1 + u32::from(random.u8(0..10) == 0) {
                writer.begin(source);
                for _ in 0..random.u8(0..6) {
                    // In any order, and some twice.
                    match random.u16(0..9) {
                        field @ 0..3 => writer.number(field, random.i32(-99..99).into(), random.u8(0..2)),
                        field @ 3..5 => writer.number(field, random.f64(), NOT_DECIMAL),
                        field @ 5..7 => writer.boolean(field, random.bool()),
                        field => writer.string(field, ["", "on", "off"][random.usize(0..3)]),
                    }
                }
                if random.bool() {
                    writer.metadata("{\"room\":1}");
                }
                match random.u8(0..9) {
                    0 => writer.abort(),
                    _ => writer.commit(random.i64(..)),
                }
            }
        }
        let state = |writer: &RowsWriter| {
            let mut bytes = Vec::new();
            writer.encode(&mut bytes);
            let times: Vec<_> = writer
                .times_and_fields()
                .map(|(source, times, fields)| (source, times.to_vec(), fields))
                .collect();
            let newest = format!("{:?}", writer.newest(|source| source / 2));
            (rows_by_source(&bytes), times, newest, writer.memory_bytes())
        };
        let before = state(&writer);
        writer.for_each_table(|_, _| Some(()), |_, ()| ());
        assert_eq!(state(&writer), before, "request {request}");
    }
}

/// Rows that there is no room for in the shared buffer are in tables.
#[test]
fn rows_beyond_the_shared_buffer_are_kept() {
    let long = "long".repeat(100_000);
    let mut writer = RowsWriter::new();
    for source in 0..5_000u32 {
        writer.begin(source);
        if source % 1_000 == 0 {
            writer.string(50, &long);
        }
        (0..20).for_each(|field| writer.number(field, source.into(), 0));
        writer.commit(source.into());
    }
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    for source in [0, 1, 3_000, 4_000, 4_999] {
        let columns = columns_of(&bytes, source);
        assert_eq!(columns.sequences, [100 + u64::from(source)]);
        let value = columns.field(19).unwrap().value(0);
        assert_eq!(value, Some(Scalar::Number(source.into())));
        let text = columns
            .field(50)
            .map(|column| column.value(0).unwrap() == Scalar::Text(&long));
        assert_eq!(text, (source % 1_000 == 0).then_some(true));
    }
}

#[test]
fn buffers_beyond_the_bound_are_freed() {
    let mut writer = RowsWriter::new();
    for source in 0..2_000 {
        writer.begin(source);
        (0..100).for_each(|field| writer.number(field, 1.0, 0));
        writer.commit(0);
    }
    assert!(writer.scratch_bytes() > 4 << 20);
    writer.clear_keeping(1 << 20);
    assert!(writer.scratch_bytes() <= 1 << 20, "{}", writer.scratch_bytes());
    assert!(writer.scratch_bytes() > 1 << 18, "what fits stays");
    writer.begin(3);
    writer.number(0, 1.0, 0);
    writer.commit(5);
    assert_eq!(
        (writer.rows(), writer.sources().collect::<Vec<_>>()),
        (1, vec![3])
    );
}

/// Regression: each source has a table of its own from request to request, and only those of the last request counted.
#[test]
fn buffers_of_many_requests_stay_within_the_bound() {
    const KEPT: usize = 1 << 20;
    let mut writer = RowsWriter::new();
    let mut send = |sources: std::ops::Range<u32>, rows: i64| {
        for source in sources {
            for row in 0..rows {
                writer.begin(source);
                (0..10).for_each(|field| writer.number(field, 1.0, 0));
                writer.commit(row);
            }
        }
        // Every second time, the request is parsed again without these rows.
        if rows % 2 == 0 {
            writer.clear();
        }
        writer.clear_keeping(KEPT);
        writer.scratch_bytes()
    };
    send(0..500, 1);
    for source in 0..500 {
        let kept = send(source..source + 1, 1_000 + i64::from(source % 2));
        assert!(kept <= KEPT, "{source}: {kept}");
    }
}

#[test]
fn the_newest_row_of_each_source() {
    let mut writer = RowsWriter::new();
    let mut row = |source, timestamp_ns, value: Option<f64>, text: Option<&str>, metadata: Option<&str>| {
        writer.begin(source);
        value.into_iter().for_each(|value| writer.number(1, value, 1));
        text.into_iter().for_each(|text| writer.string(0, text));
        metadata.into_iter().for_each(|json| writer.metadata(json));
        writer.commit(timestamp_ns);
    };
    row(4, 10, Some(0.5), Some("a"), Some("{\"n\":1}"));
    row(9, 5, None, Some("x"), None);
    row(4, 20, None, Some("b"), Some("{ \"n\": 2 }"));
    row(4, 20, Some(1.5), None, None);
    row(4, 19, Some(2.5), Some("c"), Some("{}"));
    row(9, 4, Some(9.5), None, Some("{}"));
    let newest = writer.newest(|table| table);
    let [first, second] = newest.rows() else {
        panic!("two sources")
    };
    assert_eq!(
        (
            first.source,
            first.timestamp_ns,
            first.place,
            first.count,
            newest.metadata(first)
        ),
        (4, 20, 3, 4, None)
    );
    assert_eq!(
        newest.values(first).collect::<Vec<_>>(),
        [(1, Scalar::Number(1.5))]
    );
    assert_eq!(
        (second.source, second.timestamp_ns, second.place, second.count),
        (9, 5, 1, 2)
    );
    assert_eq!(
        newest.values(second).collect::<Vec<_>>(),
        [(0, Scalar::Text("x"))]
    );
    assert_eq!(newest.metadata(second), None);
}

#[test]
fn few_and_many_texts_are_written_the_same_way() {
    let seed = 5;
    let mut random = fastrand::Rng::with_seed(seed);
    for rows in 1..20 {
        let mut writer = RowsWriter::new();
        let texts: Vec<String> = (0..rows).map(|_| format!("t{}", random.u8(0..5))).collect();
        for (row, text) in texts.iter().enumerate() {
            writer.begin(1);
            writer.string(0, text);
            writer.commit(row as i64);
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        let columns = columns_of(&bytes, 1);
        let Values::Texts(found) = &columns.field(0).unwrap().values else {
            panic!("texts")
        };
        let found: Vec<&str> = (0..rows).map(|row| &**found.get(row)).collect();
        assert_eq!(found, texts, "seed {seed}");
    }
}
