//! The writer: collects the rows of a request by source. A source's first row stays in a buffer that all sources share, so
//! that a request with a row for each of many sources changes few places in memory. Its second row moves both to a table
//! of columns. Buffers are reused from request to request.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::table::{Cell, Row, Table, TextPlace};
use super::{DECIMALS_MAX, NOT_DECIMAL};
use crate::column::TEXT_BYTES;
use crate::ends::source_of_ends;

/// Maximum number of values of first rows in the shared buffer, and of bytes of their texts. Further rows are written to
/// tables, which take less memory for long texts and many values.
const SHARED_CELLS_MAX: usize = 1 << 16;
const SHARED_TEXT_BYTES: usize = 1 << 20;

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

/// A source of a request.
struct Slot {
    source: u32,
    rows: SlotRows,
}

enum SlotRows {
    /// None has been committed.
    None,
    /// One, whose values are in the shared buffer.
    One(Row, Range<usize>),
    /// Several; the number of their table.
    Several(usize),
}

/// Memory of a slot and of its entry in the index by source, in bytes.
const SLOT_BYTES: usize = size_of::<Slot>() + 4 * size_of::<u32>();

/// The rows of a source, at least one.
pub(super) enum SourceRows<'w> {
    /// One row with its values, ascending by field, and the texts that these refer to.
    One(&'w Row, &'w [Cell], &'w str),
    Several(&'w Table),
}

impl<'w> SourceRows<'w> {
    pub(super) fn timestamps_ns(&self) -> &'w [i64] {
        match self {
            SourceRows::One(row, ..) => std::slice::from_ref(&row.timestamp_ns),
            SourceRows::Several(table) => &table.timestamps_ns,
        }
    }

    /// The ordinals of the fields that occur, ascending.
    pub(super) fn fields(&self) -> Vec<u16> {
        match self {
            SourceRows::One(_, cells, _) => cells.iter().map(Cell::field).collect(),
            SourceRows::Several(table) => table.present_columns().map(|(field, _)| field).collect(),
        }
    }

    /// Approximate memory in a head, in bytes.
    fn memory_bytes(&self) -> usize {
        match self {
            SourceRows::One(row, cells, _) => {
                size_of::<i64>()
                    + size_of::<u64>()
                    + cells.iter().map(Cell::memory_bytes).sum::<usize>()
                    + row.metadata.map_or(0, |place| place.len() + TEXT_BYTES)
            }
            SourceRows::Several(table) => table.memory_bytes(),
        }
    }
}

/// Collects rows of many sources into columns. A writer is reused for many requests, so that its buffers are allocated
/// once. The order of calls is `begin`, values and metadata, then `commit` or `abort`.
#[derive(Default)]
pub struct RowsWriter {
    slots: Vec<Slot>,
    /// Number of slots that the request uses.
    used: usize,
    /// The index of each slot by its source, which no other slot has.
    by_source: HashMap<u32, usize, BuildHasherDefault<OrdinalHasher>>,
    tables: Vec<Table>,
    /// Number of tables that the request uses.
    used_tables: usize,
    /// The sum of the tables' measured capacities.
    measured_bytes: usize,
    rows: u32,
    /// The slot of the current row.
    open: usize,
    /// The values of first rows, then those of the current row.
    cells: Vec<Cell>,
    first_cells: usize,
    /// The texts of first rows, then those of the current row.
    text: String,
    first_text_bytes: usize,
    /// Whether the current row's fields came in other than ascending order.
    unordered: bool,
    metadata: Option<TextPlace>,
}

impl RowsWriter {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all rows; keeps the buffers.
    pub fn clear(&mut self) {
        for table in &mut self.tables[..self.used_tables] {
            let now_bytes = table.scratch_bytes();
            let before_bytes = std::mem::replace(&mut table.measured_bytes, now_bytes);
            self.measured_bytes = self.measured_bytes - before_bytes + now_bytes;
        }
        (self.used, self.used_tables, self.rows) = (0, 0, 0);
        (self.first_cells, self.first_text_bytes) = (0, 0);
        self.abort();
    }

