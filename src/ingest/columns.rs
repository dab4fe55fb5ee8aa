//! Fast path for the values of a batch entry. Names are compared with the field at the same position in the source's
//! previous entry, and values go directly to the open row. Anything unusual (undeclared or repeated fields, escapes in
//! names, other types) is not handled here: the row is aborted and `values` parses the object again.

use engine::rows::RowsWriter;

use crate::catalog::{Field, FieldType, Schema};
use crate::limits::SCHEMA_FIELDS_MAX;

use super::json::{Malformed, Scanner, Text};

/// One bit per field of a schema.
type FieldBits = [u64; SCHEMA_FIELDS_MAX / 64];

/// Writes the object at the position of `scan` into the open row. Returns the end of the object if it was written
/// completely and has a value. `None` means that the slow path must parse it.
pub(super) fn write_row(
    scan: &Scanner<'_>,
    schema: &Schema,
    order: &mut [u16],
    text: &mut String,
    rows: &mut RowsWriter,
) -> Result<Option<usize>, Malformed> {
    // A local copy, so that the position stays in a register.
    let mut scan = *scan;
    let mut set: FieldBits = [0; SCHEMA_FIELDS_MAX / 64];
    let mut has_value = false;
    let mut place = 0;
    let mut more = scan.open(b'}')?;
    while more {
        let Some((ordinal, field)) = field(&mut scan, schema, order, place)? else {
            return Ok(None);
        };
        let (word, bit) = (usize::from(ordinal) / 64, 1 << (ordinal % 64));
        match set.get_mut(word) {
            Some(word) if *word & bit == 0 => *word |= bit,
            _ => return Ok(None),
        }
        match (scan.peek(), field.kind) {
            (Some(b'-' | b'0'..=b'9'), FieldType::Number) => {
                let number = scan.number()?;
                if number.is_infinite() {
                    return Ok(None);
                }
                rows.number(ordinal, number.value, number.decimals);
                has_value = true;
            }
            (Some(b'"'), FieldType::String) => {
                let (value, end) = string_ahead(scan)?;
                scan.seek(end);
                rows.string(ordinal, value.get(text));
                has_value = true;
            }
            (Some(b't' | b'f'), FieldType::Boolean) => {
                rows.boolean(ordinal, scan.boolean()?);
                has_value = true;
            }
            (Some(b'n'), _) => scan.null()?,
            _ => return Ok(None),
        }
        place += 1;
        more = scan.more(b'}')?;
    }
    Ok(has_value.then_some(scan.at()))
}

/// The field whose name and colon come next.
#[inline(always)]
fn field<'s>(
    scan: &mut Scanner<'_>,
    schema: &'s Schema,
    order: &mut [u16],
    place: usize,
) -> Result<Option<(u16, &'s Field)>, Malformed> {
    if scan.peek() == Some(b'"')
        && let Some(ordinal) = order.get(place)
        && let Some(field) = schema.fields.get(usize::from(*ordinal))
        && scan.eat_name(field.name.as_bytes())
    {
        return Ok(Some((*ordinal, field)));
    }
    // Names with escapes are left to the slow path; they are not worth another buffer here.
    let (name, end) = name_ahead(*scan)?;
    scan.seek(end);
    let Some(ordinal) = name.plain().and_then(|name| schema.field(name)) else {
        return Ok(None);
    };
    if let Some(expected) = order.get_mut(place) {
        *expected = ordinal;
    }
    Ok(schema
        .fields
        .get(usize::from(ordinal))
        .map(|field| (ordinal, field)))
}

#[inline(never)]
fn name_ahead(mut scan: Scanner<'_>) -> Result<(Text<'_>, usize), Malformed> {
    Ok((scan.name()?, scan.at()))
}

#[inline(never)]
fn string_ahead(mut scan: Scanner<'_>) -> Result<(Text<'_>, usize), Malformed> {
    Ok((scan.string()?, scan.at()))
}
