//! Damaged bodies of all protocols: nothing panics, and memory stays within a small multiple of the body.

use prost::Message;
use protocols::line::{self, Precision};
use protocols::otlp::{self, Encoding};
use protocols::remote_write::{self, Version};
use protocols::{Family, Field, Refusal, Sample, Sink};

use crate::prometheus::{as_v2, v1};
use crate::random;
use crate::recorded::data;

/// Memory that a parser may take: buffers of a fixed size, and so many times the body.
const FIXED_BYTES: u64 = 64 << 10;
const TIMES_BODY: u64 = 32;

/// Takes everything and keeps nothing, so that what is allocated is the parser's.
struct Nowhere;

impl Sink for Nowhere {
    fn series(&mut self, _: &str, metadata: &str) {
        assert!(metadata.is_empty() || metadata.starts_with('{') && metadata.ends_with('}'));
    }

    fn point(&mut self, _: Sample, timestamp_ns: i64, fields: &[Field<'_>]) {
        assert!((protocols::TIMESTAMP_NS_MIN..=protocols::TIMESTAMP_NS_MAX).contains(&timestamp_ns));
        assert!(!fields.is_empty());
    }

    fn stale(&mut self, _: Sample, _: i64) {}

    fn not_stored(&mut self, _: Sample) {}

    fn refuse(&mut self, _: u32, _: u32, _: Refusal<'_>) {}

    fn family(&mut self, _: &str, _: Family<'_>) {}
}

/// Changes, removes, doubles or moves a few bytes.
fn damage(body: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..6) {
        if body.is_empty() {
            return;
        }
        let at = random.usize(..body.len());
        match random.u8(0..6) {
            0 => body.truncate(at),
            1 => body[at] ^= 1 << random.u8(0..8),
            2 => body[at] = random.u8(..),
            3 => drop(body.remove(at)),
            4 => body.insert(
                at,
                [0, 0x7f, 0x80, 0xff, b'"', b'\\', b'\n', b'=', b','][random.usize(..9)],
            ),
            _ => {
                let end = random.usize(at..body.len()).min(at + 100);
                let part = body[at..end].to_vec();
                let place = random.usize(..=body.len());
                body.splice(place..place, part);
            }
        }
    }
}

/// Reads damaged copies of a body.
fn check(body: &[u8], read: impl Fn(&[u8])) {
    let mut random = random();
    for _ in 0..3_000 {
        let mut damaged = body.to_vec();
        damage(&mut damaged, &mut random);
        let allocated = allocation_counter::measure(|| read(&damaged));
        let bound = FIXED_BYTES + TIMES_BODY * damaged.len() as u64;
        assert!(
            allocated.bytes_max <= bound,
            "{} bytes for {}",
            allocated.bytes_max,
            damaged.len()
        );
    }
}

#[test]
fn damaged_lines() {
    check(&data("influxdb-client-python.lines"), |body| {
        line::parse(body, Precision::Seconds, 1, &mut Nowhere);
    });
}

fn write_request(name: &str) -> Vec<u8> {
    let mut buffer = Vec::new();
    remote_write::decompress(&data(name), 1 << 20, &mut buffer)
        .unwrap()
        .to_vec()
}

#[test]
fn damaged_snappy_blocks() {
    check(&data("prometheus-samples.snappy"), |body| {
        let mut buffer = Vec::new();
        if let Ok(message) = remote_write::decompress(body, 10_485_760, &mut buffer) {
            drop(remote_write::parse(message, Version::V1, &mut Nowhere));
        }
    });
}

#[test]
fn damaged_messages_of_remote_write() {
    let first = write_request("prometheus-samples.snappy");
    let second = as_v2(&v1::WriteRequest::decode(&first[..]).unwrap()).encode_to_vec();
    for (message, version) in [(first, Version::V1), (second, Version::V2)] {
        check(&message, |body| {
            drop(remote_write::parse(body, version, &mut Nowhere));
            drop(remote_write::entry_names(body, version, &[0, 3]));
        });
    }
}

#[test]
fn damaged_otlp() {
    for (name, encoding) in [
        ("otlp-python.pb", Encoding::Protobuf),
        ("otlp-python.json", Encoding::Json),
    ] {
        check(&data(name), |body| {
            let mut buffer = Vec::new();
            if let Ok(message) = otlp::message(body, encoding, &mut buffer) {
                drop(otlp::parse(message, &mut Nowhere));
                drop(otlp::entry_names(message, &[0, 2]));
            }
        });
    }
}

#[test]
fn a_sample_allocates_nothing() {
    let lines = |count: usize| -> Vec<u8> {
        (0..count)
            .flat_map(|number| format!("cpu,host=h{number} a={number},b=\"x\" {number}\n").into_bytes())
            .collect()
    };
    let allocations = |count: usize| {
        let body = lines(count);
        let read = || line::parse(&body, Precision::Seconds, 1, &mut Nowhere);
        allocation_counter::measure(read).count_total
    };
    assert_eq!(allocations(10), allocations(10_000));

    let message = write_request("prometheus-samples.snappy");
    let request = v1::WriteRequest::decode(&message[..]).unwrap();
    let allocations = |times: usize| {
        let body = request.encode_to_vec().repeat(times);
        let read = || drop(remote_write::parse(&body, Version::V1, &mut Nowhere));
        allocation_counter::measure(read).count_total
    };
    assert_eq!(allocations(1), allocations(100));

    let message = data("otlp-python.pb");
    let allocations = |times: usize| {
        let body = message.repeat(times);
        let read = || drop(otlp::parse(&body, &mut Nowhere));
        allocation_counter::measure(read).count_total
    };
    // A resource has buffers of its own.
    let (once, often) = (allocations(1), allocations(100));
    assert!(often < once + 100 * 10, "{once} {often}");
}
