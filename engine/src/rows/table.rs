//! The rows of a source that has several in a request, column by column.

use std::ops::Range;

use crate::block::FieldKind;
use crate::column::TEXT_BYTES;

/// One value of a row. A request may have a row for each of many sources, so that it is small.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    Number { field: u16, decimals: u8, value: f64 },
    Boolean { field: u16, value: bool },
    Text { field: u16, place: TextPlace },
}

/// Where a text is in the texts of the rows. They are shorter than 4 GiB together, as bodies of requests are.
#[derive(Clone, Copy)]
pub(super) struct TextPlace {
    start: u32,
    len: u32,
}

impl TextPlace {
    pub(super) fn new(range: Range<usize>) -> Self {
        debug_assert!(u32::try_from(range.end).is_ok());
        TextPlace {
            start: range.start as u32,
            len: range.len() as u32,
        }
    }

    pub(super) fn len(self) -> usize {
        self.len as usize
    }

    pub(super) fn of(self, texts: &str) -> &str {
        let start = self.start as usize;
        &texts[start..start + self.len()]
    }
}

impl Cell {
    pub(super) fn kind(&self) -> FieldKind {
        match self {
            Cell::Number { .. } => FieldKind::Number,
            Cell::Boolean { .. } => FieldKind::Boolean,
            Cell::Text { .. } => FieldKind::String,
        }
    }

    pub(super) fn field(&self) -> u16 {
        match self {
            Cell::Number { field, .. } | Cell::Boolean { field, .. } | Cell::Text { field, .. } => *field,
        }
    }

    /// Approximate memory in a head, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Cell::Number { .. } => size_of::<f64>(),
            Cell::Boolean { .. } => size_of::<bool>(),
            Cell::Text { place, .. } => size_of::<u32>() + place.len() + TEXT_BYTES,
        }
    }
}

/// A row, besides its values.
pub(super) struct Row {
    pub(super) timestamp_ns: i64,
    /// Its position within the request.
    pub(super) place: u32,
    /// Its metadata: JSON text.
    pub(super) metadata: Option<TextPlace>,
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
            Cell::Number { .. } => Values::Numbers {
                values: Vec::new(),
                decimals: 0,
            },
            Cell::Boolean { .. } => Values::Booleans(Vec::new()),
            Cell::Text { .. } => Values::Texts(Texts::default()),
        }
    }

    /// Appends a value; false if it is of another type. `texts` contains those of its row.
    fn push(&mut self, cell: &Cell, texts: &str) -> bool {
        match (self, cell) {
            (
                Values::Numbers { values, decimals },
                Cell::Number {
                    value,
                    decimals: stated,
                    ..
                },
            ) => {
                values.push(*value);
                *decimals = (*decimals).max(*stated);
            }
            (Values::Booleans(values), Cell::Boolean { value, .. }) => values.push(*value),
            (Values::Texts(values), Cell::Text { place, .. }) => values.push(place.of(texts)),
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
    pub(super) timestamps_ns: Vec<i64>,
    /// Position of each row within the request.
    pub(super) places: Vec<u32>,
    /// By field ordinal; a column without rows is a field that does not occur in this request.
    columns: Vec<Option<Column>>,
    pub(super) metadata_rows: Vec<u32>,
    pub(super) metadata: Texts,
    /// The capacity of its buffers in bytes when it was last measured.
    pub(super) measured_bytes: usize,
}

impl Table {
    pub(super) fn clear(&mut self) {
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
    pub(super) fn memory_bytes(&self) -> usize {
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
    pub(super) fn scratch_bytes(&self) -> usize {
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

    /// Adds a row; `texts` contains its texts.
    pub(super) fn push(&mut self, row: &Row, cells: &[Cell], texts: &str) {
        let number = self.timestamps_ns.len() as u32;
        self.timestamps_ns.push(row.timestamp_ns);
        self.places.push(row.place);
        for cell in cells {
            self.push_cell(number, cell, texts);
        }
        if let Some(place) = row.metadata {
            self.metadata_rows.push(number);
            self.metadata.push(place.of(texts));
        }
    }

    fn push_cell(&mut self, row: u32, cell: &Cell, texts: &str) {
        let index = usize::from(cell.field());
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
