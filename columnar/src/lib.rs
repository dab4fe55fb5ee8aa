//! Tables as Parquet files and as Arrow IPC streams, by the official crates.
//!
//! [`TableReader`] reads the rows of a Parquet file. A [`TableWriter`] takes rows column by column and hands out bytes
//! as they are complete. It keeps at most one batch of rows and, for Parquet, one row group, both with a limit in
//! bytes: so memory does not grow with the table, except for the few hundred bytes that the end of a Parquet file says
//! of each row group and column. The crate knows neither the API nor the engine, and writes to memory only.

#![warn(missing_docs)]

mod column;
mod pages;
#[cfg(any(test, feature = "read"))]
pub mod read;
mod table_reader;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

pub use column::{Column, ColumnSpec, Kind};
pub use table_reader::{Batch, COLUMNS_MAX, ReadError, TableReader, Value};

/// Rows of a batch.
pub const BATCH_ROWS_MAX: usize = 8_192;
/// A batch ends with the row that reaches this size.
pub const BATCH_BYTES: usize = 1 << 20;
/// A row group ends with the batch that reaches this size, encoded.
pub const ROW_GROUP_BYTES: usize = 4 << 20;
/// Size of a page, and of a dictionary, which Parquet has for each column of a row group.
const PAGE_BYTES_MAX: usize = 256 << 10;
/// Rows of a row group.
const ROW_GROUP_ROWS_MAX: usize = 1 << 20;

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An Arrow IPC stream, with a record batch for each batch of rows.
    Arrow,
    /// A Parquet file, compressed with Snappy.
    Parquet,
}

/// The libraries refused a table. Since all is in memory, that is a fault of the caller or of a library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Arrow refused it.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// Parquet refused it.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}

/// Writes a table.
pub struct TableWriter {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    sink: Sink,
}

/// Boxed: the states of the writers are large and of different sizes.
enum Sink {
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
}

impl TableWriter {
    /// Begins a table with these columns.
    ///
    /// # Errors
    /// The columns make no schema.
    pub fn new(format: Format, specs: &[ColumnSpec]) -> Result<Self, Error> {
        let fields: Vec<_> = specs.iter().map(ColumnSpec::field).collect();
        let schema = Arc::new(Schema::new(fields));
        let sink = match format {
            Format::Arrow => Sink::Arrow(Box::new(StreamWriter::try_new(Vec::new(), &schema)?)),
            Format::Parquet => {
                let properties = Some(properties(specs));
                let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), properties)?;
                Sink::Parquet(Box::new(writer))
            }
        };
        Ok(TableWriter {
            schema,
            columns: specs.iter().map(|spec| Column::new(spec.kind)).collect(),
            rows: 0,
            sink,
        })
    }

    /// The columns of the batch. The caller adds the same number of values to each, and then counts them with
    /// [`TableWriter::add_rows`].
    pub fn columns(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// Number of rows that the batch still takes.
    pub fn room(&self) -> usize {
        BATCH_ROWS_MAX - self.rows
    }

    /// Counts rows whose values were added to the columns. Writes the batch if it is full.
    ///
    /// # Errors
    /// The columns have different lengths, or a value is missing that must not be.
    pub fn add_rows(&mut self, rows: usize) -> Result<(), Error> {
        self.rows += rows;
        let bytes: usize = self.columns.iter().map(Column::bytes).sum();
        match self.rows >= BATCH_ROWS_MAX || bytes >= BATCH_BYTES {
            true => self.write_batch(),
            false => Ok(()),
        }
    }

    fn write_batch(&mut self) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let arrays = self.columns.iter_mut().map(Column::take).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        match &mut self.sink {
            Sink::Arrow(writer) => writer.write(&batch)?,
            Sink::Parquet(writer) => {
                writer.write(&batch)?;
                // The memory of pages that are not complete yet counts as well.
                if writer.memory_size() >= ROW_GROUP_BYTES {
                    writer.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Writes what is left of the table, and its end.
    ///
    /// # Errors
    /// As [`TableWriter::add_rows`].
    pub fn finish(&mut self) -> Result<(), Error> {
        self.write_batch()?;
        match &mut self.sink {
            Sink::Arrow(writer) => writer.finish()?,
            Sink::Parquet(writer) => drop(writer.finish()?),
        }
        Ok(())
    }

    /// Takes the bytes that are complete.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(match &mut self.sink {
            Sink::Arrow(writer) => writer.get_mut(),
            Sink::Parquet(writer) => writer.inner_mut(),
        })
    }

    /// Memory that the writer holds besides complete bytes, approximately.
    pub fn memory_bytes(&self) -> usize {
        let batch: usize = self.columns.iter().map(Column::bytes).sum();
        batch
            + match &self.sink {
                Sink::Arrow(_) => 0,
                Sink::Parquet(writer) => writer.memory_size(),
            }
    }
}

fn properties(specs: &[ColumnSpec]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS_MAX))
        // What a column keeps besides the row group: a page and a dictionary.
        .set_data_page_size_limit(PAGE_BYTES_MAX)
        .set_dictionary_page_size_limit(PAGE_BYTES_MAX)
        // What readers of a whole row group need. Statistics of pages would be kept until the end of the file.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for spec in specs {
        let path = ColumnPath::from(spec.name.as_str());
        if spec.is_distinct {
            // A dictionary would have an entry for each row.
            properties = properties.set_column_dictionary_enabled(path.clone(), false);
            if spec.kind == Kind::Timestamp {
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
    }
    properties.build()
}
