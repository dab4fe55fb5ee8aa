//! Gauges and sums: `NumberDataPoint`.

use super::request::{Head, Writer};
use crate::Refusal;
use crate::refusal::Fault;
use crate::sink::{Field, Kind, Sample, Sink};
use crate::wire::{Fields, Malformed, Wire};

pub(super) fn parse<'a, S: Sink>(
    writer: &mut Writer<'a, '_, S>,
    name: &str,
    sample: Sample,
    fields: Fields<'a>,
) -> Result<(), Fault<'a>> {
    let (mut head, mut value) = (Head::default(), None);
    writer.attributes.begin();
    fields.each(|number, field| -> Result<(), Malformed> {
        match number {
            3 => head.time = field.fixed()?,
            4 => value = Some(field.double()?),
            6 => value = Some(field.fixed()? as i64 as f64),
            7 => writer.attributes.add(field)?,
            8 => head.flags = field.varint()?,
            _ => {}
        }
        Ok(())
    })?;
    let value = match value {
        _ if head.has_no_value() => None,
        Some(value) => value.is_finite().then_some(value),
        None => return Err(Refusal::NoValue.into()),
    };
    let timestamp_ns = head.timestamp_ns()?;
    match value {
        Some(value) => writer.point(name, sample, timestamp_ns, &[Field::number("value", value)]),
        None => {
            writer.sink.not_stored(sample);
            Ok(())
        }
    }
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// The type of a sum: a counter if it only grows. The deltas of one are no metric of Prometheus.
pub(super) fn kind_of_sum(data: Wire<'_>) -> Result<Kind, Malformed> {
    let (mut temporality, mut is_monotonic) = (0, 0);
    data.message()?.each(|number, field| -> Result<(), Malformed> {
        match number {
            2 => temporality = field.varint()?,
            3 => is_monotonic = field.varint()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(match (is_monotonic, temporality) {
        (0, _) => Kind::Gauge,
        (_, CUMULATIVE) => Kind::Counter,
        _ => Kind::Unknown,
    })
}
