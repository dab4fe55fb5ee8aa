//! Files of rows, read in bounded batches: CSV (RFC 4180), NDJSON (a flat JSON object on each line), Parquet.
//!
//! [`TextReader`] takes the bytes of a CSV or NDJSON file as they arrive, and [`ParquetReader`] reads a file. Both fill
//! [`Rows`], a batch whose size is bounded whatever the file holds: so is all memory. Where a batch ends depends on the
//! file alone and not on how its bytes arrive, so that a file that is sent twice has the same batches.
//!
//! What is wrong with one row is a fault of that row, and the others go on; a file that cannot be read at all is
//! [`Unreadable`]. The crate knows no source, schema or time: cells are what the file says.

#![warn(missing_docs)]

mod csv;
mod ndjson;
mod parquet;
mod rows;
#[cfg(test)]
mod tests;
mod text;

pub use columnar::COLUMNS_MAX;
pub use parquet::ParquetReader;
pub use rows::{Cell, Row, Rows};
pub use text::{Format, TextReader};

/// Rows of a batch.
pub const BATCH_ROWS_MAX: usize = 8_192;
/// A batch ends with the row that reaches this size of its texts.
pub const BATCH_BYTES: usize = 1 << 20;
/// A batch ends with the row that reaches this number of cells.
pub const BATCH_CELLS: usize = 1 << 17;
/// Size of a row. A longer one is a fault.
pub const ROW_BYTES_MAX: usize = 1 << 20;

/// A file that cannot be read, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);
