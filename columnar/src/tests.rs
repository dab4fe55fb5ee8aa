use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampNanosecondType};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

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

/// Writes rows, and takes the bytes after each; the greatest memory that the writer held, too.
fn written(format: Format, rows: usize, text: &str) -> (Vec<u8>, usize) {
    let mut writer = TableWriter::new(format, &specs()).unwrap();
    let (mut bytes, mut held) = (Vec::new(), 0);
    for row in 0..rows {
        let [timestamps, numbers, booleans, texts] = writer.columns() else {
            panic!("four columns");
        };
        timestamps.push_timestamp(row as i64 * 1_000_000_007);
        match row % 3 {
            0 => numbers.push_null(),
            _ => numbers.push_number(row as f64 / 8.0),
        }
        booleans.push_boolean(row % 2 == 0);
        match row % 5 {
            0 => texts.push_null(),
            1 => texts.push_text(""),
            _ => texts.push_text(&format!("{text}{row}")),
        }
        writer.add_rows(1).unwrap();
        held = held.max(writer.memory_bytes());
        bytes.extend(writer.take_bytes());
    }
    writer.finish().unwrap();
    bytes.extend(writer.take_bytes());
    (bytes, held)
}

fn read(format: Format, bytes: Vec<u8>) -> (SchemaRef, Vec<RecordBatch>) {
    match format {
        Format::Arrow => {
            let reader = StreamReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
            (reader.schema(), reader.map(Result::unwrap).collect())
        }
        Format::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
            let schema = Arc::clone(builder.schema());
            (schema, builder.build().unwrap().map(Result::unwrap).collect())
        }
    }
}

#[test]
fn both_formats_give_back_what_was_written() {
    for format in [Format::Arrow, Format::Parquet] {
        for rows in [0, 1, BATCH_ROWS_MAX, 3 * BATCH_ROWS_MAX + 5] {
            let (schema, batches) = read(format, written(format, rows, "x").0);
            let types: Vec<_> = schema
                .fields()
                .iter()
                .map(|field| {
                    (
                        field.name().as_str(),
                        field.data_type().clone(),
                        field.is_nullable(),
                    )
                })
                .collect();
            let utc = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
            assert_eq!(
                types,
                [
                    ("timestamp", utc, false),
                    ("a.b", DataType::Float64, true),
                    ("on", DataType::Boolean, true),
                    ("text", DataType::Utf8, true),
                ]
            );
            let mut row = 0;
            for batch in &batches {
                let timestamps = batch.column(0).as_primitive::<TimestampNanosecondType>();
                let numbers = batch.column(1).as_primitive::<Float64Type>();
                let (booleans, texts) = (batch.column(2).as_boolean(), batch.column(3).as_string::<i32>());
                for index in 0..batch.num_rows() {
                    assert_eq!(timestamps.value(index), row as i64 * 1_000_000_007);
                    let number = numbers.is_valid(index).then(|| numbers.value(index));
                    assert_eq!(number, (row % 3 != 0).then_some(row as f64 / 8.0));
                    assert_eq!(booleans.value(index), row % 2 == 0);
                    let text = texts.is_valid(index).then(|| texts.value(index).to_owned());
                    let expected = match row % 5 {
                        0 => None,
                        1 => Some(String::new()),
                        _ => Some(format!("x{row}")),
                    };
                    assert_eq!(text, expected);
                    row += 1;
                }
            }
            assert_eq!(row, rows, "{format:?}");
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
        let (_, batches) = read(format, bytes);
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, 60_000);
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
    let (_, batches) = read(Format::Arrow, writer.take_bytes());
    assert!((1..4).all(|column| batches[0].column(column).is_null(0)));
}
