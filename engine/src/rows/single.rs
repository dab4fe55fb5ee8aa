//! Single rows: a row for each of several sources, all with the same fields. They are encoded row by row behind one list
//! of the fields, because a table for each of them would mostly repeat what the table before it says (FORMAT.md, "Rows").

use super::NOT_DECIMAL;
use super::read::{Table, TableColumn, TableValues, kind_of};
use super::table::{Cell, Row};
use super::write::{BOOLEANS, NUMBERS_DECIMAL, TEXTS};
use crate::EngineError;
use crate::block::FieldKind;
use crate::bytes::{Reader, put_bytes, put_signed, put_varint};
use crate::decimal;
use crate::ends::source_of_ends;

/// In the place of a source: single rows follow.
pub(super) const SINGLE_ROWS: u32 = u32::MAX;

/// A source's only row.
#[derive(Clone, Copy)]
pub(super) struct SingleRow<'w> {
    pub(super) source: u32,
    pub(super) row: &'w Row,
    /// Ascending by field.
    pub(super) cells: &'w [Cell],
}

impl SingleRow<'_> {
    /// Whether another row has the same fields with the same types, and metadata if this one has.
    pub(super) fn has_fields_of(&self, other: &SingleRow<'_>) -> bool {
        self.row.metadata.is_some() == other.row.metadata.is_some()
            && self.cells.len() == other.cells.len()
            && self
                .cells
                .iter()
                .zip(other.cells)
                .all(|(cell, other)| (cell.field(), cell.kind()) == (other.field(), other.kind()))
    }
}

/// Encodes rows that have the same fields, at least one; `texts` contains theirs.
pub(super) fn put(out: &mut Vec<u8>, rows: &[SingleRow<'_>], texts: &str) {
    let [first, ..] = rows else { return };
    put_varint(out, u64::from(SINGLE_ROWS));
    put_varint(out, rows.len() as u64);
    out.push(u8::from(first.row.metadata.is_some()));
    put_varint(out, first.cells.len() as u64);
    for cell in first.cells {
        put_varint(out, u64::from(cell.field()));
        out.push(match cell {
            Cell::Number { .. } => NUMBERS_DECIMAL,
            Cell::Boolean { .. } => BOOLEANS,
            Cell::Text { .. } => TEXTS,
        });
    }
    let (mut source, mut timestamp_ns, mut next_place) = (0, 0i64, 0);
    for SingleRow {
        source: of,
        row,
        cells,
    } in rows
    {
        put_signed(out, i64::from(*of) - source);
        put_signed(out, row.timestamp_ns.wrapping_sub(timestamp_ns));
        put_signed(out, i64::from(row.place) - next_place);
        (source, timestamp_ns, next_place) = (i64::from(*of), row.timestamp_ns, i64::from(row.place) + 1);
        for cell in *cells {
            match cell {
                Cell::Number { value, decimals, .. } => put_number(out, *value, *decimals),
                Cell::Boolean { value, .. } => out.push(u8::from(*value)),
                Cell::Text { place, .. } => put_bytes(out, place.of(texts).as_bytes()),
            }
        }
        if let Some(place) = row.metadata {
            put_bytes(out, place.of(texts).as_bytes());
        }
    }
}

/// Encodes the decimal places and the mantissa, or the double if it has none.
fn put_number(out: &mut Vec<u8>, value: f64, decimals: u8) {
    match decimal::mantissa(value, decimal::power(decimals)) {
        Some(mantissa) => {
            out.push(decimals);
            put_signed(out, mantissa);
        }
        None => {
            out.push(NOT_DECIMAL);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Decodes single rows, behind [`SINGLE_ROWS`], to an empty table.
pub(super) fn read<'a>(reader: &mut Reader<'a>, table: &mut Table<'a>) -> Result<(), EngineError> {
    let rows = reader.count()?;
    let has_metadata = reader.byte()? != 0;
    let columns = reader.count()?;
    table.columns.resize_with(columns, TableColumn::default);
    for column in &mut table.columns {
        column.field = reader.u16()?;
        let form = reader.byte()?;
        column.values.reset(kind_of(form, reader)?);
        column.present = None;
    }
    table.check_fields(reader)?;
    table.metadata.values.reset(FieldKind::String);
    table.metadata.present = (!has_metadata).then(Vec::new);
    let (mut source, mut timestamp_ns, mut next_place) = (0i64, 0i64, 0i64);
    for _ in 0..rows {
        source = source.wrapping_add(reader.signed()?);
        timestamp_ns = timestamp_ns.wrapping_add(reader.signed()?);
        let place = next_place.wrapping_add(reader.signed()?);
        next_place = place.wrapping_add(1);
        let of_points = u32::try_from(source)
            .ok()
            .filter(|source| source_of_ends(*source).is_none());
        table
            .sources
            .push(of_points.ok_or_else(|| reader.corrupt("a source of points"))?);
        table.timestamps_ns.push(timestamp_ns);
        table
            .places
            .push(u32::try_from(place).map_err(|_| reader.corrupt("a row"))?);
        for column in &mut table.columns {
            read_value(reader, &mut column.values)?;
        }
        if has_metadata {
            read_value(reader, &mut table.metadata.values)?;
        }
    }
    Ok(())
}

/// Appends a value to a column.
fn read_value<'a>(reader: &mut Reader<'a>, column: &mut TableValues<'a>) -> Result<(), EngineError> {
    match column {
        TableValues::Numbers { values, decimals } => {
            let stated = reader.byte()?;
            decimals.push(stated);
            values.push(match stated {
                NOT_DECIMAL => reader.f64()?,
                _ => decimal::value(reader.signed()?, decimal::power(stated)),
            });
        }
        TableValues::Booleans(values) => values.push(reader.byte()? != 0),
        TableValues::Texts { dictionary, codes } => {
            codes.push(dictionary.len() as u32);
            dictionary.push(reader.text()?);
        }
    }
    Ok(())
}
