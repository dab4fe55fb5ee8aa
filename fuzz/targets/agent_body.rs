//! Bodies of agents: line protocol, remote write 1.0 and 2.0, OTLP as protobuf and JSON. Each is read or refused in bounded
//! memory, and what the sink is given is what the service stores.
//!
//! The first byte of an input selects its protocol.

use std::collections::HashMap;

use protocols::line::{self, Dialect, Precision};
use protocols::otlp::{self, Encoding};
use protocols::remote_write::{self, Version};
use protocols::{Family, Field, METADATA_TOTAL_BYTES_MAX, Refusal, Sample, SeriesKey, Sink, Value};
use serde_json::value::RawValue;

use super::memory;

/// The most that is held for a byte of a body: JSON becomes protobuf first.
const HELD_PER_BYTE: u64 = 64;

const NOW_NS: i64 = 1_700_000_000_000_000_000;

/// Checks what it is given.
#[derive(Default)]
struct Checked {
    has_series: bool,
    last_number: Option<u32>,
    metadata_bytes: usize,
    /// Entries that were refused.
    refused: Vec<u32>,
}

impl Checked {
    fn count(&mut self, sample: Sample) {
        assert!(
            self.last_number.is_none_or(|last| last <= sample.number),
            "numbers ascend"
        );
        self.last_number = Some(sample.number);
    }
}

impl Sink for Checked {
    fn series(&mut self, _: &str, metadata: &str) {
        self.has_series = true;
        self.metadata_bytes += metadata.len();
        let is_object = metadata.starts_with('{') && serde_json::from_str::<&RawValue>(metadata).is_ok();
        assert!(metadata.is_empty() || is_object, "{metadata:?}");
    }

    fn point(&mut self, sample: Sample, _: i64, fields: &[Field<'_>]) {
        assert!(self.has_series && !fields.is_empty());
        self.count(sample);
        for field in fields {
            assert!(!field.name.is_empty());
            assert!(
                !matches!(field.value, Value::Number(number) if !number.is_finite()),
                "{field:?}"
            );
        }
    }

    fn stale(&mut self, sample: Sample, _: i64) {
        self.count(sample);
    }

    fn not_stored(&mut self, sample: Sample) {
        self.count(sample);
    }

    fn refuse(&mut self, entry: u32, _: u32, reason: Refusal<'_>) {
        assert!(!reason.to_string().is_empty());
        self.refused.push(entry);
    }

    fn family(&mut self, _: &str, _: Family<'_>) {}
}

pub fn check(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else {
        return;
    };
    let mut lines = None;
    memory::bounded(body.len(), HELD_PER_BYTE, || {
        let mut sink = Checked::default();
        match kind % 5 {
            0 => {
                let units = ["ns", "us", "ms", "s"];
                let unit = units[usize::from(kind / 5) % units.len()];
                let precision = Precision::parse(unit, Dialect::V2).unwrap();
                line::parse(body, precision, NOW_NS, &mut sink);
                sink.refused
                    .iter()
                    .for_each(|entry| assert!(line::entry_name(*entry).starts_with("line ")));
                lines = Some(precision);
            }
            kind @ 1..=2 => {
                let version = if kind == 1 { Version::V1 } else { Version::V2 };
                if remote_write::parse(body, version, &mut sink).is_ok() {
                    let entries = ascending(sink.refused);
                    let names = remote_write::entry_names(body, version, &entries).unwrap();
                    assert_eq!(names.len(), entries.len());
                }
            }
            kind => {
                let encoding = if kind == 3 {
                    Encoding::Protobuf
                } else {
                    Encoding::Json
                };
                let mut buffer = Vec::new();
                let Ok(message) = otlp::message(body, encoding, &mut buffer) else {
                    return;
                };
                if otlp::parse(message, &mut sink).is_ok() {
                    let entries = ascending(sink.refused);
                    assert_eq!(otlp::entry_names(message, &entries).unwrap().len(), entries.len());
                }
            }
        }
        assert!(sink.metadata_bytes <= METADATA_TOTAL_BYTES_MAX);
    });
    if let Some(precision) = lines {
        check_lines(body, precision);
    }
}

/// A line is read alike whatever stands before it. Lines with an open string are left out: it may end in another line.
fn check_lines(body: &[u8], precision: Precision) {
    let lines = body.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| (line, events_of(line, precision)));
    let (lines, alone): (Vec<&[u8]>, Vec<Vec<String>>) = lines
        .filter(|(line, events)| {
            !line.contains(&b'"') || events.len() == 1 && !events[0].starts_with(REFUSED)
        })
        .unzip();
    assert_eq!(events_of(&lines.join(&b'\n'), precision), alone.concat());
}

const REFUSED: &str = "refused: ";

/// The points of lines with their series, and why others are refused.
#[derive(Default)]
struct Events {
    series: String,
    events: Vec<String>,
    /// By the bytes of keys, which are of one kind.
    known: HashMap<Vec<u8>, String>,
}

impl Sink for Events {
    fn recall(&mut self, key: SeriesKey<'_>) -> bool {
        let known = self.known.get(key.bytes);
        known.is_some_and(|series| {
            self.series.clone_from(series);
            true
        })
    }

    fn remember(&mut self, key: SeriesKey<'_>) {
        let before = self.known.insert(key.bytes.to_vec(), self.series.clone());
        assert_eq!(before, None, "what is remembered is recalled");
    }

    fn series(&mut self, source: &str, metadata: &str) {
        self.series = format!("{source}{metadata}");
    }

    fn point(&mut self, _: Sample, timestamp_ns: i64, fields: &[Field<'_>]) {
        self.events
            .push(format!("{} {timestamp_ns} {fields:?}", self.series));
    }

    fn stale(&mut self, _: Sample, _: i64) {}

    fn not_stored(&mut self, _: Sample) {}

    fn refuse(&mut self, _: u32, _: u32, reason: Refusal<'_>) {
        self.events.push(format!("{REFUSED}{reason}"));
    }

    fn family(&mut self, _: &str, _: Family<'_>) {}
}

/// A body is read alike by a sink that remembers its series.
fn events_of(body: &[u8], precision: Precision) -> Vec<String> {
    let mut sink = Events::default();
    line::parse(body, precision, NOW_NS, &mut sink);
    let events = std::mem::take(&mut sink.events);
    line::parse(body, precision, NOW_NS, &mut sink);
    assert_eq!(sink.events, events);
    events
}

fn ascending(mut entries: Vec<u32>) -> Vec<u32> {
    entries.sort_unstable();
    entries.dedup();
    entries
}
