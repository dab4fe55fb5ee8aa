//! The newest rows of a head, row by row. A request with a row for each of many series changes one place in memory for
//! each of them, rather than one for each column. Once there are enough, they are moved to columns together.

use std::sync::{Arc, OnceLock};

use crate::block::FieldKind;
use crate::column::{FieldColumn, TEXT_BYTES};
use crate::columns::Columns;
use crate::rows::{Decimals, Table, TableColumn, TableValues};

/// Maximum number of rows. While a reader shares the buffer, the next row copies it.
const BUFFER_ROWS_MAX: usize = 64;
/// Maximum number of words of all rows.
const BUFFER_WORDS_MAX: usize = 1_024;
/// Maximum number of fields, metadata included: a row has one word that says which of them it has.
const BUFFER_FIELDS_MAX: usize = u64::BITS as usize;
/// Maximum number of different texts, which are searched one after the other.
const BUFFER_TEXTS_MAX: usize = 8;
/// Maximum size of the texts in bytes; longer ones are not buffered.
const BUFFER_TEXT_BYTES: usize = 4_096;

/// Words of a row before those of its fields.
const ROW_HEADER_WORDS: usize = 3;

/// Rows in order of arrival, none older than the one before.
#[derive(Default)]
pub(crate) struct RowBuffer {
    /// Of each row its timestamp, its sequence, a bit for each field that it has, and a word for each field: the bits of
    /// a double, a boolean, or the index of a text.
    words: Vec<u64>,
    /// Sorted by field. Kept when the rows are moved, because most rows of a series have the same fields.
    fields: Vec<BufferedField>,
    texts: Vec<Arc<str>>,
    /// Total size of the texts in bytes.
    text_bytes: usize,
    /// The rows as columns, made for the first reader.
    columns: OnceLock<Arc<Columns>>,
}

/// A field that rows may have.
#[derive(Clone, Copy)]
struct BufferedField {
    /// Its ordinal; `None` for metadata.
    field: Option<u16>,
    kind: FieldKind,
    /// The greatest number of decimal places of its numbers.
    decimals: u8,
}

/// Metadata and fields of a table that some row has, ascending.
fn columns_of<'t, 'a>(table: &'t Table<'a>) -> impl Iterator<Item = (Option<u16>, &'t TableColumn<'a>)> {
    let fields = table.columns.iter().map(|column| (Some(column.field), column));
    let columns = std::iter::once((None, &table.metadata)).chain(fields);
    columns.filter(|(_, column)| column.present.as_ref().is_none_or(|rows| !rows.is_empty()))
}

/// Keeps the capacity, which is counted as memory, for the rows that follow. With these, the columns would be others.
impl Clone for RowBuffer {
    fn clone(&self) -> Self {
        let mut words = Vec::with_capacity(self.words.capacity());
        words.extend_from_slice(&self.words);
        RowBuffer {
            words,
            fields: self.fields.clone(),
            texts: self.texts.clone(),
            text_bytes: self.text_bytes,
            columns: OnceLock::new(),
        }
    }
}

impl RowBuffer {
    /// Number of words of a row.
    fn width(&self) -> usize {
        ROW_HEADER_WORDS + self.fields.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Approximate heap memory in bytes, with the columns that a reader or a checkpoint makes of it.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
            + self.fields.capacity() * size_of::<BufferedField>()
            + 2 * (self.texts.len() * TEXT_BYTES + self.text_bytes)
            + self.columns_bytes()
    }

    /// Approximate memory of the rows as columns in bytes, without texts.
    fn columns_bytes(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        // A list has a capacity of four at first.
        let rows = (self.words.len() / self.width()).max(4);
        let field_bytes = size_of::<FieldColumn>() + rows * size_of::<f64>();
        size_of::<Columns>() + rows * (size_of::<i64>() + size_of::<u64>()) + self.fields.len() * field_bytes
    }

