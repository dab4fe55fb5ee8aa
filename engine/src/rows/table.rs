//! The writer: one scratch table per source of a request, reused from request to request.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::{DECIMALS_MAX, NOT_DECIMAL};
use crate::column::TEXT_BYTES;
use crate::ends::source_of_ends;

/// One value of the current row.
enum Cell {
    /// With its number of decimals.
    Number(f64, u8),
    Boolean(bool),
    /// The range of the text in the row's texts.
    Text(Range<usize>),
}

/// Values of one field; `rows` lists the rows of the table that have one.
pub(super) struct Column {
    pub(super) rows: Vec<u32>,
    pub(super) values: Values,
}

pub(super) enum Values {
    Numbers { values: Vec<f64>, decimals: u8 },
    Booleans(Vec<bool>),
    Texts(Texts),
}

/// Concatenated texts with their end offsets.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) text: String,
    pub(super) ends: Vec<usize>,
}

impl Values {
    /// No values, of the type of this one.
    fn empty_like(cell: &Cell) -> Self {
        match cell {
            Cell::Number(..) => Values::Numbers {
                values: Vec::new(),
                decimals: 0,
            },
            Cell::Boolean(_) => Values::Booleans(Vec::new()),
            Cell::Text(_) => Values::Texts(Texts::default()),
        }
    }

    /// Appends a value; false if it is of another type. `texts` are those of its row.
    fn push(&mut self, cell: &Cell, texts: &str) -> bool {
        match (self, cell) {
            (Values::Numbers { values, decimals }, Cell::Number(value, stated)) => {
                values.push(*value);
                *decimals = (*decimals).max(*stated);
            }
            (Values::Booleans(values), Cell::Boolean(value)) => values.push(*value),
            (Values::Texts(values), Cell::Text(range)) => values.push(&texts[range.clone()]),
            _ => return false,
        }
        true
    }

    /// Capacity of the buffers in bytes.
    fn scratch_bytes(&self) -> usize {
        match self {
            Values::Numbers { values, .. } => values.capacity() * size_of::<f64>(),
            Values::Booleans(values) => values.capacity(),
            Values::Texts(texts) => texts.scratch_bytes(),
        }
    }
}

impl Texts {
    /// Approximate memory of a dictionary of these texts, in bytes.
    fn memory_bytes(&self) -> usize {
        self.text.len() + self.ends.len() * TEXT_BYTES
    }

    fn scratch_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// The rows of one source.
#[derive(Default)]
pub(super) struct Table {
    pub(super) source: u32,
    pub(super) timestamps_ns: Vec<i64>,
    /// Position of each row within the request.
    pub(super) places: Vec<u32>,
    /// By field ordinal; a column without rows is a field that does not occur in this request.
    columns: Vec<Option<Column>>,
    pub(super) metadata_rows: Vec<u32>,
    pub(super) metadata: Texts,
    /// The capacity of its buffers in bytes when it was last measured.
    measured_bytes: usize,
}

impl Table {
    fn clear(&mut self, source: u32) {
        self.source = source;
        self.timestamps_ns.clear();
        self.places.clear();
        self.metadata_rows.clear();
        self.metadata.clear();
        for column in self.columns.iter_mut().flatten() {
            column.rows.clear();
            match &mut column.values {
                Values::Numbers { values, decimals } => {
                    values.clear();
                    *decimals = 0;
                }
                Values::Booleans(values) => values.clear(),
                Values::Texts(texts) => texts.clear(),
            }
        }
    }

    /// The columns that have rows, with their fields' ordinals.
    pub(super) fn present_columns(&self) -> impl Iterator<Item = (u16, &Column)> {
        let columns = self.columns.iter().enumerate();
        let columns = columns.filter_map(|(field, column)| Some((field as u16, column.as_ref()?)));
        columns.filter(|(_, column)| !column.rows.is_empty())
    }

    /// The columns that have rows, with their fields' ordinals.
    pub(super) fn columns_mut(&mut self) -> impl Iterator<Item = (u16, &mut Column)> + use<'_> {
        let columns = self.columns.iter_mut().enumerate();
        let columns = columns.filter_map(|(field, column)| Some((field as u16, column.as_mut()?)));
        columns.filter(|(_, column)| !column.rows.is_empty())
    }

    /// Approximate memory of the rows in a head, where every row takes space in every column.
    fn memory_bytes(&self) -> usize {
        let mut row_bytes = size_of::<i64>() + size_of::<u64>();
        let mut text_bytes = self.metadata.memory_bytes();
        for (_, column) in self.present_columns() {
            row_bytes += match &column.values {
                Values::Numbers { .. } => size_of::<f64>(),
                Values::Booleans(_) => size_of::<bool>(),
                Values::Texts(texts) => {
                    text_bytes += texts.memory_bytes();
                    size_of::<u32>()
                }
            };
        }
        self.timestamps_ns.len() * row_bytes + text_bytes
    }

