//! Decodes the rows of a log record to columns, table by table. Counts are not trusted: the bytes have passed the log's
//! checksum, but a bug of ours must be reported as an error and not panic during recovery.

use super::NOT_DECIMAL;
use super::write::{BOOLEANS, NUMBERS_DECIMAL, NUMBERS_RAW, TEXTS};
use crate::EngineError;
use crate::block::FieldKind;
use crate::bytes::Reader;
use crate::decimal;

/// The rows of one source in one request.
#[derive(Default)]
pub(crate) struct Table<'a> {
    pub(crate) source: u32,
    pub(crate) timestamps_ns: Vec<i64>,
    pub(crate) places: Vec<u32>,
    pub(crate) columns: Vec<TableColumn<'a>>,
    pub(crate) metadata: TableColumn<'a>,
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
        decimals: u8,
    },
    Booleans(Vec<bool>),
    Texts {
        dictionary: Vec<&'a str>,
        codes: Vec<u32>,
    },
}

impl TableValues<'_> {
    pub(crate) fn kind(&self) -> FieldKind {
        match self {
            TableValues::Numbers { .. } => FieldKind::Number,
            TableValues::Booleans(_) => FieldKind::Boolean,
            TableValues::Texts { .. } => FieldKind::String,
        }
    }

    /// Takes the buffer of numbers, emptied; a new one if there is none.
    fn take_numbers(&mut self) -> Vec<f64> {
        match std::mem::take(self) {
            TableValues::Numbers { mut values, .. } => {
                values.clear();
                values
            }
            _ => Vec::new(),
        }
    }
}

/// Decodes what `RowsWriter::encode` wrote.
pub(crate) struct RowsReader<'a> {
    reader: Reader<'a>,
    tables: usize,
    /// The rows of the current source. One table is reused for all sources, so that its buffers are allocated once.
    table: Table<'a>,
}

impl<'a> RowsReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, EngineError> {
        let mut reader = Reader::new(bytes, "rows of a log record");
        let tables = reader.count()?;
        Ok(RowsReader {
            reader,
            tables,
            table: Table::default(),
        })
    }

    /// Reads the rows of the next source; `None` after the last. The rows stay in the reader's buffers.
    pub(crate) fn next(&mut self) -> Result<Option<&mut Table<'a>>, EngineError> {
        if self.tables == 0 {
            return match self.reader.is_empty() {
                true => Ok(None),
                false => Err(self.reader.corrupt("the end")),
            };
        }
        self.tables -= 1;
        let RowsReader { reader, table, .. } = self;
        table.source = reader.u32()?;
        let rows = reader.count()?;
        table.timestamps_ns.clear();
        table.timestamps_ns.reserve(rows);
        let (mut before, mut step) = (0i64, 0i64);
        for _ in 0..rows {
            step = step.wrapping_add(reader.signed()?);
            before = before.wrapping_add(step);
            table.timestamps_ns.push(before);
        }
        read_rows(reader, rows, u32::MAX, &mut table.places)?;
        let count = reader.count()?;
        table.columns.resize_with(count, TableColumn::default);
        let mut before = None;
        for column in &mut table.columns {
            read_column(reader, rows, column)?;
            if before >= Some(column.field) {
                return Err(reader.corrupt("fields in order, each once"));
            }
            before = Some(column.field);
        }
        let count = read_presence(reader, rows, &mut table.metadata.present)?;
        read_texts(reader, count, &mut table.metadata.values)?;
        Ok(Some(table))
    }
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

/// Reads a column into `column`, reusing its buffers if they are of the same type.
fn read_column<'a>(
    reader: &mut Reader<'a>,
    rows: usize,
    column: &mut TableColumn<'a>,
) -> Result<(), EngineError> {
    column.field = reader.u16()?;
    let kind = reader.byte()?;
    let count = read_presence(reader, rows, &mut column.present)?;
    match kind {
        NUMBERS_DECIMAL => {
            let decimals = reader.byte()?;
            let scale = decimal::power(decimals);
            let mut values = column.values.take_numbers();
            values.reserve(count);
            let mut mantissa = 0i64;
            for _ in 0..count {
                mantissa = mantissa.wrapping_add(reader.signed()?);
                values.push(decimal::value(mantissa, scale));
            }
            column.values = TableValues::Numbers { values, decimals };
        }
        NUMBERS_RAW => {
            let mut values = column.values.take_numbers();
            values.extend(reader.doubles(count)?);
            let decimals = NOT_DECIMAL;
            column.values = TableValues::Numbers { values, decimals };
        }
        BOOLEANS => {
            let bits = reader.take(count.div_ceil(8))?;
            let mut values = match std::mem::take(&mut column.values) {
                TableValues::Booleans(values) => values,
                _ => Vec::new(),
            };
            values.clear();
            values.extend((0..count).map(|row| bits[row / 8] >> (row % 8) & 1 == 1));
            column.values = TableValues::Booleans(values);
        }
        TEXTS => read_texts(reader, count, &mut column.values)?,
        _ => return Err(reader.corrupt("a kind of column")),
    }
    Ok(())
}

fn read_texts<'a>(
    reader: &mut Reader<'a>,
    count: usize,
    texts: &mut TableValues<'a>,
) -> Result<(), EngineError> {
    if count == 0
        && let TableValues::Texts { dictionary, codes } = texts
    {
        dictionary.clear();
        codes.clear();
        return Ok(());
    }
    let (mut dictionary, mut codes) = match std::mem::take(texts) {
        TableValues::Texts { dictionary, codes } => (dictionary, codes),
        _ => (Vec::new(), Vec::new()),
    };
    dictionary.clear();
    codes.clear();
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
    *texts = TableValues::Texts { dictionary, codes };
    Ok(())
}
