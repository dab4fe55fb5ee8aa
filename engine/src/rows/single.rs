//! Single rows: a row for each of several sources, all with the same fields. They are encoded row by row behind one list
//! of the fields. A table for each of them would mostly repeat what the table before it says. See FORMAT.md, "Rows".

use super::read::{PLACES_MAX, Sources, Table, TableValues, kind_of};
use super::table::Cell;
use super::write::{NUMBERS_RAW, form_of};
use super::writer::SourceRows;
use super::{DECIMALS_MAX, NOT_DECIMAL};
use crate::EngineError;
use crate::block::FieldKind;
use crate::bytes::{Reader, put_bytes, put_signed, put_varint};
use crate::decimal;
use crate::ends::source_of_ends;

/// In the place of a source: single rows follow.
pub(super) const SINGLE_ROWS: u32 = u32::MAX;

/// Whether both are single rows of points with the same fields of the same types, and both or neither have metadata.
pub(super) fn are_alike(
    (source, rows): &(u32, SourceRows<'_>),
    (other, others): &(u32, SourceRows<'_>),
) -> bool {
    let (SourceRows::One(row, cells, _), SourceRows::One(other_row, other_cells, _)) = (rows, others) else {
        return false;
    };
    let field = |cell: &Cell| (cell.field(), cell.kind());
    source_of_ends(*source).is_none()
        && source_of_ends(*other).is_none()
        && row.metadata.is_some() == other_row.metadata.is_some()
        && cells.len() == other_cells.len()
        && cells.iter().map(field).eq(other_cells.iter().map(field))
}

/// Encodes single rows that [are alike](are_alike).
pub(super) fn put(out: &mut Vec<u8>, rows: &[(u32, SourceRows<'_>)]) {
    put_varint(out, u64::from(SINGLE_ROWS));
    put_varint(out, rows.len() as u64);
    if let Some((_, SourceRows::One(row, cells, _))) = rows.first() {
        out.push(u8::from(row.metadata.is_some()));
        put_varint(out, cells.len() as u64);
        for cell in *cells {
            put_varint(out, u64::from(cell.field()));
            out.push(form_of(cell.kind()));
        }
    }
    let (mut source, mut timestamp_ns, mut next_place) = (0, 0i64, 0);
    for (of, rows) in rows {
        let SourceRows::One(row, cells, texts) = rows else {
            unreachable!("BUG: a source with several rows is like no other")
        };
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

/// Decodes single rows, behind [`SINGLE_ROWS`], to a table without rows.
pub(super) fn read<'a>(reader: &mut Reader<'a>, table: &mut Table<'a>) -> Result<(), EngineError> {
    let rows = reader.count()?;
    let has_metadata = read_flag(reader)?;
    table.resize_columns(reader)?;
    for column in &mut table.columns {
        column.field = reader.u16()?;
        column.present = None;
        let form = reader.byte()?;
        if form == NUMBERS_RAW {
            return Err(reader.corrupt("a kind of single values"));
        }
        column.values.reset(kind_of(form, reader)?);
    }
    table.check_fields(reader)?;
    table.metadata.values.reset(FieldKind::String);
    table.metadata.present = (!has_metadata).then(Vec::new);
    let mut sources = match std::mem::take(&mut table.sources) {
        Sources::Each(sources) => sources,
        Sources::One(_) => Vec::new(),
    };
    sources.clear();
    let (mut source, mut timestamp_ns, mut next_place) = (0i64, 0i64, 0i64);
    for _ in 0..rows {
        source = source.wrapping_add(reader.signed()?);
        timestamp_ns = timestamp_ns.wrapping_add(reader.signed()?);
        let place = next_place.wrapping_add(reader.signed()?);
        next_place = place.wrapping_add(1);
        let of_points = u32::try_from(source).ok();
        let of_points = of_points.filter(|source| source_of_ends(*source).is_none());
        sources.push(of_points.ok_or_else(|| reader.corrupt("a source of points"))?);
        table.timestamps_ns.push(timestamp_ns);
        let place = u32::try_from(place).ok().filter(|place| *place < PLACES_MAX);
        table.places.push(place.ok_or_else(|| reader.corrupt("a row"))?);
        for column in &mut table.columns {
            read_value(reader, &mut column.values)?;
        }
        if has_metadata {
            read_value(reader, &mut table.metadata.values)?;
        }
    }
    table.sources = Sources::Each(sources);
    Ok(())
}

fn read_flag(reader: &mut Reader<'_>) -> Result<bool, EngineError> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.corrupt("0 or 1")),
    }
}

/// Appends a value to a column.
fn read_value<'a>(reader: &mut Reader<'a>, column: &mut TableValues<'a>) -> Result<(), EngineError> {
    match column {
        TableValues::Numbers { values, decimals } => {
            let stated = reader.byte()?;
            values.push(match stated {
                ..=DECIMALS_MAX => decimal::value(reader.signed()?, decimal::power(stated)),
                NOT_DECIMAL => reader.f64()?,
                _ => return Err(reader.corrupt("a number of decimals")),
            });
            decimals.push(stated);
        }
        TableValues::Booleans(values) => values.push(read_flag(reader)?),
        TableValues::Texts { dictionary, codes } => {
            codes.push(dictionary.len() as u32);
            dictionary.push(reader.text()?);
        }
    }
    Ok(())
}
