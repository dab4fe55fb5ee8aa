//! Resources, scopes and metrics.

use super::attributes::{Attributes, Resource};
use super::histograms::{self, Buckets};
use super::{numbers, summaries};
use crate::Refusal;
use crate::json::write_number;
use crate::metadata::Metadata;
use crate::refusal::Fault;
use crate::sink::{Family, Field, Kind, Sample, SampleKind, Sink};
use crate::timestamp::nanoseconds;
use crate::wire::{Fields, Malformed, Wire};

const RESOURCE_METRICS: u32 = 1;
const RESOURCE: u32 = 1;
const SCOPE_METRICS: u32 = 2;
const METRICS: u32 = 2;

/// Hands the data points of a message to a sink.
pub(super) struct Writer<'a, 's, S> {
    pub(super) sink: &'s mut S,
    pub(super) metadata: Metadata,
    pub(super) attributes: Attributes<'a>,
    /// Index of the metric.
    entry: u32,
    /// Data points so far.
    number: u32,
    /// `<name>.bucket` or `<name>.quantile`.
    derived: String,
    pub(super) buckets: Buckets,
    /// The text of a bound or a quantile.
    value: Vec<u8>,
}

pub(super) fn parse(message: &[u8], sink: &mut impl Sink) -> Result<(), Malformed> {
    let mut writer = Writer {
        sink,
        metadata: Metadata::new(),
        attributes: Attributes::default(),
        entry: 0,
        number: 0,
        derived: String::new(),
        buckets: Buckets::default(),
        value: Vec::new(),
    };
    each_resource(message, |resource| {
        writer.attributes.begin_resource(Resource::read(resource)?);
        each_metric(resource, |metric| writer.metric(metric))
    })
}

/// The names of metrics by their ascending indexes.
pub(super) fn names(message: &[u8], mut entries: &[u32]) -> Result<Vec<String>, Malformed> {
    let (mut names, mut next) = (Vec::with_capacity(entries.len()), 0);
    each_resource(message, |resource| {
        each_metric(resource, |fields| {
            if let Some((first, rest)) = entries.split_first()
                && *first == next
            {
                names.push(Metric::read(fields)?.name.to_owned());
                entries = rest;
            }
            next += 1;
            Ok(())
        })
    })?;
    Ok(names)
}

fn each_resource<'a>(
    message: &'a [u8],
    mut each: impl FnMut(Fields<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    Fields::of(message).each(|number, value| match number {
        RESOURCE_METRICS => each(value.message()?),
        _ => Ok(()),
    })
}