    /// Timestamps and sequences of the rows.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (i64, u64)> {
        let rows = self.words.chunks_exact(self.width());
        rows.map(|row| (row[0].cast_signed(), row[1]))
    }

    /// Whether the table's fields have the same types as here.
    pub(crate) fn agrees(&self, table: &Table<'_>) -> bool {
        let mut known = self.fields.iter().peekable();
        columns_of(table).all(|(field, column)| {
            while known.next_if(|known| known.field < field).is_some() {}
            let known = known.peek().filter(|known| known.field == field);
            known.is_none_or(|known| known.kind == column.values.kind())
        })
    }

    /// Adds the table's fields to those that rows may have; false if they are too many. The buffer must be empty.
    pub(crate) fn extend_fields(&mut self, table: &Table<'_>) -> bool {
        for (field, column) in columns_of(table) {
            if let Err(index) = self.fields.binary_search_by_key(&field, |known| known.field) {
                if self.fields.len() == BUFFER_FIELDS_MAX {
                    return false;
                }
                let kind = column.values.kind();
                self.fields.reserve_exact(1);
                self.fields.insert(
                    index,
                    BufferedField {
                        field,
                        kind,
                        decimals: 0,
                    },
                );
            }
        }
        true
    }

    /// Adds a row of a table; false if it does not fit, because the buffer is full or lacks one of its fields.
    pub(crate) fn push(&mut self, table: &Table<'_>, row: usize, first_sequence: u64) -> bool {
        let (width, start) = (self.width(), self.words.len());
        if start + width > BUFFER_WORDS_MAX.min(BUFFER_ROWS_MAX * width) {
            return false;
        }
        let sequence = first_sequence + u64::from(table.places[row]);
        let oldest = self.words.get(1).copied().unwrap_or(sequence);
        if sequence
            .checked_sub(oldest)
            .is_none_or(|place| place > u64::from(u32::MAX))
        {
            return false;
        }
        self.columns.take();
        if self.words.capacity() < start + width {
            self.words.reserve_exact(start.max(2 * width));
        }
        self.words
            .extend([table.timestamps_ns[row].cast_unsigned(), sequence, 0]);
        self.words.resize(start + width, 0);
        let fits = self.set_fields(table, row, start + ROW_HEADER_WORDS);
        match fits {
            Some(present) => self.words[start + ROW_HEADER_WORDS - 1] = present,
            None => self.words.truncate(start),
        }
        fits.is_some()
    }

    /// Sets the words of a row's fields from `at` on. Returns which it has; `None` if one does not fit.
    fn set_fields(&mut self, table: &Table<'_>, row: usize, at: usize) -> Option<u64> {
        let (mut present, mut place) = (0, 0);
        for (field, column) in columns_of(table) {
            let index = match &column.present {
                None => row,
                Some(rows) => match rows.binary_search(&(row as u32)) {
                    Ok(index) => index,
                    Err(_) => continue,
                },
            };
            while self.fields.get(place)?.field < field {
                place += 1;
            }
            let known = self.fields.get_mut(place)?;
            if known.field != field || known.kind != column.values.kind() {
                return None;
            }
            self.words[at + place] = match &column.values {
                TableValues::Numbers { values, decimals } => {
                    known.decimals = known.decimals.max(decimals.of(index..index + 1));
                    values[index].to_bits()
                }
                TableValues::Booleans(values) => u64::from(values[index]),
                TableValues::Texts { dictionary, codes } => {
                    self.index_of(dictionary[codes[index] as usize])?
                }
            };
            present |= 1 << place;
        }
        Some(present)
    }

    /// The index of a text, which is added if it is new; `None` if there are too many.
    fn index_of(&mut self, text: &str) -> Option<u64> {
        if let Some(index) = self.texts.iter().position(|known| **known == *text) {
            return Some(index as u64);
        }
        if self.texts.len() == BUFFER_TEXTS_MAX || self.text_bytes + text.len() > BUFFER_TEXT_BYTES {
            return None;
        }
        self.texts.push(text.into());
        self.text_bytes += text.len();
        Some(self.texts.len() as u64 - 1)
    }

    /// Removes the rows. Their fields are kept.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.texts.clear();
        self.text_bytes = 0;
        self.fields.iter_mut().for_each(|field| field.decimals = 0);
        self.columns.take();
    }

    /// The rows as columns; `None` without rows.
    pub(crate) fn columns(&self) -> Option<&Arc<Columns>> {
        if self.is_empty() {
            return None;
        }
        Some(self.columns.get_or_init(|| {
            let mut columns = Columns::default();
            if let Some((table, first_sequence)) = self.table() {
                columns.append(&table, 0..table.timestamps_ns.len(), first_sequence);
            }
            Arc::new(columns)
        }))
    }

    /// The rows as a table, with the sequence that its places count from; `None` without rows.
    pub(crate) fn table(&self) -> Option<(Table<'_>, u64)> {
        let first_sequence = *self.words.get(1)?;
        let rows = || self.words.chunks_exact(self.width());
        let mut table = Table {
            timestamps_ns: rows().map(|row| row[0].cast_signed()).collect(),
            // `push` keeps them within 32 bits.
            places: rows().map(|row| (row[1] - first_sequence) as u32).collect(),
            ..Table::default()
        };
        table.metadata.present = Some(Vec::new());
        for (place, known) in self.fields.iter().enumerate() {
            let column = self.column(place, known);
            if column.present.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            match known.field {
                None => table.metadata = column,
                Some(_) => table.columns.push(column),
            }
        }
        Some((table, first_sequence))
    }

    /// The column of the field at `place`.
    fn column(&self, place: usize, known: &BufferedField) -> TableColumn<'_> {
        let rows = || self.words.chunks_exact(self.width()).enumerate();
        let has = |(_, row): &(usize, &[u64])| row[2] >> place & 1 == 1;
        let all = rows().all(|row| has(&row));
        let present = (!all).then(|| rows().filter(has).map(|(index, _)| index as u32).collect());
        let words = rows().filter(has).map(|(_, row)| row[ROW_HEADER_WORDS + place]);
        let values = match known.kind {
            FieldKind::Number => TableValues::Numbers {
                values: words.map(f64::from_bits).collect(),
                decimals: Decimals::UpTo(known.decimals),
            },
            FieldKind::Boolean => TableValues::Booleans(words.map(|word| word == 1).collect()),
            FieldKind::String => TableValues::Texts {
                dictionary: self.texts.iter().map(|text| &**text).collect(),
                codes: words.map(|word| word as u32).collect(),
            },
        };
        TableColumn {
            field: known.field.unwrap_or_default(),
            present,
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;
    use crate::rows::{RowsReader, RowsWriter};

    /// Timestamp, sequence, fields with the numbers that their values are made of, metadata.
    type Row = (i64, u64, Vec<(u16, i32)>, Option<String>);

    /// Appends the rows of a request with one series.
    fn append(head: &mut Head, writer: &RowsWriter, first_sequence: u64, newest_ns: &mut Option<i64>) {
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        let mut reader = RowsReader::new(&bytes, Table::default()).unwrap();
        let table = reader.next().unwrap().unwrap();
        let rows = 0..table.timestamps_ns.len();
        head.append(table, rows, first_sequence, newest_ns).unwrap();
    }

    fn rows(head: &Head) -> Columns {
        let runs: Vec<&Columns> = head.chunks().map(|chunk| &**chunk).collect();
        Columns::merged(&runs)
    }

    /// One row a request or many: rows of any fields, texts and order of time are those that came.
    #[test]
    fn buffered_rows_are_those_that_came() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..60 {
            let (mut head, mut newest_ns) = (Head::default(), None);
            let mut expected: Vec<Row> = Vec::new();
            let mut time_ns = 0i64;
            // In some rounds more fields and texts than the buffer has room for.
            let (fields, texts) = (random.u16(1..90), random.usize(1..20));
            let mut sequence = 1;
            for _ in 0..random.u64(1..250) {
                // Other series of the bucket have rows in between.
                sequence += if random.u8(0..100) == 0 {
                    1 << 33
                } else {
                    random.u64(0..9)
                };
                let first_sequence = sequence;
                let mut writer = RowsWriter::new();
                for _ in 0..[1, 1, 1, 3, 20][random.usize(0..5)] {
                    time_ns += random.i64(-1..10);
                    writer.begin(1);
                    let mut cells = Vec::new();
                    for field in 0..fields {
                        if random.u16(0..fields) < 3 {
                            let value = random.i32(-9..9);
                            match field % 3 {
                                0 => writer.number(field, f64::from(value) / 10.0, 1),
                                1 => writer.boolean(field, value > 0),
                                _ => writer.string(
                                    field,
                                    &format!("text {}", value.unsigned_abs() as usize % texts),
                                ),
                            }
                            cells.push((field, value));
                        }
                    }
                    let metadata = random
                        .bool()
                        .then(|| format!("{{\"room\":{}}}", random.usize(0..texts)));
                    if let Some(metadata) = &metadata {
                        writer.metadata(metadata);
                    }
                    writer.commit(time_ns);
                    expected.push((time_ns, sequence, cells, metadata));
                    sequence += 1;
                }
                append(&mut head, &writer, first_sequence, &mut newest_ns);
                if random.u8(0..20) == 0 {
                    assert_eq!(rows(&head).rows(), expected.len());
                }
            }
            expected.sort_by_key(|(time_ns, sequence, ..)| (*time_ns, *sequence));
            let found = rows(&head);
            assert_eq!(found.rows(), expected.len());
            for (row, (time_ns, sequence, cells, metadata)) in expected.iter().enumerate() {
                assert_eq!(found.key(row), (*time_ns, *sequence));
                let mut present = found.fields.iter().filter(|field| field.column.has(row));
                for (field, value) in cells {
                    let column = present.next().unwrap();
                    assert_eq!(column.field, *field);
                    let expected = match field % 3 {
                        0 => format!("Number({:?})", f64::from(*value) / 10.0),
                        1 => format!("Boolean({})", *value > 0),
                        _ => format!("Text(\"text {}\")", value.unsigned_abs() as usize % texts),
                    };
                    assert_eq!(format!("{:?}", column.column.value(row).unwrap()), expected);
                }
                assert!(present.next().is_none());
                let found = found.metadata.as_ref().and_then(|column| column.value(row));
                let expected = metadata.as_ref().map(|text| format!("Text({text:?})"));
                assert_eq!(found.map(|text| format!("{text:?}")), expected);
            }
        }
    }
}
