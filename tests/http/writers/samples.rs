//! Small print K: Prometheus remote write.

use serde_json::json;

use super::{bucket, post, rows_of, source};
use crate::support::client::Answer;
use crate::support::given::Bucket;

pub(super) const V1: &str = "application/x-protobuf";
pub(super) const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
pub(super) const AT_MS: i64 = 1_700_000_000_000;
pub(super) const STALE: u64 = 0x7ff0_0000_0000_0002;

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field of protobuf with a length.
pub(super) fn nested(field: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 2, &mut out);
    varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

pub(super) fn number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(value, &mut out);
    out
}

pub(super) fn double(field: u64, value: f64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 1, &mut out);
    out.extend_from_slice(&value.to_le_bytes());
    out
}

pub(super) fn sample(value: f64, at_ms: i64) -> Vec<u8> {
    nested(2, &[double(1, value), number(2, at_ms as u64)].concat())
}

pub(super) fn series(labels: &[(&str, &str)], samples: &[Vec<u8>]) -> Vec<u8> {
    let labels = labels.iter().map(|(name, value)| {
        nested(
            1,
            &[nested(1, name.as_bytes()), nested(2, value.as_bytes())].concat(),
        )
    });
    let content = labels.chain(samples.iter().cloned()).collect::<Vec<_>>().concat();
    nested(1, &content)
}

/// A Snappy block of literals.
fn snappy(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(message.len() as u64, &mut out);
    for chunk in message.chunks(60) {
        out.push((chunk.len() as u8 - 1) << 2);
        out.extend_from_slice(chunk);
    }
    out
}

pub(super) fn send(bucket: &Bucket, content_type: &str, message: &[u8]) -> Answer {
    let headers = [("Content-Type", content_type), ("Content-Encoding", "snappy")];
    post(bucket, "/api/v1/write", &headers, &snappy(message))
}

#[track_caller]
pub(super) fn assert_written(answer: &Answer, status: u16, samples: &str) {
    assert_eq!(answer.status, status, "{answer}");
    let written = |what: &str| {
        answer
            .header(&format!("X-Prometheus-Remote-Write-{what}-Written"))
            .map(str::to_owned)
    };
    let expected = [
        Some(samples.to_owned()),
        Some("0".to_owned()),
        Some("0".to_owned()),
    ];
    assert_eq!(
        ["Samples", "Histograms", "Exemplars"].map(written),
        expected,
        "small print K2: on every 204 and 400: {answer}"
    );
}

#[test]
fn samples_are_points_of_their_metric() {
    let (_server, _, bucket) = bucket();
    let message = [
        series(
            &[("__name__", "up"), ("job", "x"), ("empty", "")],
            &[sample(1.0, AT_MS), sample(0.0, AT_MS + 15_000)],
        ),
        series(
            &[("__name__", "gone")],
            &[
                sample(f64::from_bits(STALE), AT_MS),
                sample(f64::INFINITY, AT_MS + 1),
            ],
        ),
        nested(
            3,
            &[
                number(1, 2),
                nested(2, b"up"),
                nested(4, b"Whether it is up."),
                nested(5, b"ratio"),
            ]
            .concat(),
        ),
    ];
    assert_written(&send(&bucket, V1, &message.concat()), 204, "4");
    let expected = [
        (json!({"value": 1}), json!({"job": "x"})),
        (json!({"value": 0}), json!({"job": "x"})),
    ];
    assert_eq!(
        rows_of(&bucket, "up"),
        expected,
        "contract 13: labels → dimensions; small print K3: empty values are left out"
    );
    assert!(
        source(&bucket, "gone").is_none(),
        "small print K1: a series of nothing else creates no source"
    );
    let up = source(&bucket, "up").unwrap();
    assert_eq!(
        up["description"], "Whether it is up.",
        "small print K5: HELP → description"
    );
    assert_eq!(
        up["schema"]["value"]["unit"], "ratio",
        "small print K5: UNIT → unit"
    );
    assert_written(&send(&bucket, V1, &message.concat()), 204, "4");
    assert_eq!(
        rows_of(&bucket, "up").len(),
        2,
        "contract 13: nothing doubled; small print K1: dropped duplicates count"
    );
}

#[test]
fn the_message_of_2_0_refers_to_its_symbols() {
    let (_server, _, bucket) = bucket();
    let symbols = ["", "__name__", "up", "job", "y"]
        .map(|symbol| nested(4, symbol.as_bytes()))
        .concat();
    let sample = nested(2, &[double(1, 5.0), number(2, AT_MS as u64)].concat());
    let references = nested(1, &[1, 2, 3, 4]);
    let message = [symbols.clone(), nested(5, &[references, sample.clone()].concat())].concat();
    assert_written(&send(&bucket, V2, &message), 204, "1");
    assert_eq!(
        rows_of(&bucket, "up"),
        [(json!({"value": 5}), json!({"job": "y"}))]
    );
    let beyond = [symbols, nested(5, &[nested(1, &[1, 9]), sample].concat())].concat();
    assert_written(&send(&bucket, V2, &beyond), 400, "0");
}

#[test]
fn bad_series_are_named_by_their_labels_and_the_others_are_stored() {
    let (_server, _, bucket) = bucket();
    let message = [
        series(&[("job", "nameless")], &[sample(1.0, AT_MS)]),
        series(&[("__name__", "good")], &[sample(1.0, AT_MS)]),
        series(
            &[("__name__", "twice"), ("a", "1"), ("a", "2")],
            &[sample(1.0, AT_MS), sample(2.0, AT_MS + 1)],
        ),
    ];
    let answer = send(&bucket, V1, &message.concat());
    assert_written(&answer, 400, "1");
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains(r#"job="nameless""#) && message.contains("twice"),
        "small print K3: {message}"
    );
    assert_eq!(
        rows_of(&bucket, "good").len(),
        1,
        "small print K3: the rest stored and counted"
    );
    assert!(source(&bucket, "twice").is_none());
}

#[test]
fn what_cannot_be_read_is_refused_whole() {
    let (_server, _, bucket) = bucket();
    let good = series(&[("__name__", "up")], &[sample(1.0, AT_MS)]);
    let cut = &good[..good.len() - 1];
    assert_written(&send(&bucket, V1, cut), 400, "0");
    let headers = [("Content-Type", V1), ("Content-Encoding", "snappy")];
    assert_written(
        &post(&bucket, "/api/v1/write", &headers, b"\xff\xff\xff"),
        400,
        "0",
    );
    for content_type in [
        "application/x-protobuf;proto=io.prometheus.write.v9.Request",
        "application/json",
    ] {
        let answer = send(&bucket, content_type, &good);
        assert_eq!(answer.status, 415, "small print K4: unknown: 415: {answer}");
    }
    let named = send(
        &bucket,
        "application/x-protobuf; proto=prometheus.WriteRequest",
        &good,
    );
    assert_eq!(named.status, 204, "small print K4: told by proto=: {named}");
    for coding in ["gzip", "zstd", "identity"] {
        let headers = [("Content-Type", V1), ("Content-Encoding", coding)];
        let answer = post(&bucket, "/api/v1/write", &headers, &snappy(&good));
        assert_eq!(answer.status, 415, "small print I3: snappy only: {answer}");
    }
    assert_eq!(rows_of(&bucket, "up").len(), 1);
}
