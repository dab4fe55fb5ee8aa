//! `HistogramDataPoint` and `ExponentialHistogramDataPoint`.

use super::BUCKETS_MAX;
use super::request::{Head, Writer};
use crate::Refusal;
use crate::refusal::Fault;
use crate::sink::{Field, Sample, Sink};
use crate::wire::{self, Fields, Malformed};

/// The label of a bucket: its upper bound.
const LE: &str = "le";

/// What both kinds of data points have.
#[derive(Default)]
struct Totals {
    head: Head,
    count: u64,
    sum: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
}

impl Totals {
    /// Hands over `count`, and of the others what was sent and is finite.
    fn point<'a, S: Sink>(
        &self,
        writer: &mut Writer<'a, '_, S>,
        name: &str,
        sample: Sample,
    ) -> Result<(), Fault<'a>> {
        let mut fields = [const { Field::number("count", 0.0) }; 4];
        fields[0] = Field::number("count", self.count as f64);
        let mut count = 1;
        for (name, value) in [("sum", self.sum), ("min", self.min), ("max", self.max)] {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                fields[count] = Field::number(name, value);
                count += 1;
            }
        }
        writer.point(name, sample, self.head.timestamp_ns()?, &fields[..count])
    }
}

/// A data point with explicit bounds: totals, then the buckets as series of their own.
pub(super) fn explicit<'a, S: Sink>(
    writer: &mut Writer<'a, '_, S>,
    name: &str,
    sample: Sample,
    fields: Fields<'a>,
) -> Result<(), Fault<'a>> {
    let mut totals = Totals::default();
    let mut buckets = std::mem::take(&mut writer.buckets);
    buckets.clear();
    writer.attributes.begin();
    fields.each(|number, field| -> Result<(), Malformed> {
        match number {
            3 => totals.head.time = field.fixed()?,
            4 => totals.count = field.fixed()?,
            5 => totals.sum = Some(field.double()?),
            6 => wire::fixeds(field, |count| buckets.counts.push(count))?,
            7 => wire::fixeds(field, |bits| buckets.bounds.push(f64::from_bits(bits)))?,
            9 => writer.attributes.add(field)?,
            10 => totals.head.flags = field.varint()?,
            11 => totals.min = Some(field.double()?),
            12 => totals.max = Some(field.double()?),
            _ => {}
        }
        Ok(())
    })?;
    let written = write_explicit(writer, name, sample, &totals, &buckets);
    writer.buckets = buckets;
    written
}

fn write_explicit<'a, S: Sink>(
    writer: &mut Writer<'a, '_, S>,
    name: &str,
    sample: Sample,
    totals: &Totals,
    buckets: &Buckets,
) -> Result<(), Fault<'a>> {
    let timestamp_ns = totals.head.timestamp_ns()?;
    if totals.head.has_no_value() {
        writer.sink.not_stored(sample);
        return Ok(());
    }
    if buckets.are_sent() {
        buckets.check()?;
        writer.attributes.reserve(LE)?;
        writer.check_labelled(buckets.counts.len())?;
    }
    totals.point(writer, name, sample)?;
    let mut cumulative = 0u128;
    let bounds = buckets.bounds.iter().chain([&f64::INFINITY]);
    for (bound, count) in bounds.zip(&buckets.counts) {
        cumulative += u128::from(*count);
        writer.labelled(LE, *bound, sample, timestamp_ns, cumulative as f64)?;
    }
    Ok(())
}

/// The buckets of a data point. Its buffers serve all data points of a body.
#[derive(Default)]
pub(super) struct Buckets {
    counts: Vec<u64>,
    bounds: Vec<f64>,
}

impl Buckets {
    fn clear(&mut self) {
        self.counts.clear();
        self.bounds.clear();
    }

    /// Both may be left out.
    fn are_sent(&self) -> bool {
        !self.counts.is_empty() || !self.bounds.is_empty()
    }

    fn check<'e>(&self) -> Result<(), Refusal<'e>> {
        let (counts, bounds) = (self.counts.len(), self.bounds.len());
        if counts != bounds + 1 {
            return Err(Refusal::BucketCounts { counts, bounds });
        }
        if bounds > BUCKETS_MAX {
            return Err(Refusal::TooManyBuckets);
        }
        let ascend = self.bounds.is_sorted_by(|low, high| low < high);
        match ascend && self.bounds.iter().all(|bound| bound.is_finite()) {
            true => Ok(()),
            false => Err(Refusal::BucketBounds),
        }
    }
}

/// A data point of an exponential histogram, of which only the totals are stored.
pub(super) fn exponential<'a, S: Sink>(
    writer: &mut Writer<'a, '_, S>,
    name: &str,
    sample: Sample,
    fields: Fields<'a>,
) -> Result<(), Fault<'a>> {
    let mut totals = Totals::default();
    writer.attributes.begin();
    fields.each(|number, field| -> Result<(), Malformed> {
        match number {
            1 => writer.attributes.add(field)?,
            3 => totals.head.time = field.fixed()?,
            4 => totals.count = field.fixed()?,
            5 => totals.sum = Some(field.double()?),
            10 => totals.head.flags = field.varint()?,
            12 => totals.min = Some(field.double()?),
            13 => totals.max = Some(field.double()?),
            _ => {}
        }
        Ok(())
    })?;
    totals.head.timestamp_ns()?;
    if totals.head.has_no_value() {
        writer.sink.not_stored(sample);
        return Ok(());
    }
    totals.point(writer, name, sample)
}
