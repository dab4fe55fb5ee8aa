//! What is known of a block without reading it: enough to skip it, to count its rows, or to answer queries from it.

use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::block::{BLOCK_ROWS_MAX, MissingLevels};
use crate::bytes::{Reader, put_doubles, put_signed, put_varint};
use crate::decimal;
use crate::rows::NOT_DECIMAL;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Doubles.
    Number,
    /// Booleans.
    Boolean,
    /// Texts.
    String,
}

/// Field types, as encoded.
const NUMBER: u8 = 0;
const BOOLEAN: u8 = 1;
const STRING: u8 = 2;
/// A sum that needs more than one double, or exceeds their range. Since version 2 of segments.
const NUMBER_WITH_CARRY: u8 = 3;
/// Numbers whose sum and extremes are whole numbers. If these are decimals with n places, the type is n more. Since
/// version 4 of segments.
const DECIMALS: u8 = 16;
/// The type with the most decimal places.
const DECIMALS_LAST: u8 = DECIMALS + decimal::SOUGHT_DECIMALS_MAX;

/// The aggregate of a field over the whole block.
#[derive(Debug, Clone)]
pub struct FieldSummary {
    /// The field's ordinal.
    pub field: u16,
    /// The field's type.
    pub kind: FieldKind,
    /// Over all rows of the block. Only the count is set for types other than numbers.
    pub aggregate: Aggregate,
}

/// Source, row count, bounds and aggregates of a block.
#[derive(Debug, Clone)]
pub struct BlockSummary {
    /// The source's ordinal within the bucket.
    pub source: u32,
    /// Number of rows, at least one.
    pub rows: u32,
    /// Least timestamp.
    pub first_ns: i64,
    /// Greatest timestamp.
    pub last_ns: i64,
    /// Least sequence.
    pub first_sequence: u64,
    /// Greatest sequence.
    pub last_sequence: u64,
    /// Ascending by field; a field without values is absent.
    pub fields: Box<[FieldSummary]>,
    /// Rollup levels that the block is known not to store.
    pub(crate) missing_levels: MissingLevels,
}

impl BlockSummary {
    /// The summary of a field; `None` if no row has it.
    pub fn field(&self, field: u16) -> Option<&FieldSummary> {
        let index = self.index_of(field, 0)?;
        Some(&self.fields[index])
    }

    /// The index of a field, which is looked for at `near` first.
    pub(crate) fn index_of(&self, field: u16, near: usize) -> Option<usize> {
        if self
            .fields
            .get(near)
            .is_some_and(|summary| summary.field == field)
        {
            return Some(near);
        }
        let index = self.fields.binary_search_by_key(&field, |summary| summary.field);
        index.ok()
    }

