//! What a body is read into.

use std::borrow::Cow;

use crate::Refusal;

/// A value of a field. Numbers are finite.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Number(f64),
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(Cow<'a, str>),
}

/// A field of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its name, not empty.
    pub name: Cow<'a, str>,
    /// Its value.
    pub value: Value<'a>,
}

impl<'a> Field<'a> {
    pub(crate) const fn number(name: &'a str, value: f64) -> Self {
        Self {
            name: Cow::Borrowed(name),
            value: Value::Number(value),
        }
    }
}

/// What the protocols count: a line, a sample or histogram of remote write, a data point of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its entry, by which refusals are named: the line, from 1, or the time series or metric, from 0.
    pub entry: u32,
    /// Its place among the samples of the body, from 0, ascending. A data point of OTLP may make several points, which
    /// have the same number.
    pub number: u32,
    /// What it is.
    pub kind: SampleKind,
}

/// Remote write counts these separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    /// A value, or a line.
    Value,
    /// A histogram or a summary.
    Histogram,
}

/// The type of a metric, as Prometheus names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not known.
    Unknown,
    /// A sum that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Counts in buckets.
    Histogram,
    /// A histogram whose counts go up and down.
    GaugeHistogram,
    /// Quantiles.
    Summary,
    /// Labels, with the value 1.
    Info,
    /// States, of which some are on.
    StateSet,
}

impl Kind {
    /// As `# TYPE` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::GaugeHistogram => "gaugehistogram",
            Self::Summary => "summary",
            Self::Info => "info",
            Self::StateSet => "stateset",
        }
    }
}

/// What a body says of a source beside its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family<'a> {
    /// Its description, "" if there is none.
    pub help: &'a str,
    /// Its unit, "" if there is none.
    pub unit: &'a str,
    /// The fields that have this unit.
    pub unit_fields: &'static [&'static str],
    /// Its type.
    pub kind: Kind,
}

/// A series as it stands in a body: bytes that mean the same source and metadata in every body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesKey<'a> {
    /// What the bytes are: equal ones of different kinds mean different series.
    pub kind: KeyKind,
    /// The key itself.
    pub bytes: &'a [u8],
}

/// What a key of a series is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// Measurement and tags of a line, without the space behind them.
    Line,
    /// The labels of a time series of remote write 1.0, encoded.
    Labels,
    /// Of a data point of OTLP: the name of its metric, what metadata its resource makes, and its attributes, encoded.
    DataPoint,
}

impl<'a> SeriesKey<'a> {
    /// A key of this kind.
    pub const fn new(kind: KeyKind, bytes: &'a [u8]) -> Self {
        Self { kind, bytes }
    }
}

/// Takes what a body has, in the order in which it is read.
pub trait Sink {
    /// As [`Sink::series`] with the source and the metadata that this key had when it was given to
    /// [`Sink::remember`]. False if the sink does not remember it; then nothing has changed.
    fn recall(&mut self, _: SeriesKey<'_>) -> bool {
        false
    }

    /// This is the key of the current series, which was named by [`Sink::series`].
    fn remember(&mut self, _: SeriesKey<'_>) {}

    /// The points and ends that follow belong to this source and have this metadata, until the next call of this or of
    /// [`Sink::recall`]: a JSON object of labels, tags or attributes, or "" if there are none. `source` is as sent, and may
    /// be blank or too long.
    fn series(&mut self, source: &str, metadata: &str);

    /// A point of the current series, with at least one field.
    fn point(&mut self, sample: Sample, timestamp_ns: i64, fields: &[Field<'_>]);

    /// The current series ends here: a stale marker of Prometheus.
    fn stale(&mut self, sample: Sample, timestamp_ns: i64);

    /// A sample that counts as written and is not stored: NaN, an infinity, or marked as without a value. It may belong
    /// to no series that was named before.
    fn not_stored(&mut self, sample: Sample);

    /// An entry, or that many samples of it, are refused. Several refusals may name one entry.
    fn refuse(&mut self, entry: u32, samples: u32, reason: Refusal<'_>);

    /// What is known of a source, whether or not it has points in this body.
    fn family(&mut self, source: &str, family: Family<'_>);
}
