//! Prometheus remote write 1.0 and 2.0: a protobuf message in a Snappy block.
//!
//! The label `__name__` is the source, the other labels are metadata, a sample's value is the field `value`. Of native
//! histograms the fields `count` and `sum` are read. Stale markers end a series; other NaN and infinities are handed over
//! as not stored. Exemplars are skipped.
//!
//! Source: the "Prometheus Remote-Write" specifications 1.0 and 2.0, with the messages `prometheus.WriteRequest` and
//! `io.prometheus.write.v2.Request`.
//!
//! - `snappy`: decompression. `v1`, `v2`: the two messages. `series`: what both do with a time series. `samples`:
//!   samples and histograms. `shown`: a series in an answer.

mod samples;
mod series;
mod shown;
mod snappy;
#[cfg(test)]
mod tests;
mod v1;
mod v2;

pub use shown::SHOWN_BYTES_MAX;
pub use snappy::decompress;

use crate::{Kind, Sink, Unreadable};
use series::Writer;

/// What a unit is the unit of.
const UNIT_FIELDS: &[&str] = &["value"];

/// The message of a body, as `proto=` of its Content-Type names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `prometheus.WriteRequest`.
    V1,
    /// `io.prometheus.write.v2.Request`.
    V2,
}

impl Version {
    /// The message of this name; `None` is another.
    pub fn of_message(name: &str) -> Option<Self> {
        match name {
            "prometheus.WriteRequest" => Some(Self::V1),
            "io.prometheus.write.v2.Request" => Some(Self::V2),
            _ => None,
        }
    }
}

/// Reads a decompressed message. The entry of a refusal is the index of a time series.
///
/// # Errors
/// The message cannot be read, or refers to symbols that it does not have: nothing of it may be stored.
pub fn parse(message: &[u8], version: Version, sink: &mut impl Sink) -> Result<(), Unreadable> {
    let mut writer = Writer::new(sink);
    match version {
        Version::V1 => v1::parse(message, &mut writer)?,
        Version::V2 => v2::parse(message, &mut writer)?,
    }
    Ok(())
}

/// The names of entries in an answer: each time series by its labels, like `{__name__="up", job="x"}`, cut at
/// [`SHOWN_BYTES_MAX`]. `entries` are ascending indexes; the message is gone through once.
///
/// # Errors
/// As [`parse`].
pub fn entry_names(message: &[u8], version: Version, entries: &[u32]) -> Result<Vec<String>, Unreadable> {
    Ok(match version {
        Version::V1 => v1::names(message, entries)?,
        Version::V2 => v2::names(message, entries)?,
    })
}

/// The type of a metric, which has the same numbers in both messages.
const fn kind(number: u64) -> Kind {
    match number {
        1 => Kind::Counter,
        2 => Kind::Gauge,
        3 => Kind::Histogram,
        4 => Kind::GaugeHistogram,
        5 => Kind::Summary,
        6 => Kind::Info,
        7 => Kind::StateSet,
        _ => Kind::Unknown,
    }
}
