//! The newest row of each source of a request, as plain data: used to notify others of an ingest without keeping its
//! columns.

use super::table::{Column, RowsWriter, Table, Values};

/// The newest row of each source, by timestamp; of several with the same timestamp, the last one received.
#[derive(Debug, Clone, Default)]
pub struct NewestRows {
    rows: Vec<Row>,
    values: Vec<(u16, Value)>,
    text: String,
}

/// A row, with references into the buffers.
#[derive(Debug, Clone)]
struct Row {
    source: u32,
    timestamp_ns: i64,
    place: u32,
    count: u32,
    /// End of its values; they begin where those of the previous row end.
    values_end: usize,
    metadata: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Number(f64),
    Boolean(bool),
    Text(usize, usize),
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

/// The newest row of one source.
#[derive(Debug, Clone, Copy)]
pub struct NewestRow<'a> {
    /// The source's ordinal within its bucket.
    pub source: u32,
    /// Nanoseconds since 1970 UTC.
    pub timestamp_ns: i64,
    /// The row's position within the request, from 0.
    pub place: u32,
    /// Number of rows of this source in the request.
    pub count: u32,
    /// JSON text as received; `None` if the row has no metadata.
    pub metadata: Option<&'a str>,
    values: &'a [(u16, Value)],
    text: &'a str,
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
        for (field, column) in table.columns.iter().enumerate() {
            if let Some(column) = column
                && let Some(index) = index_of(&column.rows, row)
            {
                let value = self.value(column, index);
                self.values.push((field as u16, value));
            }
        }
        let metadata = index_of(&table.metadata_rows, row);
        let metadata = metadata.map(|index| self.keep(table.metadata.get(index)));
        self.rows.push(Row {
            source: table.source,
            timestamp_ns: *timestamp_ns,
            place: table.places[row],
            count: table.timestamps_ns.len() as u32,
            values_end: self.values.len(),
            metadata,
        });
    }

    fn value(&mut self, column: &Column, index: usize) -> Value {
        match &column.values {
            Values::Numbers { values, .. } => Value::Number(values[index]),
            Values::Booleans(values) => Value::Boolean(values[index]),
            Values::Texts(texts) => {
                let (start, end) = self.keep(texts.get(index));
                Value::Text(start, end)
            }
        }
    }

    fn keep(&mut self, text: &str) -> (usize, usize) {
        let start = self.text.len();
        self.text.push_str(text);
        (start, self.text.len())
    }

    /// Number of sources with rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Approximate memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
            + self.values.capacity() * size_of::<(u16, Value)>()
            + self.text.capacity()
    }

    /// The row of the source at this index, from 0, in the order of the sources' first rows.
    pub fn get(&self, index: usize) -> Option<NewestRow<'_>> {
        let row = self.rows.get(index)?;
        let start = match index {
            0 => 0,
            _ => self.rows[index - 1].values_end,
        };
        Some(NewestRow {
            source: row.source,
            timestamp_ns: row.timestamp_ns,
            place: row.place,
            count: row.count,
            metadata: row.metadata.map(|(start, end)| &self.text[start..end]),
            values: &self.values[start..row.values_end],
            text: &self.text,
        })
    }
}

impl<'a> NewestRow<'a> {
    /// The row's values with their fields' ordinals, ascending.
    pub fn values(&self) -> impl Iterator<Item = (u16, Scalar<'a>)> + use<'a> {
        let text = self.text;
        self.values.iter().map(move |(field, value)| {
            let scalar = match *value {
                Value::Number(number) => Scalar::Number(number),
                Value::Boolean(boolean) => Scalar::Boolean(boolean),
                Value::Text(start, end) => Scalar::Text(&text[start..end]),
            };
            (*field, scalar)
        })
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
