//! Protocols that agents already speak, read straight into points.
//!
//! Each protocol is a module whose `parse` goes through a decompressed request body once and hands what it finds to a
//! [`Sink`], series by series. Nothing is built for a sample, and buffers are reused for all of a body.
//!
//! - [`mod@line`]: InfluxDB line protocol.
//! - [`remote_write`]: Prometheus remote write 1.0 and 2.0.
//! - [`otlp`]: the metrics of OTLP/HTTP, as protobuf and as JSON.
//!
//! The crate knows no route, key, bucket or schema, and looks nothing up. What is wrong with one entry is a [`Refusal`],
//! and the other entries go on; a body that cannot be read at all is [`Unreadable`], and what the sink was given of it
//! before must be dropped. Malformed input never panics, and memory is at most a small multiple of the body's size.
//!
//! - `sink`, `refusal`, `unreadable`: what callers see.
//! - `metadata`: labels, tags and attributes as JSON. `json`: how numbers and strings are written.
//! - `names`: names that occur twice. `timestamp`: the range of timestamps. `wire`: the encoding of protobuf. `bytewise`: eight
//!   bytes at a time.

#![warn(missing_docs)]

mod bytewise;
mod json;
pub mod line;
mod metadata;
mod names;
pub mod otlp;
mod refusal;
pub mod remote_write;
mod sink;
mod timestamp;
mod unreadable;
mod wire;

pub use metadata::{METADATA_BYTES_MAX, METADATA_TOTAL_BYTES_MAX};
pub use refusal::Refusal;
pub use sink::{Family, Field, KeyKind, Kind, Sample, SampleKind, SeriesKey, Sink, Value};
pub use timestamp::{TIMESTAMP_NS_MAX, TIMESTAMP_NS_MIN};
pub use unreadable::Unreadable;
pub use wire::Malformed;

#[cfg(test)]
mod recorder;