    /// Capacity of the buffers in bytes.
    fn scratch_bytes(&self) -> usize {
        let columns = self.columns.iter().flatten();
        let columns = columns
            .map(|column| column.rows.capacity() * size_of::<u32>() + column.values.scratch_bytes())
            .sum::<usize>();
        size_of::<Self>()
            + columns
            + self.columns.capacity() * size_of::<Option<Column>>()
            + self.timestamps_ns.capacity() * size_of::<i64>()
            + (self.places.capacity() + self.metadata_rows.capacity()) * size_of::<u32>()
            + self.metadata.scratch_bytes()
    }

    /// Adds a value of a row; `texts` are those of the row.
    fn push(&mut self, row: u32, field: u16, cell: &Cell, texts: &str) {
        let index = usize::from(field);
        if self.columns.len() <= index {
            self.columns.resize_with(index + 1, || None);
        }
        let column = self.columns[index].get_or_insert_with(|| Column {
            rows: Vec::new(),
            values: Values::empty_like(cell),
        });
        if !column.values.push(cell, texts) {
            // Another request used this scratch table for a source whose field with this ordinal has another type.
            column.rows.clear();
            column.values = Values::empty_like(cell);
            column.values.push(cell, texts);
        }
        column.rows.push(row);
    }
}

/// Hashes a source's ordinal by multiplication (Knuth, The Art of Computer Programming 3, 6.4). The catalog assigns
/// ordinals consecutively, so no client can choose them to collide.
#[derive(Default)]
struct OrdinalHasher(u64);

impl Hasher for OrdinalHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u32(self.0 as u32 ^ u32::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, ordinal: u32) {
        // 2^64 divided by the golden ratio; the map takes bits from both ends.
        let product = u64::from(ordinal).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

/// Collects rows of many sources into columns. A writer is reused for many requests, so that its buffers are allocated
/// once. The order of calls is `begin`, values and metadata, then `commit` or `abort`.
#[derive(Default)]
pub struct RowsWriter {
    tables: Vec<Table>,
    /// The sum of their measured capacities.
    measured_bytes: usize,
    /// Number of tables that the request uses.
    used: usize,
    /// The index of each table by its source, which no other table has.
    by_source: HashMap<u32, usize, BuildHasherDefault<OrdinalHasher>>,
    rows: u32,
    open: usize,
    cells: Vec<(u16, Cell)>,
    /// Whether the current row's fields came in other than ascending order.
    unordered: bool,
    text: String,
    metadata: Option<Range<usize>>,
}

impl RowsWriter {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all rows; keeps the buffers.
    pub fn clear(&mut self) {
        for table in &mut self.tables[..self.used] {
            let now_bytes = table.scratch_bytes();
            let before_bytes = std::mem::replace(&mut table.measured_bytes, now_bytes);
            self.measured_bytes = self.measured_bytes - before_bytes + now_bytes;
        }
        self.used = 0;
        self.rows = 0;
        self.abort();
    }

    /// Frees buffers beyond about `bytes`, so that one wide or long request does not hold its memory forever. Removes
    /// all rows, like [`RowsWriter::clear`].
    pub fn clear_keeping(&mut self, bytes: usize) {
        let used = self.used;
        self.clear();
        if self.measured_bytes > bytes {
            // Those that this request did not use go first.
            self.tables.truncate(used);
            let mut kept_bytes = 0;
            let over = self.tables.iter().position(|table| {
                let is_over = kept_bytes + table.measured_bytes > bytes;
                kept_bytes += if is_over { 0 } else { table.measured_bytes };
                is_over
            });
            self.tables.truncate(over.unwrap_or(used));
            self.tables.shrink_to_fit();
            self.measured_bytes = kept_bytes;
            let tables = self.tables.iter().enumerate();
            self.by_source = tables.map(|(index, table)| (table.source, index)).collect();
        }
        self.text.shrink_to(bytes);
    }

    #[cfg(test)]
    pub(super) fn scratch_bytes(&self) -> usize {
        self.tables.iter().map(Table::scratch_bytes).sum()
    }

    /// Approximate memory of the rows in a store, in bytes; at least as much as they take here.
    pub fn memory_bytes(&self) -> usize {
        self.tables[..self.used].iter().map(Table::memory_bytes).sum()
    }