fn each_metric<'a>(
    resource: Fields<'a>,
    mut each: impl FnMut(Fields<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    resource.each(|number, value| match number {
        SCOPE_METRICS => value.message()?.each(|number, value| match number {
            METRICS => each(value.message()?),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })
}

impl Resource<'_> {
    /// The attributes of a resource that become metadata.
    fn read(resource_metrics: Fields<'_>) -> Result<Resource<'_>, Malformed> {
        let mut resource = Resource::default();
        resource_metrics.each(|number, value| match number {
            RESOURCE => resource.add(value.message()?),
            _ => Ok(()),
        })?;
        Ok(resource.finish())
    }
}

/// A metric without its data points.
struct Metric<'a> {
    name: &'a str,
    description: &'a str,
    unit: &'a str,
    data: Data<'a>,
}

#[derive(Clone, Copy)]
enum Data<'a> {
    None,
    Gauge(Wire<'a>),
    Sum(Wire<'a>),
    Histogram(Wire<'a>),
    ExponentialHistogram(Wire<'a>),
    Summary(Wire<'a>),
}

impl<'a> Metric<'a> {
    fn read(fields: Fields<'a>) -> Result<Self, Malformed> {
        let mut metric = Metric {
            name: "",
            description: "",
            unit: "",
            data: Data::None,
        };
        fields.each(|number, value| {
            match number {
                1 => metric.name = value.text()?,
                2 => metric.description = value.text()?,
                3 => metric.unit = value.text()?,
                5 => metric.data = Data::Gauge(value),
                7 => metric.data = Data::Sum(value),
                9 => metric.data = Data::Histogram(value),
                10 => metric.data = Data::ExponentialHistogram(value),
                11 => metric.data = Data::Summary(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok(metric)
    }
}

impl<'a, S: Sink> Writer<'a, '_, S> {
    fn metric(&mut self, fields: Fields<'a>) -> Result<(), Malformed> {
        let metric = Metric::read(fields)?;
        self.attributes.begin_metric(metric.name);
        let before = self.number;
        let kind = match metric.data {
            Data::None => Kind::Unknown,
            Data::Gauge(data) => {
                self.points(&metric, data, SampleKind::Value, numbers::parse)?;
                Kind::Gauge
            }
            Data::Sum(data) => {
                self.points(&metric, data, SampleKind::Value, numbers::parse)?;
                numbers::kind_of_sum(data)?
            }
            Data::Histogram(data) => {
                self.derive(metric.name, ".bucket");
                self.points(&metric, data, SampleKind::Histogram, histograms::explicit)?;
                Kind::Histogram
            }
            Data::ExponentialHistogram(data) => {
                self.points(&metric, data, SampleKind::Histogram, histograms::exponential)?;
                Kind::Histogram
            }
            Data::Summary(data) => {
                self.derive(metric.name, ".quantile");
                self.points(&metric, data, SampleKind::Histogram, summaries::parse)?;
                Kind::Summary
            }
        };
        if self.number > before && !is_blank(metric.name) {
            self.family(&metric, kind);
        }
        self.entry += 1;
        Ok(())
    }

    fn derive(&mut self, name: &str, suffix: &str) {
        self.derived.clear();
        self.derived.push_str(name);
        self.derived.push_str(suffix);
    }

    /// Calls `parse` with each data point, which has the number 1 in all kinds of metrics.
    fn points(
        &mut self,
        metric: &Metric<'a>,
        data: Wire<'a>,
        kind: SampleKind,
        parse: impl Fn(&mut Self, &str, Sample, Fields<'a>) -> Result<(), Fault<'a>>,
    ) -> Result<(), Malformed> {
        data.message()?.each(|number, point| {
            if number != 1 {
                return Ok(());
            }
            let sample = Sample {
                entry: self.entry,
                number: self.number,
                kind,
            };
            self.number += 1;
            let point = point.message()?;
            let read = match is_blank(metric.name) {
                true => Err(Refusal::NoMetricName.into()),
                false => parse(self, metric.name, sample, point),
            };
            match read {
                Ok(()) => Ok(()),
                Err(Fault::Body(malformed)) => Err(malformed),
                Err(Fault::Entry(refusal)) => {
                    self.sink.refuse(self.entry, 1, refusal);
                    Ok(())
                }
            }
        })
    }

    /// Hands over a point of the metric itself, with the attributes that were read.
    pub(super) fn point(
        &mut self,
        name: &str,
        sample: Sample,
        timestamp_ns: i64,
        fields: &[Field<'_>],
    ) -> Result<(), Fault<'a>> {
        if !self.attributes.are_current() {
            self.begin_series(name)?;
        }
        self.sink.point(sample, timestamp_ns, fields);
        Ok(())
    }

    /// Names the data point's series to the sink, unless the sink remembers it.
    fn begin_series(&mut self, name: &str) -> Result<(), Fault<'a>> {
        if !self.sink.recall(self.attributes.key()) {
            self.attributes.build(&mut self.metadata)?;
            let metadata = self.metadata.closed().map_err(|_| Malformed::NotUtf8)?;
            self.sink.series(name, metadata);
            self.sink.remember(self.attributes.key());
        }
        self.attributes.set_current();
        Ok(())
    }

    /// Checks the attributes before anything of a data point with so many buckets or quantiles is handed over.
    pub(super) fn check_labelled(&mut self, count: usize) -> Result<(), Fault<'a>> {
        self.attributes.build(&mut self.metadata)?;
        self.metadata.check_labels(count)?;
        Ok(())
    }

    /// Hands over a point of a bucket or quantile, behind that of the metric itself.
    pub(super) fn labelled(
        &mut self,
        label: &str,
        number: f64,
        sample: Sample,
        timestamp_ns: i64,
        value: f64,
    ) -> Result<(), Fault<'a>> {
        self.value.clear();
        match number.is_finite() {
            true => write_number(number, &mut self.value),
            false => self.value.extend_from_slice(b"+Inf"),
        }
        self.attributes.unset_current();
        let (sink, derived) = (&mut *self.sink, &self.derived);
        self.metadata
            .with_label(label, &self.value, |metadata| sink.series(derived, metadata))?;
        self.sink
            .point(sample, timestamp_ns, &[Field::number("value", value)]);
        Ok(())
    }

    fn family(&mut self, metric: &Metric<'a>, kind: Kind) {
        let mut tell = |source: &str, unit, unit_fields| {
            let family = Family {
                help: metric.description,
                unit,
                unit_fields,
                kind,
            };
            self.sink.family(source, family);
        };
        match metric.data {
            Data::None => {}
            Data::Gauge(_) | Data::Sum(_) => tell(metric.name, metric.unit, &["value"]),
            Data::ExponentialHistogram(_) => tell(metric.name, metric.unit, &["sum", "min", "max"]),
            Data::Histogram(_) => {
                tell(metric.name, metric.unit, &["sum", "min", "max"]);
                // Its values are counts.
                tell(&self.derived, "", &[]);
            }
            Data::Summary(_) => {
                tell(metric.name, metric.unit, &["sum"]);
                tell(&self.derived, metric.unit, &["value"]);
            }
        }
    }
}

fn is_blank(name: &str) -> bool {
    name.trim().is_empty()
}

/// The flag of a data point that says that there is no value.
const NO_RECORDED_VALUE: u64 = 1;

/// What all kinds of data points begin with.
#[derive(Default)]
pub(super) struct Head {
    pub(super) time: u64,
    pub(super) flags: u64,
}

impl Head {
    pub(super) const fn has_no_value(&self) -> bool {
        self.flags & NO_RECORDED_VALUE != 0
    }

    /// Its timestamp in nanoseconds. 0 is the default of a time that is not sent.
    pub(super) fn timestamp_ns<'e>(&self) -> Result<i64, Refusal<'e>> {
        match i64::try_from(self.time) {
            Ok(0) => Err(Refusal::NoTime),
            Ok(time) => nanoseconds(time, 1),
            Err(_) => Err(Refusal::TimestampRange),
        }
    }
}
