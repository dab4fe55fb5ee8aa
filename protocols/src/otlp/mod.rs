//! OTLP/HTTP metrics: the message `ExportMetricsServiceRequest`, as protobuf or as JSON.
//!
//! A metric is a source; the attributes of a data point, and those of the resource that say where it comes from, are
//! metadata. Gauges and sums have the field `value`. Histograms and summaries have `count`, `sum`, `min` and `max` as far
//! as they are sent; the buckets of explicit histograms are series of a source `<name>.bucket` with a label `le`, and the
//! quantiles of summaries of `<name>.quantile` with a label `quantile`, both with the field `value`.
//!
//! Source: the OpenTelemetry protocol specification 1.x, `opentelemetry/proto/metrics/v1/metrics.proto`, and for JSON the
//! mapping of proto3 with OTLP's exceptions.
//!
//! - `json`: turns JSON into protobuf, so that there is one reader. `request`: resources, scopes and metrics.
//!   `attributes`: attributes as metadata. `numbers`, `histograms`, `summaries`: data points. `response`: answers.

mod attributes;
mod histograms;
mod json;
mod numbers;
mod request;
mod response;
mod summaries;
#[cfg(test)]
mod tests;

use crate::{Sink, Unreadable};

pub use attributes::NESTING_MAX;
pub use response::{PartialSuccess, status, success};

/// Bounds of a histogram's or quantiles of a summary's data point: each is a series of its own.
pub const BUCKETS_MAX: usize = 1_024;

/// How a body is encoded, as its Content-Type says. The answer is encoded alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/x-protobuf`.
    Protobuf,
    /// `application/json`.
    Json,
}

/// The body as protobuf, which JSON is turned into in `buffer`.
///
/// # Errors
/// The body is not JSON of the message.
pub fn message<'b>(
    body: &'b [u8],
    encoding: Encoding,
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8], Unreadable> {
    match encoding {
        Encoding::Protobuf => Ok(body),
        Encoding::Json => {
            buffer.clear();
            json::to_protobuf(body, buffer)?;
            Ok(buffer)
        }
    }
}

/// Reads a message. The entry of a refusal is the index of a metric in reading order; each refused data point is one
/// refused sample.
///
/// # Errors
/// The message cannot be read: nothing of it may be stored.
pub fn parse(message: &[u8], sink: &mut impl Sink) -> Result<(), Unreadable> {
    Ok(request::parse(message, sink)?)
}

/// The names of metrics. `entries` are ascending indexes; the message is gone through once.
///
/// # Errors
/// As [`parse`].
pub fn entry_names(message: &[u8], entries: &[u32]) -> Result<Vec<String>, Unreadable> {
    Ok(request::names(message, entries)?)
}
