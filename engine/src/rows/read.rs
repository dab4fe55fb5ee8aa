//! Decodes the rows of a log record to columns, table by table. Counts are not trusted: the bytes have passed the log's
//! checksum, but a bug of ours must be reported as an error and not panic during recovery.

use std::ops::Range;

use super::NOT_DECIMAL;
use super::single::{self, SINGLE_ROWS};
use super::write::{BOOLEANS, NUMBERS_DECIMAL, NUMBERS_RAW, TEXTS};
use crate::EngineError;
use crate::block::FieldKind;
use crate::bytes::Reader;
use crate::decimal;

/// Places of rows within a request are below this.
pub(super) const PLACES_MAX: u32 = u32::MAX;

/// Rows of one request: those of one source, or a row for each of several.
#[derive(Default)]
pub(crate) struct Table<'a> {
    pub(crate) sources: Sources,
    pub(crate) timestamps_ns: Vec<i64>,
    pub(crate) places: Vec<u32>,
    pub(crate) columns: Vec<TableColumn<'a>>,
    pub(crate) metadata: TableColumn<'a>,
}

/// The sources of a table's rows.
pub(crate) enum Sources {
    /// That of all rows.
    One(u32),
    /// That of each row.
    Each(Vec<u32>),
}

impl Default for Sources {
    fn default() -> Self {
        Sources::One(0)
    }
}

/// Values of one field. `present` lists the rows that have one; `None` means all of them.
#[derive(Default)]
pub(crate) struct TableColumn<'a> {
    pub(crate) field: u16,
    pub(crate) present: Option<Vec<u32>>,
    pub(crate) values: TableValues<'a>,
}

impl Default for TableValues<'_> {
    fn default() -> Self {
        TableValues::Booleans(Vec::new())
    }
}

pub(crate) enum TableValues<'a> {
    Numbers {
        values: Vec<f64>,
        decimals: Decimals,
    },
    Booleans(Vec<bool>),
    Texts {
        dictionary: Vec<&'a str>,
        codes: Vec<u32>,
    },
}

/// Decimal places of the numbers of a column.
pub(crate) enum Decimals {
    /// A bound of all numbers.
    UpTo(u8),
    /// Those of each number.
    Each(Vec<u8>),
}

impl Decimals {
    /// A bound of these numbers.
    pub(crate) fn of(&self, numbers: Range<usize>) -> u8 {
        match self {
            Decimals::UpTo(decimals) => *decimals,
            Decimals::Each(each) => each[numbers].iter().copied().max().unwrap_or(0),
        }
    }

    /// Adds the decimal places of the next number. A bound is replaced: the number is then the first.
    pub(super) fn push(&mut self, decimals: u8) {
        match self {
            Decimals::UpTo(_) => *self = Decimals::Each(vec![decimals]),
            Decimals::Each(each) => each.push(decimals),
        }
    }

    fn clear(&mut self) {
        if let Decimals::Each(each) = self {
            each.clear();
        }
    }
}

/// Bytes of an encoded column: field and kind at least.
const COLUMN_BYTES_MIN: usize = 2;

impl Table<'_> {
    /// Reads the number of columns, which are then to be read.
    pub(super) fn resize_columns(&mut self, reader: &mut Reader<'_>) -> Result<(), EngineError> {
        let columns = reader.count()?;
        // A column in memory is much larger than the least that it takes encoded.
        let columns_max = (reader.rest().len() / COLUMN_BYTES_MIN).min(usize::from(u16::MAX) + 1);
        if columns > columns_max {
            return Err(reader.corrupt("as many columns as follow"));
        }
        self.columns.resize_with(columns, TableColumn::default);
        Ok(())
    }

    /// Checks that the fields ascend.
    pub(super) fn check_fields(&self, reader: &Reader<'_>) -> Result<(), EngineError> {
        match self
            .columns
            .is_sorted_by(|before, column| before.field < column.field)
        {
            true => Ok(()),
            false => Err(reader.corrupt("fields in order, each once")),
        }
    }

    /// The sources, each with its rows.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, Range<usize>)> + use<'_> {
        let (sources, rows) = match &self.sources {
            Sources::One(source) => (std::slice::from_ref(source), self.timestamps_ns.len()),
            Sources::Each(sources) => (&sources[..], 1),
        };
        let sources = sources.iter().enumerate();
        sources.map(move |(index, source)| (*source, index * rows..(index + 1) * rows))
    }
}

