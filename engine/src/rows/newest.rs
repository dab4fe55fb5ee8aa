//! The newest row of each source of a request, as plain data: used to notify others of an ingest without keeping its
//! columns.

use std::collections::HashMap;
use std::ops::Range;

use super::table::{Cell, Table, Values};
use super::writer::{RowsWriter, SourceRows};

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
    /// The newest committed row of each source, in the order of the sources' first rows. `source` returns the source of
    /// a table.
    pub fn newest(&self, source: impl Fn(u32) -> u32) -> NewestRows {
        let mut newest = NewestRows::default();
        let mut by_source: Vec<Source<'_>> = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        for (table, rows) in self.sources_with_points() {
            let source = source(table);
            let place = *places.entry(source).or_insert(by_source.len());
            if place == by_source.len() {
                by_source.push(Source {
                    source,
                    count: 0,
                    newest: None,
                });
            }
            by_source[place].add(rows);
        }
        newest.rows.reserve_exact(by_source.len());
        by_source.iter().for_each(|source| newest.push(source));
        newest
    }
}

/// The rows of a source, which may have several tables.
struct Source<'t> {
    source: u32,
    count: u32,
    newest: Option<Newest<'t>>,
}

/// A row, and the rows among which it has this number.
struct Newest<'t> {
    timestamp_ns: i64,
    place: u32,
    number: usize,
    rows: SourceRows<'t>,
}

impl<'t> Source<'t> {
    fn add(&mut self, rows: SourceRows<'t>) {
        let timestamps_ns = rows.timestamps_ns();
        self.count += timestamps_ns.len() as u32;
        // `max_by_key` returns the last of equal elements.
        let newest = timestamps_ns
            .iter()
            .enumerate()
            .max_by_key(|(_, time_ns)| **time_ns);
        let found = newest.map(|(number, timestamp_ns)| Newest {
            timestamp_ns: *timestamp_ns,
            place: match &rows {
                SourceRows::One(row, ..) => row.place,
                SourceRows::Several(table) => table.places[number],
            },
            number,
            rows,
        });
        let key = |newest: &Newest<'_>| (newest.timestamp_ns, newest.place);
        self.newest = self.newest.take().into_iter().chain(found).max_by_key(key);
    }
}

impl NewestRows {
    fn push(&mut self, of: &Source<'_>) {
        let Some(newest) = &of.newest else { return };
        let values_start = self.values.len();
        let metadata = match &newest.rows {
            SourceRows::One(row, cells, texts) => {
                for cell in *cells {
                    let value = match cell {
                        Cell::Number { value, .. } => Value::Number(*value),
                        Cell::Boolean { value, .. } => Value::Boolean(*value),
                        Cell::Text { place, .. } => Value::Text(self.keep(place.of(texts))),
                    };
                    self.values.push((cell.field(), value));
                }
                row.metadata.map(|place| self.keep(place.of(texts)))
            }
            SourceRows::Several(table) => self.push_values(table, newest.number),
        };
        self.rows.push(NewestRow {
            source: of.source,
            timestamp_ns: newest.timestamp_ns,
            place: newest.place,
            count: of.count,
            values: values_start..self.values.len(),
            metadata,
        });
    }

    /// Adds the values of a row; returns its metadata.
    fn push_values(&mut self, table: &Table, row: usize) -> Option<Range<usize>> {
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
        metadata.map(|index| self.keep(table.metadata.get(index)))
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