    /// Whether one of these fields has a value in every row.
    pub(crate) fn has_in_every_row(&self, fields: &[u16]) -> bool {
        let mut fields = fields.iter().filter_map(|field| self.field(*field));
        fields.any(|field| field.aggregate.count == u64::from(self.rows))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.source));
        put_varint(out, u64::from(self.rows));
        put_signed(out, self.first_ns);
        put_varint(out, self.last_ns.wrapping_sub(self.first_ns) as u64);
        put_varint(out, self.first_sequence);
        put_varint(out, self.last_sequence - self.first_sequence);
        put_varint(out, self.fields.len() as u64);
        for summary in &self.fields {
            put_varint(out, u64::from(summary.field));
            if let Some(decimals) = Decimals::of(summary) {
                decimals.encode(out, self.rows, summary.aggregate.count);
                continue;
            }
            let Aggregate { count, min, max, .. } = summary.aggregate;
            let (sum, carry) = summary.aggregate.parts();
            let (kind, numbers): (u8, &[f64]) = match summary.kind {
                FieldKind::Number if summary.aggregate.is_one_double() => {
                    (NUMBER, &[summary.aggregate.sum(), min, max])
                }
                FieldKind::Number => (NUMBER_WITH_CARRY, &[sum, carry, min, max]),
                FieldKind::Boolean => (BOOLEAN, &[]),
                FieldKind::String => (STRING, &[]),
            };
            out.push(kind);
            put_varint(out, count);
            put_doubles(out, numbers);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, EngineError> {
        let mut fields = Vec::new();
        let summary = Self::decode_with(reader, |field| fields.push(field))?;
        Ok(BlockSummary {
            fields: fields.into_boxed_slice(),
            ..summary
        })
    }

    /// Decodes everything but skips the fields: reading a whole footer then needs no memory for them.
    pub(crate) fn decode_without_fields(reader: &mut Reader<'_>) -> Result<Self, EngineError> {
        Self::decode_with(reader, drop)
    }

    fn decode_with(reader: &mut Reader<'_>, mut each: impl FnMut(FieldSummary)) -> Result<Self, EngineError> {
        let source = reader.u32()?;
        let rows = reader.u32()?;
        let first_ns = reader.signed()?;
        let last_ns = first_ns.wrapping_add(reader.varint()? as i64);
        let first_sequence = reader.varint()?;
        let last_sequence = first_sequence.wrapping_add(reader.varint()?);
        let count = reader.count()?;
        for _ in 0..count {
            let field = reader.u16()?;
            let kind = reader.byte()?;
            let stated = reader.varint()?;
            let count = match kind {
                // The rows without a value.
                DECIMALS..=DECIMALS_LAST => u64::from(rows).checked_sub(stated),
                _ => Some(stated).filter(|count| *count <= u64::from(rows)),
            };
            let count = count.ok_or_else(|| reader.corrupt("at most as many values as rows"))?;
            let (kind, aggregate) = match kind {
                NUMBER => {
                    let aggregate = Aggregate::new(count, reader.f64()?, reader.f64()?, reader.f64()?);
                    (FieldKind::Number, aggregate)
                }
                NUMBER_WITH_CARRY => {
                    let parts = (reader.f64()?, reader.f64()?);
                    let aggregate = Aggregate::of_parts(count, parts, reader.f64()?, reader.f64()?);
                    (FieldKind::Number, aggregate)
                }
                BOOLEAN => (FieldKind::Boolean, Aggregate::of_count(count)),
                STRING => (FieldKind::String, Aggregate::of_count(count)),
                DECIMALS..=DECIMALS_LAST => {
                    let aggregate = Decimals::decode(reader, count, kind - DECIMALS)?;
                    (FieldKind::Number, aggregate)
                }
                _ => return Err(reader.corrupt("a kind of field")),
            };
            each(FieldSummary {
                field,
                kind,
                aggregate,
            });
        }
        // Readers of the block allocate this many rows.
        if !(1..=BLOCK_ROWS_MAX).contains(&(rows as usize)) || last_ns < first_ns {
            return Err(reader.corrupt("a block with rows, and no more than fit"));
        }
        if last_sequence < first_sequence {
            return Err(reader.corrupt("sequences below 2^64"));
        }
        Ok(BlockSummary {
            source,
            rows,
            first_ns,
            last_ns,
            first_sequence,
            last_sequence,
            fields: Box::default(),
            missing_levels: MissingLevels::default(),
        })
    }
}

/// Sum and extremes of a field as mantissas of decimals: a few bytes in place of three doubles.
struct Decimals {
    places: u8,
    sum: i64,
    min: i64,
    max: i64,
}

impl Decimals {
    /// Those of a field of numbers; `None` if they are not exactly these doubles.
    fn of(summary: &FieldSummary) -> Option<Self> {
        let aggregate = &summary.aggregate;
        if summary.kind != FieldKind::Number || !aggregate.is_one_double() {
            return None;
        }
        let numbers = [aggregate.sum(), aggregate.min, aggregate.max];
        let places = numbers.map(decimal::decimals_of).into_iter().max()?;
        if places == NOT_DECIMAL {
            return None;
        }
        let scale = decimal::power(places);
        let [sum, min, max] = numbers.map(|number| decimal::mantissa(number, scale));
        Some(Decimals {
            places,
            sum: sum?,
            min: min?,
            max: max?,
        })
    }

    /// Encodes them for a field with `count` values in a block of `rows` rows. Of the sum, the minimum of each value is
    /// subtracted, so that it takes few bytes.
    fn encode(&self, out: &mut Vec<u8>, rows: u32, count: u64) {
        out.push(DECIMALS + self.places);
        put_varint(out, u64::from(rows).wrapping_sub(count));
        put_signed(out, self.min);
        put_varint(out, self.max.wrapping_sub(self.min) as u64);
        put_signed(out, self.sum.wrapping_sub(self.min.wrapping_mul(count as i64)));
    }

    /// Decodes what follows the number of rows without a value.
    fn decode(reader: &mut Reader<'_>, count: u64, places: u8) -> Result<Aggregate, EngineError> {
        let min = reader.signed()?;
        let max = min.wrapping_add(reader.varint()? as i64);
        let sum = reader.signed()?.wrapping_add(min.wrapping_mul(count as i64));
        let scale = decimal::power(places);
        let [sum, min, max] = [sum, min, max].map(|mantissa| decimal::value(mantissa, scale));
        Ok(Aggregate::new(count, sum, min, max))
    }
}