impl TableValues<'_> {
    pub(crate) fn kind(&self) -> FieldKind {
        match self {
            TableValues::Numbers { .. } => FieldKind::Number,
            TableValues::Booleans(_) => FieldKind::Boolean,
            TableValues::Texts { .. } => FieldKind::String,
        }
    }

    /// Removes all values; those that follow are of this type. Keeps the buffers of a column of the same type.
    pub(super) fn reset(&mut self, kind: FieldKind) {
        match (&mut *self, kind) {
            (TableValues::Numbers { values, decimals }, FieldKind::Number) => {
                values.clear();
                decimals.clear();
            }
            (TableValues::Booleans(values), FieldKind::Boolean) => values.clear(),
            (TableValues::Texts { dictionary, codes }, FieldKind::String) => {
                dictionary.clear();
                codes.clear();
            }
            (_, FieldKind::Number) => {
                *self = TableValues::Numbers {
                    values: Vec::new(),
                    decimals: Decimals::UpTo(0),
                };
            }
            (_, FieldKind::Boolean) => *self = TableValues::Booleans(Vec::new()),
            (_, FieldKind::String) => {
                *self = TableValues::Texts {
                    dictionary: Vec::new(),
                    codes: Vec::new(),
                };
            }
        }
    }
}

/// Buffers for up to this many values are kept for the next record.
const VALUES_KEPT: usize = 4_096;

impl Table<'_> {
    /// The buffers without the texts that they borrow. Those of a large table are freed.
    fn emptied(self) -> Table<'static> {
        let (rows, columns) = (self.timestamps_ns.capacity(), self.columns.capacity());
        if rows.saturating_mul(columns + 1) > VALUES_KEPT {
            return Table::default();
        }
        Table {
            sources: self.sources,
            timestamps_ns: self.timestamps_ns,
            places: self.places,
            // Collected in place.
            columns: self.columns.into_iter().map(TableColumn::emptied).collect(),
            metadata: self.metadata.emptied(),
        }
    }
}

impl TableColumn<'_> {
    fn emptied(self) -> TableColumn<'static> {
        let values = match self.values {
            TableValues::Numbers { values, decimals } => TableValues::Numbers { values, decimals },
            TableValues::Booleans(values) => TableValues::Booleans(values),
            TableValues::Texts {
                mut dictionary,
                codes,
            } => {
                dictionary.clear();
                let dictionary = dictionary.into_iter().map(|_| "").collect();
                TableValues::Texts { dictionary, codes }
            }
        };
        TableColumn {
            field: self.field,
            present: self.present,
            values,
        }
    }
}

/// Decodes what `RowsWriter::encode` wrote.
pub(crate) struct RowsReader<'a> {
    reader: Reader<'a>,
    tables: usize,
    /// The rows of the current table. It is reused for all of them, so that its buffers are allocated once.
    table: Table<'a>,
}

impl<'a> RowsReader<'a> {
    /// Uses the buffers of an earlier reader.
    pub(crate) fn new(bytes: &'a [u8], buffers: Table<'static>) -> Result<Self, EngineError> {
        let mut reader = Reader::new(bytes, "rows of a log record");
        let tables = reader.count()?;
        Ok(RowsReader {
            reader,
            tables,
            table: buffers,
        })
    }

    /// Its buffers, for the next reader.
    pub(crate) fn into_buffers(self) -> Table<'static> {
        self.table.emptied()
    }

    /// Reads the next table; `None` after the last. The rows stay in the reader's buffers.
    pub(crate) fn next(&mut self) -> Result<Option<&mut Table<'a>>, EngineError> {
        if self.tables == 0 {
            return match self.reader.is_empty() {
                true => Ok(None),
                false => Err(self.reader.corrupt("the end")),
            };
        }
        self.tables -= 1;
        let RowsReader { reader, table, .. } = self;
        table.timestamps_ns.clear();
        table.places.clear();
        match reader.u32()? {
            SINGLE_ROWS => single::read(reader, table)?,
            source => {
                table.sources = Sources::One(source);
                read_table(reader, table)?;
            }
        }
        Ok(Some(table))
    }
}

