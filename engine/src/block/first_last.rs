//! The first and the last value of each field of a block, with which queries for them read no rows. Described in
//! FORMAT.md, "Block".

use std::sync::Arc;

use super::{Block, BlockReader, BlockSummary, FieldKind};
use crate::EngineError;
use crate::bytes::{Reader, put_bytes, put_varint};
use crate::cache::{Cache, Part, Value as Cached};
use crate::codec::{decode_doubles, encode_doubles};
use crate::column::{Column, Values};
use crate::columns::Columns;
use crate::value::{Ends, Value};

/// Blocks with fewer rows do not store them: the rows are read as quickly, and the values would take a large part of a
/// small block.
const ROWS_MIN: usize = 16;
/// Maximum size of a text in bytes; longer ones are read from the rows.
const TEXT_BYTES_MAX: usize = 64;

/// First and last values of blocks with more fields than this are not cached: a query usually needs few of them.
const FIELDS_KEPT: usize = 64;

/// How a field is stored.
const NOT_STORED: u8 = 0;
const IN_FIRST_AND_LAST_ROW: u8 = 1;
const AT_POSITIONS: u8 = 2;

/// The first and the last value of a field.
pub(crate) struct FirstLast {
    pub(crate) field: u16,
    /// `None` if they are to be read from the rows.
    pub(crate) ends: Option<Ends>,
}

/// Appends the first and last values of sorted rows, whose least and greatest sequences are given; returns whether there are
/// any. Nothing is appended for few rows.
pub(super) fn encode(out: &mut Vec<u8>, columns: &Columns, (least, greatest): (u64, u64)) -> bool {
    let Some(last_row) = columns.rows().checked_sub(1).filter(|last| *last + 1 >= ROWS_MIN) else {
        return false;
    };
    let (starts_at, ends_at) = (columns.key(0), columns.key(last_row));
    put_varint(out, starts_at.1 - least);
    put_varint(out, greatest - ends_at.1);
    for field in &columns.fields {
        let column = &field.column;
        let Some((first, last)) = rows_of(column, columns.rows()) else {
            out.push(NOT_STORED);
            continue;
        };
        let form = out.len();
        if (first, last) == (0, last_row) {
            out.push(IN_FIRST_AND_LAST_ROW);
        } else {
            out.push(AT_POSITIONS);
            let (first, last) = (columns.key(first), columns.key(last));
            put_varint(out, first.0.wrapping_sub(starts_at.0).cast_unsigned());
            put_varint(out, first.1 - least);
            put_varint(out, ends_at.0.wrapping_sub(last.0).cast_unsigned());
            put_varint(out, greatest - last.1);
        }
        if !put_values(out, column, first, last) {
            out.truncate(form);
            out.push(NOT_STORED);
        }
    }
    true
}

/// The first and the last row that have a value.
fn rows_of(column: &Column, rows: usize) -> Option<(usize, usize)> {
    let first = (0..rows).find(|row| column.has(*row))?;
    let last = (first..rows).rev().find(|row| column.has(*row))?;
    Some((first, last))
}

/// Whether these are the first and last values of the rows.
pub(crate) fn are_of(stored: &[FirstLast], columns: &Columns) -> bool {
    stored.iter().all(|FirstLast { field, ends }| {
        let Some(ends) = ends else { return true };
        let Some(column) = columns.field(*field) else {
            return false;
        };
        let is_at = |row: usize, (position, value): &((i64, u64), Value)| {
            let held = column.value(row).map(Value::of);
            columns.key(row) == *position && held.is_some_and(|held| held.is_same(value))
        };
        let rows = rows_of(column, columns.rows());
        rows.is_some_and(|(first, last)| is_at(first, &ends.first) && is_at(last, &ends.last))
    })
}

/// Appends two values of a column; false if one is too long.
fn put_values(out: &mut Vec<u8>, column: &Column, first: usize, last: usize) -> bool {
    match &column.values {
        Values::Numbers { values, decimals } => {
            let mut both = Vec::new();
            encode_doubles(&mut both, &[values[first], values[last]], *decimals);
            put_bytes(out, &both);
        }
        Values::Booleans(values) => out.push(u8::from(values[first]) | u8::from(values[last]) << 1),
        Values::Texts(texts) => {
            for text in [first, last].map(|row| texts.get(row)) {
                if text.len() > TEXT_BYTES_MAX {
                    return false;
                }
                put_bytes(out, text.as_bytes());
            }
        }
    }
    true
}

/// Decodes what [`encode`] wrote for the block with this summary.
pub(super) fn decode(bytes: &[u8], summary: &BlockSummary) -> Result<Vec<FirstLast>, EngineError> {
    let mut reader = Reader::new(bytes, "first and last values");
    let (least, greatest) = (summary.first_sequence, summary.last_sequence);
    let starts_at = (summary.first_ns, least.wrapping_add(reader.varint()?));
    let ends_at = (summary.last_ns, greatest.wrapping_sub(reader.varint()?));
    let mut all = Vec::with_capacity(summary.fields.len());
    for known in &summary.fields {
        let positions = match reader.byte()? {
            NOT_STORED => None,
            IN_FIRST_AND_LAST_ROW => Some((starts_at, ends_at)),
            AT_POSITIONS => {
                let first_ns = summary.first_ns.wrapping_add_unsigned(reader.varint()?);
                let first = (first_ns, least.wrapping_add(reader.varint()?));
                let last_ns = summary.last_ns.wrapping_sub_unsigned(reader.varint()?);
                Some((first, (last_ns, greatest.wrapping_sub(reader.varint()?))))
            }
            _ => return Err(reader.corrupt("a form of first and last values")),
        };
        let ends = positions.map(|(first_at, last_at)| {
            let (first, last) = read_values(&mut reader, known.kind)?;
            Ok(Ends {
                first: (first_at, first),
                last: (last_at, last),
            })
        });
        all.push(FirstLast {
            field: known.field,
            ends: ends.transpose()?,
        });
    }
    Ok(all)
}

fn read_values(reader: &mut Reader<'_>, kind: FieldKind) -> Result<(Value, Value), EngineError> {
    Ok(match kind {
        FieldKind::Number => {
            let (values, _) = decode_doubles(reader.bytes()?, 2)?;
            (Value::Number(values[0]), Value::Number(values[1]))
        }
        FieldKind::Boolean => {
            let bits = reader.byte()?;
            (Value::Boolean(bits & 1 == 1), Value::Boolean(bits & 2 == 2))
        }
        FieldKind::String => {
            let (first, last) = (reader.text()?, reader.text()?);
            (Value::Text(first.into()), Value::Text(last.into()))
        }
    })
}

impl Block {
    /// The first and the last values, ascending by field; `None` if the block does not store them.
    pub(crate) fn first_last(&self, cache: &Cache) -> Result<Option<Arc<[FirstLast]>>, EngineError> {
        if (self.summary.rows as usize) < ROWS_MIN {
            return Ok(None);
        }
        let key = self.key(Part::FirstLast);
        if let Some(Cached::FirstLast(kept)) = cache.get(&key) {
            return Ok(kept);
        }
        let read = BlockReader::new(self)?.first_last()?.map(Arc::from);
        if self.summary.fields.len() <= FIELDS_KEPT {
            cache.insert(key, Cached::FirstLast(read.clone()));
        }
        Ok(read)
    }
}
