//! Bytes of the log → columns again, table by table. Nothing here trusts a count: the bytes have passed the log's
//! checksum, but a fault of ours must come out as an error, not as a panic while recovering.

use super::NOT_DECIMAL;
use super::write::{BOOLEANS, NUMBERS_DECIMAL, NUMBERS_RAW, TEXTS};
use crate::EngineError;
use crate::bytes::Reader;
use crate::decimal;

/// The rows one request brought for one source.
pub(crate) struct Table<'a> {
    pub(crate) source: u32,
    pub(crate) timestamps_ns: Vec<i64>,
    pub(crate) places: Vec<u32>,
    pub(crate) columns: Vec<TableColumn<'a>>,
    pub(crate) metadata: TableColumn<'a>,
}

/// Values of one field. `present` lists the rows that have one; `None` means all of them.
pub(crate) struct TableColumn<'a> {
    pub(crate) field: u16,
    pub(crate) present: Option<Vec<u32>>,
    pub(crate) values: TableValues<'a>,
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

/// Reads what `RowsWriter::encode` wrote.
pub(crate) struct RowsReader<'a> {
    reader: Reader<'a>,
    tables: usize,
}

impl<'a> RowsReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, EngineError> {
        let mut reader = Reader::new(bytes, "rows of a log record");
        let tables = reader.count()?;
        Ok(RowsReader { reader, tables })
    }

    /// The next source's rows; `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<Table<'a>>, EngineError> {
        if self.tables == 0 {
            return if self.reader.is_empty() {
                Ok(None)
            } else {
                Err(self.reader.corrupt("the end"))
            };
        }
        self.tables -= 1;
        let reader = &mut self.reader;
        let source = reader.u32()?;
        let rows = reader.count()?;
        let mut timestamps_ns = Vec::with_capacity(rows);
        let (mut before, mut step) = (0i64, 0i64);
        for _ in 0..rows {
            step = step.wrapping_add(reader.signed()?);
            before = before.wrapping_add(step);
            timestamps_ns.push(before);
        }
        let places = read_rows(reader, rows, u32::MAX)?;
        let count = reader.count()?;
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            columns.push(read_column(reader, rows)?);
        }
        let (present, count) = read_presence(reader, rows)?;
        let metadata = TableColumn {
            field: 0,
            present,
            values: read_texts(reader, count)?,
        };
        Ok(Some(Table {
            source,
            timestamps_ns,
            places,
            columns,
            metadata,
        }))
    }
}

fn read_rows(reader: &mut Reader<'_>, count: usize, limit: u32) -> Result<Vec<u32>, EngineError> {
    let mut row = reader.u32()?;
    let gaps = reader.byte()? != 0;
    let mut rows = Vec::with_capacity(count);
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
    Ok(rows)
}

fn read_presence(reader: &mut Reader<'_>, rows: usize) -> Result<(Option<Vec<u32>>, usize), EngineError> {
    let count = reader.varint()? as usize;
    if count > rows {
        return Err(reader.corrupt("at most as many values as rows"));
    }
    let present = match count {
        _ if count == rows => None,
        0 => Some(Vec::new()),
        _ => Some(read_rows(reader, count, rows as u32)?),
    };
    Ok((present, count))
}

fn read_column<'a>(reader: &mut Reader<'a>, rows: usize) -> Result<TableColumn<'a>, EngineError> {
    let field = reader.u16()?;
    let kind = reader.byte()?;
    let (present, count) = read_presence(reader, rows)?;
    let values = match kind {
        NUMBERS_DECIMAL => {
            let decimals = reader.byte()?;
            let scale = decimal::power(decimals);
            let mut values = Vec::with_capacity(count);
            let mut mantissa = 0i64;
            for _ in 0..count {
                mantissa = mantissa.wrapping_add(reader.signed()?);
                values.push(decimal::value(mantissa, scale));
            }
            TableValues::Numbers { values, decimals }
        }
        NUMBERS_RAW => {
            let (doubles, _) = reader.take(count.saturating_mul(8))?.as_chunks();
            let values = doubles.iter().map(|double| f64::from_le_bytes(*double)).collect();
            TableValues::Numbers {
                values,
                decimals: NOT_DECIMAL,
            }
        }
        BOOLEANS => {
            let bits = reader.take(count.div_ceil(8))?;
            TableValues::Booleans(
                (0..count)
                    .map(|row| bits[row / 8] >> (row % 8) & 1 == 1)
                    .collect(),
            )
        }
        TEXTS => read_texts(reader, count)?,
        _ => return Err(reader.corrupt("a kind of column")),
    };
    Ok(TableColumn {
        field,
        present,
        values,
    })
}

fn read_texts<'a>(reader: &mut Reader<'a>, count: usize) -> Result<TableValues<'a>, EngineError> {
    let mut dictionary = Vec::new();
    let mut codes = Vec::with_capacity(count);
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
    Ok(TableValues::Texts { dictionary, codes })
}
