//! Reads tables back, for tests.

use std::fmt::{self, Display};
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{Error, Format};

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name and type of each column.
    pub columns: Vec<(String, String)>,
    /// The values of each row.
    pub rows: Vec<Vec<Value>>,
}

/// A value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None.
    Null,
    /// Nanoseconds since 1970.
    Timestamp(i64),
    /// A double.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(String),
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Timestamp(ns) => write!(f, "{ns} ns"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Boolean(boolean) => write!(f, "{boolean}"),
            Value::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// Reads a whole table.
///
/// # Errors
/// The bytes are no such table.
pub fn read(format: Format, bytes: Vec<u8>) -> Result<Table, Error> {
    let (schema, batches) = match format {
        Format::Arrow => {
            let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
            (reader.schema(), reader.collect::<Result<Vec<_>, _>>()?)
        }
        Format::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
            let schema: SchemaRef = Arc::clone(builder.schema());
            (schema, builder.build()?.collect::<Result<Vec<_>, _>>()?)
        }
    };
    let column = |field: &Arc<arrow_schema::Field>| {
        let kind = match field.data_type() {
            DataType::Timestamp(unit, zone) => {
                format!("{unit:?} {}", zone.as_deref().unwrap_or("without a zone"))
            }
            other => format!("{other:?}"),
        };
        (field.name().clone(), kind)
    };
    Ok(Table {
        columns: schema.fields().iter().map(column).collect(),
        rows: batches.iter().flat_map(rows_of).collect(),
    })
}

fn rows_of(batch: &RecordBatch) -> Vec<Vec<Value>> {
    let row = |row: usize| batch.columns().iter().map(|column| value(column, row)).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn value(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Timestamp(..) => {
            Value::Timestamp(column.as_primitive::<TimestampNanosecondType>().value(row))
        }
        DataType::Float64 => Value::Number(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Value::Boolean(column.as_boolean().value(row)),
        _ => Value::Text(column.as_string::<i32>().value(row).to_owned()),
    }
}
