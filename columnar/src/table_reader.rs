//! Reads the rows of a Parquet file.
//!
//! The file may come from anybody: its end and its pages are bounded before the library reads them, and a batch has as
//! many rows as fit into bounded memory even if each has the largest text of its page.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::pages::{PAGE_BYTES_MAX, largest_page};

/// Size of the end of a file, which says what is where: about 10,000 column chunks.
pub const FOOTER_BYTES_MAX: u64 = 4 << 20;
/// Columns of a file.
pub const COLUMNS_MAX: usize = 1_024;
/// Rows of a batch.
const READ_ROWS_MAX: usize = 1_024;
/// Texts of a batch.
const READ_TEXT_BYTES: u64 = 64 << 20;
/// The length of the end and the four letters behind it.
const TAIL_BYTES: usize = 8;
const DAY_NS: i64 = 86_400_000_000_000;

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no Parquet file, or not as it was written.
    #[error("the Parquet file cannot be read: {0}")]
    Damaged(String),
    /// A column has values that are no numbers, booleans, texts or times.
    #[error(
        "the column {0:?} has the type {1}; numbers, booleans, strings, dates and timestamps are possible"
    )]
    Type(String, String),
    /// Pages are compressed in a way that is not known.
    #[error("the file is compressed with {0}; write it with snappy, zstd or without compression")]
    Compression(String),
    /// A page is too large, in bytes.
    #[error(
        "the file has a page of {0} bytes; pages have at most {max} bytes, and writers make smaller ones by default",
        max = PAGE_BYTES_MAX
    )]
    Page(u64),
    /// The end is too large, in bytes.
    #[error("what the file says of its row groups has {0} bytes, and may have {max}; write larger row groups", max = FOOTER_BYTES_MAX)]
    Footer(u64),
    /// There are too many columns.
    #[error("the file has {0} columns, and may have {max}", max = COLUMNS_MAX)]
    Columns(usize),
    /// The disk failed.
    #[error("the file cannot be read from the disk: {0}")]
    Io(std::io::Error),
}

/// A value of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// None.
    Null,
    /// Nanoseconds since 1970 UTC. Times without a zone are UTC.
    Timestamp(i64),
    /// A double.
    Number(f64),
    /// An integer.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(&'a str),
    /// A time that nanoseconds in 64 bits do not reach.
    OutOfRange,
}

/// Reads a Parquet file from its beginning to its end.
pub struct TableReader {
    columns: Vec<String>,
    batches: ParquetRecordBatchReader,
}

/// Rows that follow each other.
pub struct Batch(RecordBatch);

impl TableReader {
    /// Reads the end of a file, and looks at its pages.
    ///
    /// # Errors
    /// The file has something that cannot be read, or not within bounded memory.
    pub fn open(mut file: File) -> Result<Self, ReadError> {
        check_footer(&mut file)?;
        let pages = file.try_clone()?;
        // The types of other programs, which a file may have too, are nothing that a reader needs.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new_with_options(file, options))?;
        let builder = builder.map_err(damaged)?;
        let schema = builder.schema();
        if schema.fields().len() > COLUMNS_MAX {
            return Err(ReadError::Columns(schema.fields().len()));
        }
        let mut texts = Vec::new();
        for field in schema.fields() {
            if !is_readable(field.data_type()) {
                let kind = field.data_type().to_string();
                return Err(ReadError::Type(field.name().clone(), kind));
            }
            texts.push(*field.data_type() == DataType::Utf8);
        }
        let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        let row_bytes = check_pages(&mut BufReader::new(pages), builder.metadata(), &texts)?;
        let rows = (READ_TEXT_BYTES / row_bytes.max(1)) as usize;
        let batches = guarded(|| builder.with_batch_size(rows.clamp(1, READ_ROWS_MAX)).build())?;
        Ok(TableReader {
            columns,
            batches: batches.map_err(damaged)?,
        })
    }

    /// The names of the columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// Reads the rows that follow; `None` at the end.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn read(&mut self) -> Result<Option<Batch>, ReadError> {
        match guarded(|| self.batches.next())? {
            None => Ok(None),
            Some(Ok(batch)) => Ok(Some(Batch(batch))),
            Some(Err(error)) => Err(damaged_batch(&error)),
        }
    }
}

