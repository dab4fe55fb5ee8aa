//! What is written comes back; what is damaged is an error.

use super::*;
use crate::column::Values;
use crate::columns::Columns;

fn columns_of(bytes: &[u8], source: u32) -> Columns {
    let mut reader = RowsReader::new(bytes).unwrap();
    let mut columns = Columns::default();
    while let Some(table) = reader.next().unwrap() {
        if table.source == source {
            columns.append(&table, 0..table.timestamps_ns.len(), 100);
        }
    }
    columns
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
fn rows_come_back_by_source_with_their_places() {
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
    // Once stored twice when another field stood between: only the last field was looked at.
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
fn scratch_forgets_the_request_before() {
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
    let bytes = sample();
    let read = |bytes: &[u8]| -> Result<u64, crate::EngineError> {
        let mut reader = RowsReader::new(bytes)?;
        let mut rows = 0;
        while let Some(table) = reader.next()? {
            rows += table.timestamps_ns.len() as u64;
        }
        Ok(rows)
    };
    for cut in 0..bytes.len() {
        assert!(read(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    for byte in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[byte] ^= 1 << bit;
            let _ = read(&flipped);
        }
    }
}
