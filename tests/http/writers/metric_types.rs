//! Small print K5 and N6: TYPE of remote write is kept, and shown by `/prometheus/api/v1/metadata` only.

use serde_json::{Value, json};

use super::samples::{AT_MS, V1, V2, assert_written, double, nested, number, sample, send, series};
use super::{bucket, source};
use crate::support::given::Bucket;

const KEPT: &str = "small print K5: TYPE is kept and shown by /prometheus/api/v1/metadata";

/// Types in the order of their numbers.
const TYPES: [&str; 8] = [
    "unknown",
    "counter",
    "gauge",
    "histogram",
    "gaugehistogram",
    "summary",
    "info",
    "stateset",
];

/// The metadata of a family in 1.0.
fn family(name: &str, kind: u64, help: &str) -> Vec<u8> {
    let members = [
        number(1, kind),
        nested(2, name.as_bytes()),
        nested(4, help.as_bytes()),
    ];
    nested(3, &members.concat())
}

/// The types by metric.
#[track_caller]
fn types(bucket: &Bucket) -> Value {
    let path = format!("/prometheus/{}/api/v1/metadata", bucket.id);
    let answer = bucket.client.get(&path).key(&bucket.admin).send();
    let told = answer.expect(200, "contract 16: metadata")["data"].clone();
    let metrics = told.as_object().into_iter().flatten();
    metrics
        .map(|(name, known)| (name.clone(), known[0]["type"].clone()))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}

#[test]
fn types_of_1_0_are_told_in_the_words_of_prometheus() {
    let (mut server, _account, bucket) = bucket();
    let name = |kind: usize| format!("m{kind}");
    let samples: Vec<u8> = (0..TYPES.len())
        .flat_map(|kind| series(&[("__name__", &name(kind))], &[sample(1.0, AT_MS)]))
        .collect();
    assert_written(&send(&bucket, V1, &samples), 204, "8");
    let before = source(&bucket, "m1").unwrap();
    let families: Vec<u8> = (0..TYPES.len())
        .flat_map(|kind| family(&name(kind), kind as u64, ""))
        .collect();
    // As agents send them: in a request of their own, again and again.
    for _ in 0..2 {
        assert_written(&send(&bucket, V1, &families), 204, "0");
    }
    let expected: Value = (0..TYPES.len())
        .map(|kind| (name(kind), json!(TYPES[kind])))
        .collect::<serde_json::Map<String, Value>>()
        .into();
    assert_eq!(types(&bucket), expected, "{KEPT}");
    assert_eq!(
        source(&bucket, "m1").unwrap(),
        before,
        "the API's source has no such member, and was not updated"
    );
    let conflicting = [family("m1", 2, "now a gauge"), family("nobody", 1, "")].concat();
    assert_written(&send(&bucket, V1, &conflicting), 204, "0");
    for stop in [false, true] {
        match stop {
            false => server.kill(),
            true => drop(server.stop()),
        }
        server.launch();
        assert_eq!(
            types(&bucket),
            expected,
            "the first one stays: after a stop: {stop}"
        );
    }
    assert_eq!(source(&bucket, "m1").unwrap()["description"], "now a gauge");
    assert!(
        source(&bucket, "nobody").is_none(),
        "small print K5: a family that is no source is dropped"
    );
    let path = format!(
        "/sources/{}",
        source(&bucket, "m1").unwrap()["_id"].as_str().unwrap()
    );
    let patched = bucket.call("PATCH", &path, &json!({"description": "by people"}));
    patched.expect(200, "contract 3: PATCH");
    assert_eq!(types(&bucket), expected, "changes by people keep it");
}

/// A node exporter has about 300 metrics, and Prometheus tells what they are once a minute.
#[test]
fn one_request_describes_the_metrics_of_a_whole_agent() {
    const METRICS: usize = 300;
    let (_server, _account, bucket) = bucket();
    let name = |metric: usize| format!("node_{metric}");
    let samples: Vec<u8> = (0..METRICS)
        .flat_map(|metric| series(&[("__name__", &name(metric))], &[sample(1.0, AT_MS)]))
        .collect();
    assert_written(&send(&bucket, V1, &samples), 204, &METRICS.to_string());
    let families: Vec<u8> = (0..METRICS)
        .flat_map(|metric| family(&name(metric), 2, "a help"))
        .collect();
    assert_written(&send(&bucket, V1, &families), 204, "0");
    assert_eq!(types(&bucket).as_object().unwrap().len(), METRICS);
    for metric in [0, 99, 100, METRICS - 1] {
        assert_eq!(source(&bucket, &name(metric)).unwrap()["description"], "a help");
    }
}

#[test]
fn types_of_2_0_come_with_the_series() {
    let (_server, _account, bucket) = bucket();
    let symbols = ["", "__name__", "requests", "Answered ones.", "temperature"]
        .map(|symbol| nested(4, symbol.as_bytes()))
        .concat();
    let sample = || nested(2, &[double(1, 5.0), number(2, AT_MS as u64)].concat());
    let of_series = |name: u8, metadata: &[u8]| {
        nested(
            5,
            &[nested(1, &[1, name]), sample(), nested(5, metadata)].concat(),
        )
    };
    let message = [
        symbols,
        of_series(2, &[number(1, 1), number(3, 3)].concat()),
        of_series(4, &number(1, 2)),
    ];
    assert_written(&send(&bucket, V2, &message.concat()), 204, "2");
    assert_eq!(
        types(&bucket),
        json!({"requests": "counter", "temperature": "gauge"}),
        "{KEPT}: of sources that are created, too"
    );
    assert_eq!(
        source(&bucket, "requests").unwrap()["description"],
        "Answered ones."
    );
}

#[test]
fn a_family_of_several_sources_is_dropped() {
    let (_server, _account, bucket) = bucket();
    let samples = ["x_sum", "x_count"].map(|name| series(&[("__name__", name)], &[sample(1.0, AT_MS)]));
    let message = [samples.concat(), family("x", 3, "Seconds.")].concat();
    assert_written(&send(&bucket, V1, &message), 204, "2");
    assert!(source(&bucket, "x").is_none());
    assert_eq!(
        types(&bucket),
        json!({"x_sum": "unknown", "x_count": "unknown"}),
        "small print K5: a family that is no source is dropped"
    );
}