    /// Frees buffers beyond about `bytes`, so that one wide or long request does not hold its memory forever. Removes
    /// all rows, like [`RowsWriter::clear`].
    pub fn clear_keeping(&mut self, bytes: usize) {
        let (used, used_tables) = (self.used, self.used_tables);
        self.clear();
        // What all sources share first: each of its parts takes about a quarter at most.
        let share = bytes / 4;
        self.cells.shrink_to(share / size_of::<Cell>());
        self.text.shrink_to(share);
        let slots_max = share / SLOT_BYTES;
        if self.slots.len() > slots_max {
            self.slots.truncate(used.min(slots_max));
            self.slots.shrink_to_fit();
            let slots = self.slots.iter().enumerate();
            self.by_source = slots.map(|(index, slot)| (slot.source, index)).collect();
        }
        let bytes = bytes.saturating_sub(self.shared_bytes());
        if self.measured_bytes > bytes {
            // Those that this request did not use go first.
            self.tables.truncate(used_tables);
            let mut kept_bytes = 0;
            let over = self.tables.iter().position(|table| {
                let is_over = kept_bytes + table.measured_bytes > bytes;
                kept_bytes += if is_over { 0 } else { table.measured_bytes };
                is_over
            });
            self.tables.truncate(over.unwrap_or(used_tables));
            self.tables.shrink_to_fit();
            self.measured_bytes = kept_bytes;
        }
    }

    /// Capacity of the buffers that sources share, in bytes.
    fn shared_bytes(&self) -> usize {
        self.slots.capacity() * SLOT_BYTES + self.cells.capacity() * size_of::<Cell>() + self.text.capacity()
    }

    #[cfg(test)]
    pub(super) fn scratch_bytes(&self) -> usize {
        self.tables.iter().map(Table::scratch_bytes).sum::<usize>() + self.shared_bytes()
    }

