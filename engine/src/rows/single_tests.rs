//! Single rows: how they are encoded, and that the store has the same rows as from tables.

use super::tests::{check_damage, rows_by_source};
use super::write::{BOOLEANS, NUMBERS_DECIMAL, NUMBERS_RAW};
use super::{NOT_DECIMAL, RowsReader, RowsWriter, Table};
use crate::Store;
use crate::columns::Columns;
use crate::ends::ENDS_ORDINALS_FROM;
use crate::members::{SERIES_ORDINALS_FROM, SeriesRef};
use crate::series::Series;

/// A row for each of 20 sources, in two groups of different fields.
fn single_rows() -> Vec<u8> {
    let mut writer = RowsWriter::new();
    for source in 0..20u32 {
        writer.begin(3 * source);
        writer.number(0, f64::from(source) / 10.0, 1);
        writer.number(3, f64::from(source).sqrt(), NOT_DECIMAL);
        if source >= 10 {
            writer.boolean(4, source % 3 == 0);
            writer.string(5, ["", "open"][source as usize % 2]);
            writer.metadata("{\"room\":1}");
        }
        writer.commit(1_000 - i64::from(source % 7));
    }
    let mut bytes = Vec::new();
    assert!(writer.encode(&mut bytes), "single rows");
    bytes
}

#[test]
fn single_rows_are_encoded_with_one_list_of_their_fields() {
    let bytes = single_rows();
    let found = rows_by_source(&bytes);
    assert_eq!(found.len(), 20);
    for (source, rows) in found {
        let number = source / 3;
        let key = (1_000 - i64::from(number % 7), 100 + u64::from(number));
        let (first, second) = (f64::from(number) / 10.0, f64::from(number).sqrt());
        let expected = match number < 10 {
            true => format!("{key:?} [(0, Number({first:?})), (3, Number({second:?}))] None"),
            false => {
                let (boolean, text) = (number % 3 == 0, ["", "open"][number as usize % 2]);
                format!(
                    "{key:?} [(0, Number({first:?})), (3, Number({second:?})), (4, Boolean({boolean})), \
                     (5, Text({text:?}))] Some(Text({:?}))",
                    "{\"room\":1}"
                )
            }
        };
        assert_eq!(rows, [expected]);
    }
    let mut reader = RowsReader::new(&bytes, Table::default()).unwrap();
    let tables = std::iter::from_fn(|| Some(reader.next().unwrap()?.parts().count()));
    assert_eq!(tables.collect::<Vec<_>>(), [10, 10]);
}

#[test]
fn one_source_and_sources_with_different_fields_have_no_single_rows() {
    let mut writer = RowsWriter::new();
    for source in [1, 2] {
        writer.begin(source);
        writer.number(source as u16, 0.5, 1);
        writer.commit(0);
        assert!(!writer.encode(&mut Vec::new()), "older programs read them");
    }
}

/// A table of one single row. `columns`: their number, then field and kind of each.
fn encoded(has_metadata: u8, columns: &[u8], row: &[&[u8]]) -> Vec<u8> {
    let head = [&[1, 255, 255, 255, 255, 15, 1, has_metadata][..], columns].concat();
    [head, row.concat()].concat()
}

#[test]
fn single_rows_that_are_not_as_described_are_damage() {
    let apply = |bytes: &[u8]| Store::new().apply(bytes, 1, &[]);
    let boolean = &[1, 0, BOOLEANS][..];
    let row = |source: &[u8], place: &[u8], value: u8| encoded(0, boolean, &[source, &[0], place, &[value]]);
    assert_eq!(apply(&row(&[4], &[0], 1)), Ok(1));
    for (damaged, what) in [
        (row(&[128, 128, 128, 128, 8], &[0], 1), "ends of source 0"),
        (row(&[1], &[0], 1), "a source below 0"),
        (
            row(&[128, 128, 128, 128, 16], &[0], 1),
            "a series that the record does not have",
        ),
        (row(&[4], &[1], 1), "a place below 0"),
        (
            row(&[4], &[254, 255, 255, 255, 31], 1),
            "a place that no table has",
        ),
        (row(&[4], &[0], 2), "a boolean"),
        (
            encoded(2, boolean, &[&[4, 0, 0, 1, 0]]),
            "whether there is metadata",
        ),
        (encoded(0, &[1, 0, NUMBERS_RAW], &[&[4, 0, 0, 0, 0]]), "a kind"),
        (
            encoded(0, &[1, 0, NUMBERS_DECIMAL], &[&[4, 0, 0, 23, 0]]),
            "decimals",
        ),
        (
            encoded(0, &[2, 0, BOOLEANS, 0, BOOLEANS], &[&[4, 0, 0, 1, 1]]),
            "a field twice",
        ),
    ] {
        assert!(apply(&damaged).is_err(), "{what}");
    }
    let number = encoded(0, &[1, 0, NUMBERS_DECIMAL], &[&[4, 0, 0, 22, 2]]);
    assert_eq!(apply(&number), Ok(1));
}

#[test]
fn damaged_single_rows_are_an_error_and_never_a_panic() {
    check_damage(&single_rows(), |bytes| {
        Store::new().apply(bytes, 1, &[]).map(drop)
    });
}

