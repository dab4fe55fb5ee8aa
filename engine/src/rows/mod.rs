//! The rows of one ingest request, as columns per source: what the parser writes, the log keeps and the store
//! applies. A point is never an object here: its values go straight to the columns they belong to.
//! The bytes are drawn in FORMAT.md, "Rows".

mod newest;
mod read;
mod table;
mod write;

pub use newest::{NewestRow, NewestRows, Scalar};
pub use table::RowsWriter;

pub(crate) use read::{RowsReader, Table, TableColumn, TableValues};

/// Said of a number whose text does not state decimals the engine could keep as an integer mantissa: exponent
/// forms, −0, more than 15 significant digits, more than 22 decimals. The double is kept as it is.
pub const NOT_DECIMAL: u8 = u8::MAX;

/// Most decimals a mantissa is scaled by: 10^22 is the largest power of ten that a double holds exactly.
pub(crate) const DECIMALS_MAX: u8 = 22;

#[cfg(test)]
mod tests;
