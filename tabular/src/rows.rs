//! A batch of rows.

use std::collections::HashMap;
use std::ops::Range;

use crate::{BATCH_BYTES, BATCH_CELLS, BATCH_ROWS_MAX, COLUMNS_MAX};

/// A value of a row. A column without one has no cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Characters of CSV, which say no type. They are empty only between quotes.
    Untyped(&'a str),
    /// A text.
    Text(&'a str),
    /// A number in the spelling of JSON.
    Spelled(&'a str),
    /// A double, neither NaN nor infinite.
    Double(f64),
    /// An integer.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
    /// Nanoseconds since 1970 UTC.
    Time(i64),
    /// An object or array of JSON, as it is spelled.
    Json(&'a str),
}

#[derive(Clone, Copy)]
enum Kind {
    Untyped,
    Text,
    Spelled,
    Json,
}

#[derive(Clone, Copy)]
enum Stored {
    /// Bytes of the batch's texts.
    Text(Kind, u32, u32),
    Double(f64),
    Integer(i64),
    Boolean(bool),
    Time(i64),
}

struct RowEnd {
    /// Number of cells, and of bytes of text, up to the end of the row.
    cells: usize,
    text: usize,
    line: Option<u64>,
    fault: Option<Box<str>>,
}

/// A batch of rows, by columns that it names.
#[derive(Default)]
pub struct Rows {
    columns: Vec<Box<str>>,
    by_name: HashMap<Box<str>, u32>,
    /// For each column, the row that had a cell of it last, from 1.
    seen: Vec<u32>,
    text: String,
    /// Rows that are not UTF-8: no cell refers to them, but a digest covers them.
    faulty: Vec<u8>,
    cells: Vec<(u32, Stored)>,
    rows: Vec<RowEnd>,
}

/// A row.
pub struct Row<'a> {
    /// What is wrong with it. Then it has no cells.
    pub fault: Option<&'a str>,
    cells: &'a [(u32, Stored)],
    text: &'a str,
}

impl<'a> Row<'a> {
    /// The cells with the places of their columns; no column twice.
    pub fn cells(&self) -> impl Iterator<Item = (usize, Cell<'a>)> + use<'a> {
        let text = self.text;
        self.cells.iter().map(move |(column, stored)| {
            let cell = match *stored {
                Stored::Text(kind, start, end) => {
                    // Cells were added with the ends of their texts.
                    let text = text.get(start as usize..end as usize).unwrap_or_default();
                    match kind {
                        Kind::Untyped => Cell::Untyped(text),
                        Kind::Text => Cell::Text(text),
                        Kind::Spelled => Cell::Spelled(text),
                        Kind::Json => Cell::Json(text),
                    }
                }
                Stored::Double(number) => Cell::Double(number),
                Stored::Integer(number) => Cell::Integer(number),
                Stored::Boolean(boolean) => Cell::Boolean(boolean),
                Stored::Time(ns) => Cell::Time(ns),
            };
            (*column as usize, cell)
        })
    }
}

impl Rows {
    /// The names of the columns.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(|name| &**name)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Size of the texts.
    pub fn text_bytes(&self) -> usize {
        self.text.len() + self.faulty.len()
    }

    /// Whether the batch takes no more rows.
    pub fn is_full(&self) -> bool {
        let is_large = |last: &RowEnd| last.text >= BATCH_BYTES || last.cells >= BATCH_CELLS;
        self.rows.len() >= BATCH_ROWS_MAX || self.rows.last().is_some_and(is_large)
    }

    /// The rows, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let cells = &self.cells[std::mem::replace(&mut start, row.cells)..row.cells];
            Row {
                fault: row.fault.as_deref(),
                cells,
                text: &self.text,
            }
        })
    }

    /// The line of a row in the file, from 1; `None` in Parquet, which has no lines.
    pub fn line(&self, row: usize) -> Option<u64> {
        self.rows.get(row)?.line
    }

    /// Gives everything that makes these rows what they are to `take`, piece by piece: what a digest covers.
    pub fn digest(&self, mut take: impl FnMut(&[u8])) {
        for name in &self.columns {
            take(&(name.len() as u64).to_le_bytes());
            take(name.as_bytes());
        }
        let mut ends = self.rows.iter().map(|row| (row.cells, row.fault.is_some()));
        let mut end = ends.next();
        for (index, (column, stored)) in self.cells.iter().enumerate() {
            while let Some((cells, is_fault)) = end.filter(|(cells, _)| *cells <= index) {
                take(&[0xff, u8::from(is_fault)]);
                take(&(cells as u64).to_le_bytes());
                end = ends.next();
            }
            let (kind, value) = match *stored {
                Stored::Text(kind, start, end) => (kind as u8, u64::from(end - start)),
                Stored::Double(number) => (10, number.to_bits()),
                Stored::Integer(number) => (11, number.cast_unsigned()),
                Stored::Boolean(boolean) => (12, u64::from(boolean)),
                Stored::Time(ns) => (13, ns.cast_unsigned()),
            };
            take(&[kind]);
            take(&column.to_le_bytes());
            take(&value.to_le_bytes());
        }
        take(&(self.rows.len() as u64).to_le_bytes());
        take(self.text.as_bytes());
        take(&self.faulty);
    }

    /// Removes the rows and keeps the columns.
    pub(crate) fn clear(&mut self) {
        self.seen.fill(0);
        self.text.clear();
        self.faulty.clear();
        self.cells.clear();
        self.rows.clear();
    }

    /// Removes the rows and the columns, which were those of the rows.
    pub(crate) fn clear_all(&mut self) {
        self.columns.clear();
        self.by_name.clear();
        self.seen.clear();
        self.clear();
    }

    /// Adds a column. Returns its place, or `None` if there is one of this name, or there are too many.
    pub(crate) fn add_column(&mut self, name: &str) -> Option<u32> {
        if self.columns.len() >= COLUMNS_MAX || self.by_name.contains_key(name) {
            return None;
        }
        let place = self.columns.len() as u32;
        self.by_name.insert(name.into(), place);
        self.columns.push(name.into());
        self.seen.push(0);
        Some(place)
    }

    /// The place of a column.
    pub(crate) fn column(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Whether the row that is being added has a cell of this column already. From now on it has.
    pub(crate) fn note_cell(&mut self, column: u32) -> bool {
        let row = self.rows.len() as u32 + 1;
        std::mem::replace(&mut self.seen[column as usize], row) == row
    }

    /// Makes room for so many bytes of text.
    pub(crate) fn reserve_text(&mut self, bytes: usize) {
        self.text.reserve(bytes);
    }

    /// Adds a cell whose text is this range of the texts of its row, which follow by [`Rows::push_row_text`].
    pub(crate) fn push_untyped(&mut self, column: u32, text: Range<usize>) {
        let start = self.text.len();
        self.push_range(column, Kind::Untyped, start + text.start..start + text.end);
    }

    /// Adds the texts of the row that is being added.
    pub(crate) fn push_row_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(crate) fn push_text(&mut self, column: u32, text: &str) {
        self.push_copied(column, Kind::Text, text);
    }

    pub(crate) fn push_spelled(&mut self, column: u32, number: &str) {
        self.push_copied(column, Kind::Spelled, number);
    }

    pub(crate) fn push_json(&mut self, column: u32, json: &str) {
        self.push_copied(column, Kind::Json, json);
    }

    pub(crate) fn push_double(&mut self, column: u32, number: f64) {
        self.cells.push((column, Stored::Double(number)));
    }

    pub(crate) fn push_integer(&mut self, column: u32, number: i64) {
        self.cells.push((column, Stored::Integer(number)));
    }

    pub(crate) fn push_boolean(&mut self, column: u32, boolean: bool) {
        self.cells.push((column, Stored::Boolean(boolean)));
    }

    pub(crate) fn push_time(&mut self, column: u32, ns: i64) {
        self.cells.push((column, Stored::Time(ns)));
    }

    fn push_copied(&mut self, column: u32, kind: Kind, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.push_range(column, kind, start..self.text.len());
    }

    fn push_range(&mut self, column: u32, kind: Kind, Range { start, end }: Range<usize>) {
        // A batch has at most the bytes of a batch and of a row.
        self.cells
            .push((column, Stored::Text(kind, start as u32, end as u32)));
    }

    /// Adds the bytes of a row that are no text.
    pub(crate) fn push_faulty_bytes(&mut self, bytes: &[u8]) {
        self.faulty.extend_from_slice(bytes);
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self, line: Option<u64>) {
        self.rows.push(RowEnd {
            cells: self.cells.len(),
            text: self.text_bytes(),
            line,
            fault: None,
        });
    }

    /// Ends a row that has a fault, and drops its cells.
    pub(crate) fn end_faulty_row(&mut self, line: Option<u64>, fault: impl Into<Box<str>>) {
        let before = self.rows.last().map_or(0, |row| row.cells);
        self.cells.truncate(before);
        self.rows.push(RowEnd {
            cells: before,
            text: self.text_bytes(),
            line,
            fault: Some(fault.into()),
        });
    }
}
