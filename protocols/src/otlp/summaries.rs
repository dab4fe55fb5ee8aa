//! `SummaryDataPoint`.

use super::BUCKETS_MAX;
use super::request::{Head, Writer};
use crate::Refusal;
use crate::refusal::Fault;
use crate::sink::{Field, Sample, Sink};
use crate::wire::{Fields, Malformed};

/// The label of a quantile.
const QUANTILE: &str = "quantile";

/// A data point: `count` and `sum`, then the quantiles as series of their own.
pub(super) fn parse<'a, S: Sink>(
    writer: &mut Writer<'a, '_, S>,
    name: &str,
    sample: Sample,
    fields: Fields<'a>,
) -> Result<(), Fault<'a>> {
    let (mut head, mut count, mut sum, mut quantiles) = (Head::default(), 0, 0.0f64, 0);
    writer.attributes.begin();
    fields.each(|number, field| -> Result<(), Malformed> {
        match number {
            3 => head.time = field.fixed()?,
            4 => count = field.fixed()?,
            5 => sum = field.double()?,
            6 => quantiles += 1,
            7 => writer.attributes.add(field)?,
            8 => head.flags = field.varint()?,
            _ => {}
        }
        Ok(())
    })?;
    let timestamp_ns = head.timestamp_ns()?;
    if head.has_no_value() {
        writer.sink.not_stored(sample);
        return Ok(());
    }
    if quantiles > 0 {
        if quantiles > BUCKETS_MAX {
            return Err(Refusal::TooManyBuckets.into());
        }
        each_quantile(fields, |quantile, _| match (0.0..=1.0).contains(&quantile) {
            true => Ok(()),
            false => Err(Refusal::QuantileRange.into()),
        })?;
        writer.attributes.reserve(QUANTILE)?;
        writer.check_labelled(quantiles)?;
    }
    let totals = [Field::number("count", count as f64), Field::number("sum", sum)];
    // A sum that is not finite is as one that was not sent.
    let sent = if sum.is_finite() { 2 } else { 1 };
    writer.point(name, sample, timestamp_ns, &totals[..sent])?;
    each_quantile(fields, |quantile, value| match value.is_finite() {
        true => writer.labelled(QUANTILE, quantile, sample, timestamp_ns, value),
        false => Ok(()),
    })
}

/// Calls `each` with every quantile and its value.
fn each_quantile<'a>(
    fields: Fields<'a>,
    mut each: impl FnMut(f64, f64) -> Result<(), Fault<'a>>,
) -> Result<(), Fault<'a>> {
    fields.each(|number, field| {
        if number != 6 {
            return Ok(());
        }
        let (mut quantile, mut value) = (0.0, 0.0);
        field.message()?.each(|number, field| -> Result<(), Malformed> {
            match number {
                1 => quantile = field.double()?,
                2 => value = field.double()?,
                _ => {}
            }
            Ok(())
        })?;
        each(quantile, value)
    })
}