impl Batch {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.num_rows()
    }

    /// The value of a column in a row.
    pub fn value(&self, column: usize, row: usize) -> Value<'_> {
        let column = self.0.column(column);
        if column.is_null(row) {
            return Value::Null;
        }
        macro_rules! integer {
            ($kind:ty) => {
                Value::Integer(column.as_primitive::<$kind>().value(row).into())
            };
        }
        macro_rules! time {
            ($kind:ty, $ns:expr) => {
                match i64::from(column.as_primitive::<$kind>().value(row)).checked_mul($ns) {
                    Some(ns) => Value::Timestamp(ns),
                    None => Value::OutOfRange,
                }
            };
        }
        match column.data_type() {
            DataType::Boolean => Value::Boolean(column.as_boolean().value(row)),
            DataType::Int8 => integer!(Int8Type),
            DataType::Int16 => integer!(Int16Type),
            DataType::Int32 => integer!(Int32Type),
            DataType::Int64 => integer!(Int64Type),
            DataType::UInt8 => integer!(UInt8Type),
            DataType::UInt16 => integer!(UInt16Type),
            DataType::UInt32 => integer!(UInt32Type),
            DataType::UInt64 => {
                let number = column.as_primitive::<UInt64Type>().value(row);
                i64::try_from(number).map_or(Value::Number(number as f64), Value::Integer)
            }
            DataType::Float32 => Value::Number(f64::from(column.as_primitive::<Float32Type>().value(row))),
            DataType::Float64 => Value::Number(column.as_primitive::<Float64Type>().value(row)),
            DataType::Date32 => time!(Date32Type, DAY_NS),
            DataType::Timestamp(TimeUnit::Second, _) => time!(TimestampSecondType, 1_000_000_000),
            DataType::Timestamp(TimeUnit::Millisecond, _) => time!(TimestampMillisecondType, 1_000_000),
            DataType::Timestamp(TimeUnit::Microsecond, _) => time!(TimestampMicrosecondType, 1_000),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => time!(TimestampNanosecondType, 1),
            _ => Value::Text(column.as_string::<i32>().value(row)),
        }
    }
}

fn is_readable(kind: &DataType) -> bool {
    kind.is_integer()
        || matches!(
            kind,
            DataType::Boolean
                | DataType::Float32
                | DataType::Float64
                | DataType::Date32
                | DataType::Timestamp(..)
                | DataType::Utf8
        )
}

/// Checks the size of the end of a file.
fn check_footer(file: &mut File) -> Result<(), ReadError> {
    let bytes = file.seek(SeekFrom::End(0))?;
    let mut tail = [0; TAIL_BYTES];
    if bytes < TAIL_BYTES as u64 {
        return Err(ReadError::Damaged("it is too short".to_owned()));
    }
    file.seek(SeekFrom::End(-(TAIL_BYTES as i64)))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    if magic != *b"PAR1" {
        return Err(ReadError::Damaged("it does not end as one".to_owned()));
    }
    match u64::from(u32::from_le_bytes([a, b, c, d])) {
        footer if footer > FOOTER_BYTES_MAX => Err(ReadError::Footer(footer)),
        _ => Ok(()),
    }
}

/// Checks the pages of a file. Returns the size of a row that has the largest possible texts.
fn check_pages(
    file: &mut BufReader<File>,
    metadata: &ParquetMetaData,
    texts: &[bool],
) -> Result<u64, ReadError> {
    let mut largest = vec![0; texts.len()];
    for chunk in metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns().iter().enumerate())
    {
        let (column, chunk) = chunk;
        match chunk.compression() {
            Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_) => {}
            other => return Err(ReadError::Compression(other.to_string())),
        }
        // The library's own function panics for what no file should say.
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let range = u64::try_from(start)
            .ok()
            .zip(u64::try_from(chunk.compressed_size()).ok());
        let (start, bytes) = range.ok_or_else(|| ReadError::Damaged("a column has no place".to_owned()))?;
        let page = largest_page(file, start, bytes)?;
        if let Some(largest) = largest
            .get_mut(column)
            .filter(|_| texts.get(column) == Some(&true))
        {
            *largest = page.max(*largest);
        }
    }
    Ok(largest.iter().sum())
}

/// Calls the library, which panics for some damaged files.
fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, ReadError> {
    // What it leaves behind is used no more.
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| ReadError::Damaged("it is damaged".to_owned()))
}

fn damaged(error: ParquetError) -> ReadError {
    ReadError::Damaged(error.to_string())
}

fn damaged_batch(error: &ArrowError) -> ReadError {
    ReadError::Damaged(error.to_string())
}