/// Reads the rows of one source.
fn read_table<'a>(reader: &mut Reader<'a>, table: &mut Table<'a>) -> Result<(), EngineError> {
    let rows = reader.count()?;
    table.timestamps_ns.reserve(rows);
    let (mut before, mut step) = (0i64, 0i64);
    for _ in 0..rows {
        step = step.wrapping_add(reader.signed()?);
        before = before.wrapping_add(step);
        table.timestamps_ns.push(before);
    }
    read_rows(reader, rows, PLACES_MAX, &mut table.places)?;
    table.resize_columns(reader)?;
    for column in &mut table.columns {
        column.field = reader.u16()?;
        let form = reader.byte()?;
        let count = read_presence(reader, rows, &mut column.present)?;
        read_values(reader, form, count, &mut column.values)?;
    }
    table.check_fields(reader)?;
    let count = read_presence(reader, rows, &mut table.metadata.present)?;
    read_values(reader, TEXTS, count, &mut table.metadata.values)
}

fn read_rows(
    reader: &mut Reader<'_>,
    count: usize,
    limit: u32,
    rows: &mut Vec<u32>,
) -> Result<(), EngineError> {
    let mut row = reader.u32()?;
    let gaps = reader.byte()? != 0;
    rows.clear();
    rows.reserve(count);
    for index in 0..count {
        if index > 0 {
            let gap = if gaps { reader.u32()? } else { 0 };
            row = gap
                .checked_add(1)
                .and_then(|gap| row.checked_add(gap))
                .ok_or_else(|| reader.corrupt("a row"))?;
        }
        if row >= limit {
            return Err(reader.corrupt("a row of the table"));
        }
        rows.push(row);
    }
    Ok(())
}

/// Reads into `present` which rows have a value; returns their number.
fn read_presence(
    reader: &mut Reader<'_>,
    rows: usize,
    present: &mut Option<Vec<u32>>,
) -> Result<usize, EngineError> {
    let count = reader.varint()? as usize;
    if count > rows {
        return Err(reader.corrupt("at most as many values as rows"));
    }
    if count == rows {
        *present = None;
    } else if count == 0 {
        present.get_or_insert_default().clear();
    } else {
        read_rows(reader, count, rows as u32, present.get_or_insert_default())?;
    }
    Ok(count)
}

/// The type of the values of a column of this kind.
pub(super) fn kind_of(form: u8, reader: &Reader<'_>) -> Result<FieldKind, EngineError> {
    match form {
        NUMBERS_DECIMAL | NUMBERS_RAW => Ok(FieldKind::Number),
        BOOLEANS => Ok(FieldKind::Boolean),
        TEXTS => Ok(FieldKind::String),
        _ => Err(reader.corrupt("a kind of column")),
    }
}

/// Replaces `column` by `count` values of this form.
fn read_values<'a>(
    reader: &mut Reader<'a>,
    form: u8,
    count: usize,
    column: &mut TableValues<'a>,
) -> Result<(), EngineError> {
    column.reset(kind_of(form, reader)?);
    match column {
        TableValues::Numbers { values, decimals } if form == NUMBERS_RAW => {
            values.extend(reader.doubles(count)?);
            *decimals = Decimals::UpTo(NOT_DECIMAL);
        }
        TableValues::Numbers { values, decimals } => {
            let stated = reader.byte()?;
            *decimals = Decimals::UpTo(stated);
            let scale = decimal::power(stated);
            values.reserve(count);
            let mut mantissa = 0i64;
            for _ in 0..count {
                mantissa = mantissa.wrapping_add(reader.signed()?);
                values.push(decimal::value(mantissa, scale));
            }
        }
        TableValues::Booleans(values) => {
            let bits = reader.take(count.div_ceil(8))?;
            values.extend((0..count).map(|row| bits[row / 8] >> (row % 8) & 1 == 1));
        }
        TableValues::Texts { dictionary, codes } => {
            codes.reserve(count);
            for _ in 0..count {
                match reader.varint()? {
                    0 => {
                        codes.push(dictionary.len() as u32);
                        dictionary.push(reader.text()?);
                    }
                    number if number <= dictionary.len() as u64 => codes.push(number as u32 - 1),
                    _ => return Err(reader.corrupt("the number of a text seen before")),
                }
            }
        }
    }
    Ok(())
}
