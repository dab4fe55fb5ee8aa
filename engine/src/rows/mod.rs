//! The rows of one ingest request: written by the parser, stored in the log and applied by the store. Points are never
//! objects: their values go directly into columns, or into a buffer that the first rows of all sources share. The format
//! is described in FORMAT.md, "Rows".

mod newest;
mod read;
mod repeats;
mod single;
mod table;
mod write;
mod writer;

pub use crate::decimal::decimals_of;
pub use newest::{NewestRow, NewestRows, Scalar};
pub use repeats::KnownValues;
pub use writer::RowsWriter;

pub(crate) use read::{Decimals, RowsReader, Sources, Table, TableColumn, TableValues};

/// Marks numbers that are stored as doubles, rather than as integer mantissas: those whose text is in exponent form, −0,
/// more than 15 significant digits or more than 22 decimals; and of [`decimals_of`], those with more than six decimals.
pub const NOT_DECIMAL: u8 = u8::MAX;

/// Maximum number of decimals of a mantissa: 10^22 is the largest power of ten that a double represents exactly.
pub(crate) const DECIMALS_MAX: u8 = 22;

#[cfg(test)]
mod single_tests;
#[cfg(test)]
mod tests;