#[test]
fn columns_are_counted_before_they_are_allocated() {
    // 16 million columns, for which there are bytes only if each takes two bits.
    let mut bytes = vec![1, 255, 255, 255, 255, 15, 0, 0, 255, 255, 255, 7];
    bytes.resize(4 << 20, 0);
    let error = Store::new().apply(&bytes, 1, &[]).unwrap_err();
    assert!(error.to_string().contains("as many columns as follow"), "{error}");
}

#[test]
fn a_series_of_the_record_has_the_ordinal_of_a_series() {
    let mut writer = RowsWriter::new();
    writer.begin(SERIES_ORDINALS_FROM);
    writer.boolean(0, true);
    writer.commit(0);
    let mut bytes = Vec::new();
    writer.encode(&mut bytes);
    let apply = |ordinal| Store::new().apply(&bytes, 1, &[SeriesRef { ordinal, source: 3 }]);
    assert_eq!(apply(SERIES_ORDINALS_FROM + 8), Ok(1));
    assert!(apply(0).is_err() && apply(ENDS_ORDINALS_FROM).is_err());
}

/// Requests over sources, series and ends of these, written with single rows and as tables: two stores that have got them
/// are equal.
#[test]
fn single_rows_are_stored_as_those_of_tables() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20 {
        let (mut single, mut tables) = (Store::new(), Store::new());
        let (mut sequence, mut has_single_rows) = (1, false);
        for _ in 0..80 {
            let mut writer = RowsWriter::new();
            let series: Vec<SeriesRef> = (0..random.u32(0..6))
                .map(|place| SeriesRef {
                    ordinal: SERIES_ORDINALS_FROM + 7 * place,
                    source: 100 + place % 2,
                })
                .collect();
            let of_record = (0..series.len() as u32).map(|place| SERIES_ORDINALS_FROM + place);
            let mut all: Vec<u32> = (0..40).chain(of_record).collect();
            random.shuffle(&mut all);
            for table in &all[..random.usize(1..all.len())] {
                for _ in 0..[1, 1, 1, 1, 2, 12][random.usize(0..6)] {
                    writer.begin(*table);
                    for field in 0..5 {
                        if random.u8(0..10) == 0 {
                            continue;
                        }
                        match field {
                            0 => writer.number(0, random.i32(-99..99).into(), 0),
                            1 => writer.number(1, f64::from(random.i32(-99..99)) / 100.0, 2),
                            2 => writer.number(2, random.f64(), NOT_DECIMAL),
                            3 => writer.boolean(3, random.bool()),
                            _ => writer.string(4, ["", "on", "off"][random.usize(0..3)]),
                        }
                    }
                    if random.u8(0..10) > 0 {
                        writer.metadata("{\"room\":1}");
                    }
                    // Some are late.
                    writer.commit(sequence as i64 * 10 + random.i64(-500..500).min(100));
                }
            }
            for place in 0..series.len() as u32 {
                if random.u8(0..9) == 0 {
                    writer.end_series(series[place as usize].source, SERIES_ORDINALS_FROM + place, 0);
                }
            }
            let apply = |store: &mut Store, writer: &RowsWriter| {
                let mut bytes = Vec::new();
                let single_rows = writer.encode(&mut bytes);
                (store.apply(&bytes, sequence, &series), single_rows)
            };
            let (applied, single_rows) = apply(&mut single, &writer);
            has_single_rows |= single_rows;
            writer.for_each_table(|_, _| Some(()), |_, ()| ());
            assert_eq!(apply(&mut tables, &writer), (applied, false));
            sequence += u64::from(writer.rows());
            if random.u8(0..20) == 0 {
                assert_eq!(contents(&single), contents(&tables));
            }
        }
        assert!(has_single_rows);
        assert_eq!(contents(&single), contents(&tables));
    }
}

/// The rows of a store, and what it counts of them.
fn contents(store: &Store) -> Vec<String> {
    let of_series = |series: &Series| {
        let chunks: Vec<&Columns> = series.chunks().map(|chunk| &**chunk).collect();
        let rows = Columns::merged(&chunks);
        let fields = rows.fields.iter().map(|field| {
            let values: Vec<_> = (0..rows.rows()).map(|row| field.column.value(row)).collect();
            format!("{} {} {values:?}", field.field, field.column.values.decimals())
        });
        let keys: Vec<_> = (0..rows.rows()).map(|row| rows.key(row)).collect();
        let metadata = rows.metadata.as_ref();
        let metadata: Vec<_> = (0..rows.rows())
            .map(|row| metadata.and_then(|column| column.value(row)))
            .collect();
        let fields: Vec<String> = fields.collect();
        let (source, newest_ns, stats) = (series.source, series.newest_ns(), series.stats());
        format!("{source} {newest_ns:?} {stats:?} {keys:?} {fields:?} {metadata:?}")
    };
    let totals = store.view().stats(i64::MIN, &|| false, &mut Err).unwrap();
    let counts = (store.unsaved(), store.series_count(), totals);
    let all = store.all_series().map(of_series);
    std::iter::once(format!("{counts:?}")).chain(all).collect()
}