    /// Approximate memory of the rows in a store, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.used_slots().map(|(_, rows)| rows.memory_bytes()).sum()
    }

    /// Begins a row of `source`, the source's ordinal within its bucket.
    #[inline]
    pub fn begin(&mut self, source: u32) {
        self.abort();
        // Usually the source of the previous row, or the next one if sources alternate.
        let is = |slot: &Slot| slot.source == source;
        let used = &self.slots[..self.used];
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

    /// The slot of a source; the next unused one if it has none yet. Requests usually have the sources of those before
    /// them in the same order, so that slots keep their sources from request to request.
    fn find_or_add(&mut self, source: u32) -> usize {
        let next = self.used;
        if self.slots.get(next).is_none_or(|slot| slot.source != source) {
            match self.by_source.get(&source).copied() {
                Some(known) if known < next => return known,
                Some(known) => {
                    self.slots.swap(known, next);
                    self.by_source.insert(self.slots[known].source, known);
                }
                None if next == self.slots.len() => self.slots.push(Slot {
                    source,
                    rows: SlotRows::None,
                }),
                None => {
                    self.by_source.remove(&self.slots[next].source);
                }
            }
            self.by_source.insert(source, next);
        }
        self.slots[next] = Slot {
            source,
            rows: SlotRows::None,
        };
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
        self.set(Cell::Number {
            field,
            decimals,
            value,
        });
    }

    /// Sets a boolean field of the current row.
    #[inline]
    pub fn boolean(&mut self, field: u16, value: bool) {
        self.set(Cell::Boolean { field, value });
    }

    /// Sets a string field of the current row. All texts of a request must be shorter than 4 GiB together.
    #[inline]
    pub fn string(&mut self, field: u16, value: &str) {
        let place = self.keep(value);
        self.set(Cell::Text { field, place });
    }

    /// Sets the metadata of the current row: JSON text, stored as received.
    #[inline]
    pub fn metadata(&mut self, json: &str) {
        self.metadata = Some(self.keep(json));
    }

    #[inline]
    fn keep(&mut self, text: &str) -> TextPlace {
        let start = self.text.len();
        self.text.push_str(text);
        TextPlace::new(start..self.text.len())
    }

    #[inline]
    fn set(&mut self, cell: Cell) {
        // If fields come in ascending order, as from a client that follows the schema's order, none can be a duplicate.
        let row = &mut self.cells[self.first_cells..];
        self.unordered |= row.last().is_some_and(|last| last.field() >= cell.field());
        if self.unordered
            && let Some(earlier) = row.iter_mut().find(|earlier| earlier.field() == cell.field())
        {
            *earlier = cell;
            return;
        }
        self.cells.push(cell);
    }

    /// Discards the current row.
    #[inline]
    pub fn abort(&mut self) {
        self.cells.truncate(self.first_cells);
        self.unordered = false;
        self.text.truncate(self.first_text_bytes);
        self.metadata = None;
    }

    /// Adds the current row to the request.
    #[inline]
    pub fn commit(&mut self, timestamp_ns: i64) {
        let row = Row {
            timestamp_ns,
            place: self.rows,
            metadata: self.metadata.take(),
        };
        self.rows += 1;
        let has_room = self.cells.len() <= SHARED_CELLS_MAX && self.text.len() <= SHARED_TEXT_BYTES;
        if has_room && let SlotRows::None = self.slots[self.open].rows {
            let cells = self.first_cells..self.cells.len();
            if self.unordered {
                self.cells[cells.clone()].sort_unstable_by_key(Cell::field);
            }
            (self.first_cells, self.first_text_bytes) = (self.cells.len(), self.text.len());
            self.slots[self.open].rows = SlotRows::One(row, cells);
        } else {
            let table = self.table_of(self.open);
            self.tables[table].push(&row, &self.cells[self.first_cells..], &self.text);
        }
        self.abort();
    }

    /// The number of a slot's table, to which its first row is moved if it has none yet.
    fn table_of(&mut self, slot: usize) -> usize {
        let slot = &mut self.slots[slot];
        if let SlotRows::Several(table) = slot.rows {
            return table;
        }
        let number = self.used_tables;
        self.used_tables += 1;
        if number == self.tables.len() {
            self.tables.push(Table::default());
        }
        let table = &mut self.tables[number];
        table.clear();
        if let SlotRows::One(row, cells) = &slot.rows {
            table.push(row, &self.cells[cells.clone()], &self.text);
        }
        slot.rows = SlotRows::Several(number);
        number
    }

    /// Calls `each` with the table of each source for which `wanted` returns something. `wanted` is told whether the source
    /// has a single row, which is moved to a table if it is wanted.
    pub(super) fn for_each_table<T>(
        &mut self,
        wanted: impl Fn(u32, bool) -> Option<T>,
        mut each: impl FnMut(&mut Table, T),
    ) {
        for index in 0..self.used {
            let slot = &self.slots[index];
            let is_single = match slot.rows {
                SlotRows::None => continue,
                SlotRows::One(..) => true,
                SlotRows::Several(_) => false,
            };
            if let Some(found) = wanted(slot.source, is_single) {
                let table = self.table_of(index);
                each(&mut self.tables[table], found);
            }
        }
    }

    /// Number of committed rows, ends of series included.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Number of committed rows that are points.
    pub fn points(&self) -> u32 {
        let ends = self.ends().map(|(_, rows)| rows.timestamps_ns().len() as u32);
        self.rows - ends.sum::<u32>()
    }

    /// Ordinals of the sources that have committed rows.
    pub fn sources(&self) -> impl Iterator<Item = u32> {
        let of_points = self.sources_with_points().map(|(source, _)| source);
        of_points.chain(self.ends().filter_map(|(source, _)| source_of_ends(source)))
    }

    /// Rows with these places, which ascend, were removed from the tables.
    pub(super) fn forget_rows(&mut self, places: &[u32]) {
        let before = |place: &u32| places.partition_point(|forgotten| forgotten < place) as u32;
        for slot in &mut self.slots[..self.used] {
            if let SlotRows::One(row, _) = &mut slot.rows {
                row.place -= before(&row.place);
            }
        }
        for table in &mut self.tables[..self.used_tables] {
            table.places.iter_mut().for_each(|place| *place -= before(place));
        }
        self.rows -= places.len() as u32;
    }

    /// Sources and ends of series that have rows, in the order of their first rows.
    fn used_slots(&self) -> impl Iterator<Item = (u32, SourceRows<'_>)> {
        self.slots[..self.used].iter().filter_map(|slot| {
            let rows = match &slot.rows {
                SlotRows::None => return None,
                SlotRows::One(row, cells) => SourceRows::One(row, &self.cells[cells.clone()], &self.text),
                SlotRows::Several(table) => SourceRows::Several(&self.tables[*table]),
            };
            (!rows.timestamps_ns().is_empty()).then_some((slot.source, rows))
        })
    }

    /// The sources of points, with their rows.
    pub(super) fn sources_with_points(&self) -> impl Iterator<Item = (u32, SourceRows<'_>)> {
        self.used_slots()
            .filter(|(source, _)| source_of_ends(*source).is_none())
    }

    /// The ends of series.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u32, SourceRows<'_>)> {
        self.used_slots()
            .filter(|(source, _)| source_of_ends(*source).is_some())
    }
}
