//! Samples and native histograms, which both messages have in common, except for the numbers of their fields.

use super::series::Writer;
use crate::Sink;
use crate::sink::{Field, Sample, SampleKind, SeriesKey};
use crate::timestamp::nanoseconds;
use crate::wire::{Fields, Malformed};

/// The NaN by which Prometheus says that a series ends (`model/value` of Prometheus).
const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;
/// Timestamps are milliseconds.
const MILLISECOND_NS: i64 = 1_000_000;

/// The numbers of fields of a time series.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) samples: u32,
    pub(super) histograms: u32,
}

impl Numbers {
    fn kind(self, number: u32) -> Option<SampleKind> {
        if number == self.samples {
            Some(SampleKind::Value)
        } else if number == self.histograms {
            Some(SampleKind::Histogram)
        } else {
            None
        }
    }
}

/// Hands the samples of a time series over. `unnamed`: source and key of the series, unless the sink knows it already; it is
/// named before the first sample that is stored.
pub(super) fn parse<'a, S: Sink>(
    writer: &mut Writer<'_, S>,
    mut unnamed: Option<(&str, Option<SeriesKey<'_>>)>,
    mut fields: Fields<'a>,
    numbers: Numbers,
) -> Result<(), Malformed> {
    while let Some((number, value)) = fields.next()? {
        let Some(kind) = numbers.kind(number) else {
            continue;
        };
        let message = value.message()?;
        let sample = Sample {
            entry: writer.entry,
            number: writer.number,
            kind,
        };
        writer.number += 1;
        let read = match kind {
            SampleKind::Value => value_of(message)?,
            SampleKind::Histogram => histogram_of(message)?,
        };
        let timestamp_ns = match nanoseconds(read.timestamp_ms, MILLISECOND_NS) {
            Ok(timestamp_ns) => timestamp_ns,
            Err(refusal) => {
                writer.sink.refuse(sample.entry, 1, refusal);
                continue;
            }
        };
        if read.fields == 0 && !read.stale {
            writer.sink.not_stored(sample);
            continue;
        }
        if let Some((source, key)) = unnamed.take() {
            writer.announce(source, key)?;
        }
        match read.stale {
            true => writer.sink.stale(sample, timestamp_ns),
            false => writer
                .sink
                .point(sample, timestamp_ns, &read.values[..read.fields]),
        }
    }
    Ok(())
}

/// How many samples and histograms there are.
pub(super) fn count(fields: Fields<'_>, numbers: Numbers) -> Result<u32, Malformed> {
    let mut count = 0;
    fields.each(|number, _| {
        count += u32::from(numbers.kind(number).is_some());
        Ok(())
    })?;
    Ok(count)
}

/// What is stored of a sample.
struct Read {
    timestamp_ms: i64,
    stale: bool,
    values: [Field<'static>; 2],
    /// How many of `values` there are.
    fields: usize,
}

impl Read {
    /// The finite ones of `values`.
    #[inline]
    fn new(timestamp_ms: i64, stale: bool, values: [(&'static str, f64); 2]) -> Self {
        let [first, second] = values;
        let (values, fields) = match (first.1.is_finite(), second.1.is_finite()) {
            (true, true) => ([first, second], 2),
            (true, false) => ([first, second], 1),
            (false, true) => ([second, first], 1),
            (false, false) => ([first, second], 0),
        };
        Self {
            timestamp_ms,
            stale,
            values: values.map(|(name, value)| Field::number(name, value)),
            fields,
        }
    }
}

#[inline]
fn value_of(fields: Fields<'_>) -> Result<Read, Malformed> {
    let (mut value, mut timestamp_ms) = (0.0f64, 0);
    fields.each(|number, field| {
        match number {
            1 => value = field.double()?,
            2 => timestamp_ms = field.varint()? as i64,
            _ => {}
        }
        Ok(())
    })?;
    let stale = value.to_bits() == STALE_BITS;
    Ok(Read::new(timestamp_ms, stale, [("value", value), ("", f64::NAN)]))
}

/// A stale histogram is not stored, as any whose sum and count are not finite: only samples end a series.
fn histogram_of(fields: Fields<'_>) -> Result<Read, Malformed> {
    let (mut count, mut sum, mut timestamp_ms) = (0.0, 0.0f64, 0);
    fields.each(|number, field| {
        match number {
            1 => count = field.varint()? as f64,
            2 => count = field.double()?,
            3 => sum = field.double()?,
            15 => timestamp_ms = field.varint()? as i64,
            _ => {}
        }
        Ok(())
    })?;
    if sum.to_bits() == STALE_BITS {
        count = f64::NAN;
    }
    Ok(Read::new(timestamp_ms, false, [("count", count), ("sum", sum)]))
}
