//! Encodes the columns of one request for the log.

use std::collections::HashMap;

use super::NOT_DECIMAL;
use super::single;
use super::table::{Cell, Column, Row, Table, Texts, Values};
use super::writer::{RowsWriter, SourceRows};
use crate::block::FieldKind;
use crate::bytes::{put_bytes, put_doubles, put_signed, put_varint};
use crate::decimal;

/// Column types, as encoded.
pub(super) const NUMBERS_DECIMAL: u8 = 0;
pub(super) const NUMBERS_RAW: u8 = 1;
pub(super) const BOOLEANS: u8 = 2;
pub(super) const TEXTS: u8 = 3;

/// The kind of a column of this type; numbers are mantissas.
pub(super) fn form_of(kind: FieldKind) -> u8 {
    match kind {
        FieldKind::Number => NUMBERS_DECIMAL,
        FieldKind::Boolean => BOOLEANS,
        FieldKind::String => TEXTS,
    }
}

impl RowsWriter {
    /// Appends the committed rows, encoded as described in FORMAT.md, "Rows". Returns whether there are single rows, which
    /// older programs do not know.
    pub fn encode(&self, out: &mut Vec<u8>) -> bool {
        // Series are there before their ends.
        let mut sources = self.sources_with_points().chain(self.ends());
        let Some((source, rows)) = sources.next() else {
            put_varint(out, 0);
            return false;
        };
        let Some(second) = sources.next() else {
            put_varint(out, 1);
            put_rows_of(out, source, &rows);
            return false;
        };
        let sources: Vec<(u32, SourceRows<'_>)> =
            [(source, rows), second].into_iter().chain(sources).collect();
        let groups: Vec<_> = sources.chunk_by(single::are_alike).collect();
        put_varint(out, groups.len() as u64);
        for group in &groups {
            match group {
                [(source, rows)] => put_rows_of(out, *source, rows),
                single_rows => single::put(out, single_rows),
            }
        }
        groups.len() < sources.len()
    }
}

fn put_rows_of(out: &mut Vec<u8>, source: u32, rows: &SourceRows<'_>) {
    put_varint(out, u64::from(source));
    match rows {
        SourceRows::One(row, cells, texts) => put_row(out, row, cells, texts),
        SourceRows::Several(table) => put_table(out, table),
    }
}

/// Encodes a single row as a table would be.
fn put_row(out: &mut Vec<u8>, row: &Row, cells: &[Cell], texts: &str) {
    put_varint(out, 1);
    put_signed(out, row.timestamp_ns);
    put_rows(out, &[row.place]);
    put_varint(out, cells.len() as u64);
    for cell in cells {
        put_varint(out, u64::from(cell.field()));
        match cell {
            Cell::Number { value, decimals, .. } => put_numbers(out, &[*value], *decimals, &[0], 1),
            Cell::Boolean { value, .. } => out.extend([BOOLEANS, 1, u8::from(*value)]),
            Cell::Text { place, .. } => {
                out.extend([TEXTS, 1, 0]);
                put_bytes(out, place.of(texts).as_bytes());
            }
        }
    }
    put_varint(out, u64::from(row.metadata.is_some()));
    if let Some(place) = row.metadata {
        out.push(0);
        put_bytes(out, place.of(texts).as_bytes());
    }
}

fn put_table(out: &mut Vec<u8>, table: &Table) {
    let rows = table.timestamps_ns.len();
    put_varint(out, rows as u64);
    // Second differences: a regular series takes one byte per row.
    let (mut before, mut step) = (0i64, 0i64);
    for timestamp_ns in &table.timestamps_ns {
        let delta = timestamp_ns.wrapping_sub(before);
        put_signed(out, delta.wrapping_sub(step));
        (before, step) = (*timestamp_ns, delta);
    }
    put_rows(out, &table.places);
    put_varint(out, table.present_columns().count() as u64);
    for (field, column) in table.present_columns() {
        put_varint(out, u64::from(field));
        put_column(out, column, rows);
    }
    put_presence(out, &table.metadata_rows, rows);
    put_texts(out, &table.metadata);
}

/// Encodes ascending numbers as their differences minus one, so that consecutive numbers are zeros. A flag replaces the
/// differences if there are no gaps.
fn put_rows(out: &mut Vec<u8>, places: &[u32]) {
    let first = places.first().copied().unwrap_or(0);
    put_varint(out, u64::from(first));
    let contiguous = places
        .iter()
        .enumerate()
        .all(|(index, place)| *place == first + index as u32);
    out.push(u8::from(!contiguous));
    if !contiguous {
        for pair in places.windows(2) {
            put_varint(out, u64::from(pair[1] - pair[0] - 1));
        }
    }
}

/// Encodes which rows of the table have a value: their count, and the rows unless it is none or all.
fn put_presence(out: &mut Vec<u8>, present: &[u32], rows: usize) {
    put_varint(out, present.len() as u64);
    if !present.is_empty() && present.len() < rows {
        put_rows(out, present);
    }
}

fn put_column(out: &mut Vec<u8>, column: &Column, rows: usize) {
    match &column.values {
        Values::Numbers { values, decimals } => put_numbers(out, values, *decimals, &column.rows, rows),
        Values::Booleans(values) => {
            out.push(BOOLEANS);
            put_presence(out, &column.rows, rows);
            for eight in values.chunks(8) {
                out.push(
                    eight
                        .iter()
                        .rev()
                        .fold(0, |byte, value| byte << 1 | u8::from(*value)),
                );
            }
        }
        Values::Texts(texts) => {
            out.push(TEXTS);
            put_presence(out, &column.rows, rows);
            put_texts(out, texts);
        }
    }
}

/// Encodes numbers, which the rows `present` of all `rows` have.
fn put_numbers(out: &mut Vec<u8>, values: &[f64], decimals: u8, present: &[u32], rows: usize) {
    let kind = out.len();
    out.push(NUMBERS_DECIMAL);
    put_presence(out, present, rows);
    let start = out.len();
    if decimals == NOT_DECIMAL || !put_mantissas(out, values, decimals) {
        out.truncate(start);
        out[kind] = NUMBERS_RAW;
        put_doubles(out, values);
    }
}

/// Encodes integer mantissas as differences; `false` if one does not reproduce its double exactly.
fn put_mantissas(out: &mut Vec<u8>, values: &[f64], decimals: u8) -> bool {
    out.push(decimals);
    let scale = decimal::power(decimals);
    let mut before = 0i64;
    for value in values {
        let Some(mantissa) = decimal::mantissa(*value, scale) else {
            return false;
        };
        put_signed(out, mantissa - before);
        before = mantissa;
    }
    true
}

/// Up to this many texts, a linear search is faster than hashing.
const LINEAR_TEXTS_MAX: usize = 8;

/// The first occurrence of a text is encoded after a zero; a repetition is its number, counted from one.
fn put_texts(out: &mut Vec<u8>, texts: &Texts) {
    if texts.len() == 0 {
        return;
    }
    let are_few = texts.len() <= LINEAR_TEXTS_MAX;
    let (mut few, mut many) = ([0u64; LINEAR_TEXTS_MAX], HashMap::new());
    let mut different = 0;
    for (index, text) in texts.iter().enumerate() {
        let known = match are_few {
            true => (0..index)
                .find(|before| texts.get(*before) == text)
                .map(|before| few[before]),
            false => many.get(text).copied(),
        };
        let number = known.unwrap_or(different + 1);
        match known {
            Some(number) => put_varint(out, number),
            None => {
                different += 1;
                put_varint(out, 0);
                put_bytes(out, text.as_bytes());
            }
        }
        if are_few {
            few[index] = number;
        } else if known.is_none() {
            many.insert(text, number);
        }
    }
}
