//! The newest row of each source of a request, as plain data: used to notify others of an ingest without keeping its
//! columns.

use std::ops::Range;

use super::table::{RowsWriter, Table, Values};

/// The newest row of each source, by timestamp; of several with the same timestamp, the last one received.
#[derive(Debug, Clone, Default)]
pub struct NewestRows {
    rows: Vec<NewestRow>,
    values: Vec<(u16, Value)>,
    text: String,
}

/// The newest row of one source; its values and metadata are in the [`NewestRows`].
#[derive(Debug, Clone)]
pub struct NewestRow {
    /// The source's ordinal within its bucket.
    pub source: u32,
    /// Nanoseconds since 1970 UTC.
    pub timestamp_ns: i64,
    /// The row's position within the request, from 0.
    pub place: u32,
    /// Number of rows of this source in the request.
    pub count: u32,
    values: Range<usize>,
    metadata: Option<Range<usize>>,
}

#[derive(Debug, Clone)]
enum Value {
    Number(f64),
    Boolean(bool),
    Text(Range<usize>),
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    /// A number.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(&'a str),
}

impl RowsWriter {
    /// The newest committed row of each source, in the order of the sources' first rows.
    pub fn newest(&self) -> NewestRows {
        let mut newest = NewestRows::default();
        newest.rows.reserve_exact(self.tables().count());
        self.tables().for_each(|table| newest.push(table));
        newest
    }
}

impl NewestRows {
    fn push(&mut self, table: &Table) {
        // `max_by_key` returns the last of equal elements.
        let timestamps = table.timestamps_ns.iter().enumerate();
        let Some((row, timestamp_ns)) = timestamps.max_by_key(|(_, timestamp_ns)| **timestamp_ns) else {
            return;
        };
        let values_start = self.values.len();
        for (field, column) in table.present_columns() {
            if let Some(index) = index_of(&column.rows, row) {
                let value = match &column.values {
                    Values::Numbers { values, .. } => Value::Number(values[index]),
                    Values::Booleans(values) => Value::Boolean(values[index]),
                    Values::Texts(texts) => Value::Text(self.keep(texts.get(index))),
                };
                self.values.push((field, value));
            }
        }
        let metadata = index_of(&table.metadata_rows, row);
        let metadata = metadata.map(|index| self.keep(table.metadata.get(index)));
        self.rows.push(NewestRow {
            source: table.source,
            timestamp_ns: *timestamp_ns,
            place: table.places[row],
            count: table.timestamps_ns.len() as u32,
            values: values_start..self.values.len(),
            metadata,
        });
    }

    fn keep(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    /// The rows, in the order of the sources' first rows.
    pub fn rows(&self) -> &[NewestRow] {
        &self.rows
    }

    /// Approximate memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<NewestRow>()
            + self.values.capacity() * size_of::<(u16, Value)>()
            + self.text.capacity()
    }

    /// The values of one of the rows with their fields' ordinals, ascending.
    pub fn values(&self, row: &NewestRow) -> impl Iterator<Item = (u16, Scalar<'_>)> {
        self.values[row.values.clone()].iter().map(|(field, value)| {
            let scalar = match value {
                Value::Number(number) => Scalar::Number(*number),
                Value::Boolean(boolean) => Scalar::Boolean(*boolean),
                Value::Text(text) => Scalar::Text(&self.text[text.clone()]),
            };
            (*field, scalar)
        })
    }

    /// The metadata of one of the rows: JSON text as received; `None` if it has none.
    pub fn metadata(&self, row: &NewestRow) -> Option<&str> {
        Some(&self.text[row.metadata.clone()?])
    }
}

/// Index of a row among those that have a value.
fn index_of(rows: &[u32], row: usize) -> Option<usize> {
    // If all rows have a value, the index is the row itself.
    match rows.get(row) {
        Some(at) if *at as usize == row => Some(row),
        _ => rows.binary_search(&(row as u32)).ok(),
    }
}
