//! Why an entry is refused, in words for its sender.

use std::fmt;

use crate::metadata::{METADATA_BYTES_MAX, METADATA_TOTAL_BYTES_MAX};
use crate::wire::Malformed;

/// What is wrong with an entry, beginning in lower case, without the entry's own name. No text has the word `line` with a
/// number behind it, which agents of line protocol would take for the number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal<'a> {
    /// A timestamp that does not fit.
    #[error("the timestamp is outside of the years 1678 to 2261")]
    TimestampRange,
    /// Metadata longer than the API takes.
    #[error("its tags, labels or attributes are longer than {METADATA_BYTES_MAX} bytes as JSON")]
    MetadataTooLong,
    /// Labels that are sent once and repeated by reference for too many series.
    #[error(
        "the labels of this request are longer than {METADATA_TOTAL_BYTES_MAX} bytes when written for each series; \
         send fewer series at once"
    )]
    MetadataTotal,
    /// A tag, label, attribute or field that occurs twice.
    #[error("`{}` occurs twice", Shown(.0))]
    NameTwice(&'a [u8]),
    /// A tag, label, attribute or field without a name.
    #[error("a tag, label, attribute or field has an empty name")]
    EmptyName,
    /// Text that is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// A series without `__name__`, a metric without a name.
    #[error("it has no metric name")]
    NoMetricName,

    /// A line that begins with a comma or has no text before its space.
    #[error("the measurement is empty")]
    NoMeasurement,
    /// A tag without `=`.
    #[error("the tag `{}` has no value", Shown(.0))]
    NoTagValue(&'a [u8]),
    /// `=` inside of a tag value.
    #[error("the value of the tag `{}` has an `=` that is not escaped", Shown(.0))]
    TagValueEquals(&'a [u8]),
    /// A line that ends behind its tags.
    #[error("it has no fields; write a space and `name=value` behind the measurement and tags")]
    NoFields,
    /// A field without `=` or without a value.
    #[error("the field `{}` has no value", Shown(.0))]
    NoFieldValue(&'a [u8]),
    /// A string that does not end.
    #[error("the string of the field `{}` has no closing quote", Shown(.0))]
    OpenString(&'a [u8]),
    /// Text behind a closing quote.
    #[error("a comma, a space or the end must follow the string of the field `{}`", Shown(.0))]
    BehindString(&'a [u8]),
    /// A value that is of no type.
    #[error(
        "`{}` is not a value: write a finite number, a 64-bit integer with `i` or `u`, `true`, `false`, or a string in \
         double quotes",
        Shown(.0)
    )]
    NotAValue(&'a [u8]),
    /// More fields than a schema can have.
    #[error("it has more than {} fields", crate::line::FIELDS_MAX)]
    TooManyFields,
    /// A timestamp that is no integer.
    #[error("the timestamp `{}` is not a 64-bit integer", Shown(.0))]
    NotATimestamp(&'a [u8]),
    /// Text behind the timestamp.
    #[error("text stands behind the timestamp")]
    BehindTimestamp,

    /// A data point without a time.
    #[error("it has no timeUnixNano")]
    NoTime,
    /// A data point without a value.
    #[error("it has neither asDouble nor asInt")]
    NoValue,
    /// Buckets and bounds that do not fit each other.
    #[error(
        "it has {counts} bucketCounts and {bounds} explicitBounds; there must be one bound less than counts"
    )]
    BucketCounts {
        /// How many counts.
        counts: usize,
        /// How many bounds.
        bounds: usize,
    },
    /// Bounds that are not finite or do not ascend.
    #[error("its explicitBounds do not ascend, or are not finite")]
    BucketBounds,
    /// More buckets or quantiles than are stored of a data point.
    #[error("it has more than {} buckets or quantiles", crate::otlp::BUCKETS_MAX)]
    TooManyBuckets,
    /// A quantile outside of 0 to 1.
    #[error("a quantile is outside of 0 to 1")]
    QuantileRange,
    /// An attribute with the name that the buckets or quantiles need.
    #[error("its attribute `{0}` is the name under which its buckets or quantiles are stored; rename it")]
    ReservedAttribute(&'static str),
}

/// What ends the reading of an entry, or of the body.
pub(crate) enum Fault<'a> {
    Entry(Refusal<'a>),
    Body(Malformed),
}

impl<'a> From<Refusal<'a>> for Fault<'a> {
    fn from(refusal: Refusal<'a>) -> Self {
        Self::Entry(refusal)
    }
}

impl From<Malformed> for Fault<'_> {
    fn from(malformed: Malformed) -> Self {
        Self::Body(malformed)
    }
}

/// Bytes of what was sent that are shown in a text.
const SHOWN_BYTES_MAX: usize = 100;

/// What was sent, cut, without control characters.
struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = &self.0[..self.0.len().min(SHOWN_BYTES_MAX)];
        for chunk in cut.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character.is_control() {
                    true => write!(out, "{}", character.escape_default())?,
                    false => write!(out, "{character}")?,
                }
            }
            // A character that is cut in two is left out.
            if !chunk.invalid().is_empty() && cut.len() == self.0.len() {
                write!(out, "\u{fffd}")?;
            }
        }
        match cut.len() < self.0.len() {
            true => write!(out, "…"),
            false => Ok(()),
        }
    }
}
