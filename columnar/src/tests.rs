use super::read::{Value, read};
use super::*;

fn specs() -> Vec<ColumnSpec> {
    let column = |name: &str, kind, is_nullable| ColumnSpec {
        name: name.to_owned(),
        kind,
        is_nullable,
        is_distinct: kind == Kind::Timestamp,
    };
    vec![
        column("timestamp", Kind::Timestamp, false),
        column("a.b", Kind::Number, true),
        column("on", Kind::Boolean, true),
        column("text", Kind::Text, true),
    ]
}

/// Rows with missing values.
fn row_of(row: usize, text: &str) -> [Value; 4] {
    [
        Value::Timestamp(row as i64 * 1_000_000_007),
        match row % 3 {
            0 => Value::Null,
            _ => Value::Number(row as f64 / 8.0),
        },
        Value::Boolean(row.is_multiple_of(2)),
        match row % 5 {
            0 => Value::Null,
            1 => Value::Text(String::new()),
            _ => Value::Text(format!("{text}{row}")),
        },
    ]
}

fn push(column: &mut Column, value: &Value) {
    match value {
        Value::Null => column.push_null(),
        Value::Timestamp(ns) => column.push_timestamp(*ns),
        Value::Number(number) => column.push_number(*number),
        Value::Boolean(boolean) => column.push_boolean(*boolean),
        Value::Text(text) => column.push_text(text),
    }
}

/// Writes rows, and takes the bytes after each. Returns also the greatest memory that the writer held.
fn written(format: Format, rows: usize, text: &str) -> (Vec<u8>, usize) {
    let mut writer = TableWriter::new(format, &specs()).unwrap();
    let (mut bytes, mut held) = (Vec::new(), 0);
    for row in 0..rows {
        for (column, value) in writer.columns().iter_mut().zip(&row_of(row, text)) {
            push(column, value);
        }
        writer.add_rows(1).unwrap();
        held = held.max(writer.memory_bytes());
        bytes.extend(writer.take_bytes());
    }
    writer.finish().unwrap();
    bytes.extend(writer.take_bytes());
    (bytes, held)
}

#[test]
fn both_formats_give_back_what_was_written() {
    for format in [Format::Arrow, Format::Parquet] {
        for rows in [0, 1, BATCH_ROWS_MAX, 3 * BATCH_ROWS_MAX + 5] {
            let table = read(format, written(format, rows, "x").0).unwrap();
            let columns: Vec<_> = table
                .columns
                .iter()
                .map(|(name, kind)| (name.as_str(), kind.as_str()))
                .collect();
            assert_eq!(
                columns,
                [
                    ("timestamp", "Nanosecond UTC"),
                    ("a.b", "Float64"),
                    ("on", "Boolean"),
                    ("text", "Utf8"),
                ]
            );
            assert_eq!(table.rows.len(), rows, "{format:?}");
            for (row, values) in table.rows.iter().enumerate() {
                assert_eq!(values, &row_of(row, "x"), "{format:?}");
            }
        }
    }
}

#[test]
fn memory_does_not_grow_with_the_table() {
    let text = "t".repeat(1_000);
    for format in [Format::Arrow, Format::Parquet] {
        let (bytes, held) = written(format, 60_000, &text);
        let bound = match format {
            Format::Arrow => 2 * BATCH_BYTES,
            Format::Parquet => ROW_GROUP_BYTES + 4 * BATCH_BYTES,
        };
        assert!(held <= bound, "{format:?} held {held} bytes");
        assert_eq!(read(format, bytes).unwrap().rows.len(), 60_000);
    }
}

#[test]
fn a_value_of_another_type_is_null() {
    let mut writer = TableWriter::new(Format::Arrow, &specs()).unwrap();
    let [timestamps, numbers, booleans, texts] = writer.columns() else {
        panic!("four columns");
    };
    timestamps.push_timestamp(1);
    numbers.push_text("no number");
    booleans.push_number(1.0);
    texts.push_boolean(true);
    writer.add_rows(1).unwrap();
    writer.finish().unwrap();
    let table = read(Format::Arrow, writer.take_bytes()).unwrap();
    assert_eq!(table.rows[0][1..], [Value::Null, Value::Null, Value::Null]);
}