    /// Begins a row of `source`, the source's ordinal within its bucket.
    #[inline]
    pub fn begin(&mut self, source: u32) {
        self.abort();
        // Usually the source of the previous row, or the next one if sources alternate.
        let is = |table: &Table| table.source == source;
        let used = &self.tables[..self.used];
        if used.get(self.open).is_some_and(is) {
            return;
        }
        if used.get(self.open + 1).is_some_and(is) {
            self.open += 1;
        } else if used.first().is_some_and(is) {
            self.open = 0;
        } else {
            self.open = self.find_or_add(source);
        }
    }

    /// The table of a source; the next unused one if it has none yet. Requests usually have the sources of those before
    /// them in the same order, so that tables keep their sources from request to request.
    fn find_or_add(&mut self, source: u32) -> usize {
        let next = self.used;
        if self.tables.get(next).is_none_or(|table| table.source != source) {
            match self.by_source.get(&source).copied() {
                Some(known) if known < next => return known,
                Some(known) => {
                    self.tables.swap(known, next);
                    self.by_source.insert(self.tables[known].source, known);
                }
                None if next == self.tables.len() => self.tables.push(Table::default()),
                None => {
                    self.by_source.remove(&self.tables[next].source);
                }
            }
            self.by_source.insert(source, next);
        }
        self.tables[next].clear(source);
        self.used += 1;
        next
    }

    /// Sets a number field of the current row. `decimals` is the number of decimal places as written, or
    /// [`NOT_DECIMAL`]. If a field is set twice, the later value is kept.
    #[inline]
    pub fn number(&mut self, field: u16, value: f64, decimals: u8) {
        let decimals = if decimals > DECIMALS_MAX {
            NOT_DECIMAL
        } else {
            decimals
        };
        self.set(field, Cell::Number(value, decimals));
    }

    /// Sets a boolean field of the current row.
    #[inline]
    pub fn boolean(&mut self, field: u16, value: bool) {
        self.set(field, Cell::Boolean(value));
    }

    /// Sets a string field of the current row.
    #[inline]
    pub fn string(&mut self, field: u16, value: &str) {
        let text = self.keep(value);
        self.set(field, Cell::Text(text));
    }

    /// Sets the metadata of the current row: JSON text, stored as received.
    #[inline]
    pub fn metadata(&mut self, json: &str) {
        self.metadata = Some(self.keep(json));
    }

    #[inline]
    fn keep(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    #[inline]
    fn set(&mut self, field: u16, cell: Cell) {
        // If fields come in ascending order, as from a client that follows the schema's order, none can be a duplicate.
        self.unordered |= self.cells.last().is_some_and(|(last, _)| *last >= field);
        if self.unordered
            && let Some(earlier) = self.cells.iter_mut().find(|(earlier, _)| *earlier == field)
        {
            earlier.1 = cell;
            return;
        }
        self.cells.push((field, cell));
    }

    /// Discards the current row.
    #[inline]
    pub fn abort(&mut self) {
        self.cells.clear();
        self.unordered = false;
        self.text.clear();
        self.metadata = None;
    }

    /// Adds the current row to the request.
    #[inline]
    pub fn commit(&mut self, timestamp_ns: i64) {
        let table = &mut self.tables[self.open];
        let row = table.timestamps_ns.len() as u32;
        table.timestamps_ns.push(timestamp_ns);
        table.places.push(self.rows);
        for (field, cell) in &self.cells {
            table.push(row, *field, cell, &self.text);
        }
        if let Some(range) = self.metadata.take() {
            table.metadata_rows.push(row);
            table.metadata.push(&self.text[range]);
        }
        self.rows += 1;
        self.abort();
    }

    /// Number of committed rows, ends of series included.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Number of committed rows that are points.
    pub fn points(&self) -> u32 {
        let ends = self.ends().map(|table| table.timestamps_ns.len() as u32);
        self.rows - ends.sum::<u32>()
    }

    /// Ordinals of the sources that have committed rows.
    pub fn sources(&self) -> impl Iterator<Item = u32> {
        let of_points = self.tables().map(|table| table.source);
        of_points.chain(self.ends().filter_map(|table| source_of_ends(table.source)))
    }

    pub(super) fn used_tables(&mut self) -> impl Iterator<Item = &mut Table> {
        self.tables[..self.used].iter_mut()
    }

    /// Rows were removed from the tables.
    pub(super) fn forget_rows(&mut self, rows: u32) {
        self.rows -= rows;
    }

    /// The tables of points.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables_with_rows(false)
    }

    /// The tables of ends of series.
    pub(super) fn ends(&self) -> impl Iterator<Item = &Table> {
        self.tables_with_rows(true)
    }

    fn tables_with_rows(&self, of_ends: bool) -> impl Iterator<Item = &Table> {
        let is_wanted = move |table: &&Table| {
            !table.timestamps_ns.is_empty() && source_of_ends(table.source).is_some() == of_ends
        };
        self.tables[..self.used].iter().filter(is_wanted)
    }
}
