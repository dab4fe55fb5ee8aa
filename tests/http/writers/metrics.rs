//! Small print L: OTLP/HTTP metrics.

use serde_json::{Value, json};

use super::{bucket, post, rows_of, source};
use crate::support::client::Answer;
use crate::support::given::Bucket;

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

fn send(bucket: &Bucket, metrics: &Value) -> Answer {
    let resource = json!({"attributes": [
        {"key": "service.name", "value": {"stringValue": "api"}}, {"key": "secret", "value": {"stringValue": "x"}}
    ]});
    let body = json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": metrics}]}]});
    post(bucket, "/v1/metrics", JSON, body.to_string().as_bytes())
}

#[test]
fn metrics_are_sources_and_attributes_dimensions() {
    let (_server, _, bucket) = bucket();
    let answer = send(
        &bucket,
        &json!([
            {"name": "requests", "unit": "1", "description": "All of them", "sum": {
                "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{
                    "timeUnixNano": "1700000000000000000", "asInt": "7",
                    "attributes": [{"key": "code", "value": {"intValue": "200"}}]
                }]
            }},
            {"name": "latency", "histogram": {"aggregationTemporality": 2, "dataPoints": [{
                "timeUnixNano": "1700000000000000000", "count": "3", "sum": 1.5, "bucketCounts": ["1", "2"], "explicitBounds": [0.5]
            }]}}
        ]),
    );
    let body = answer.expect(200, "small print L1");
    assert_eq!(body, json!({}), "small print L1: nothing is refused");
    assert_eq!(
        answer.header("Content-Type"),
        Some("application/json"),
        "small print L1: the request's type"
    );
    let metadata = json!({"service.name": "api", "code": 200});
    let rows = rows_of(&bucket, "requests");
    assert_eq!(rows[0].0, json!({"value": 7}), "gauge and sum: value");
    assert_eq!(
        rows[0].1, metadata,
        "small print L5: attributes keep their JSON type; other resource attributes are dropped"
    );
    let requests = source(&bucket, "requests").unwrap();
    assert_eq!(requests["description"], "All of them", "small print L5");
    assert_eq!(requests["schema"]["value"]["unit"], "1", "small print L5");
    assert_eq!(
        rows_of(&bucket, "latency")[0].0,
        json!({"count": 3, "sum": 1.5}),
        "small print L3: missing min, max are left out"
    );
    let buckets: Vec<(Value, Value)> = rows_of(&bucket, "latency.bucket")
        .into_iter()
        .map(|(values, metadata)| (metadata["le"].clone(), values["value"].clone()))
        .collect();
    assert_eq!(
        buckets,
        [(json!("0.5"), json!(1)), (json!("+Inf"), json!(3))],
        "small print L3: cumulative, +Inf last"
    );
}

#[test]
fn refused_points_are_in_partial_success() {
    let (_server, _, bucket) = bucket();
    bucket.source_with(&json!({"name": "typed", "schema": {"value": {"type": "string"}}}));
    let gauge = |name: &str| json!({"name": name, "gauge": {"dataPoints": [{"timeUnixNano": "1700000000000000000", "asDouble": 1.0}]}});
    let answer = send(&bucket, &json!([gauge("typed"), gauge("fine"), gauge("")]));
    let partial =
        answer.expect(200, "small print L1: 200 whenever the body can be read")["partialSuccess"].clone();
    assert_eq!(
        partial["rejectedDataPoints"], "2",
        "contract 13: refused points in partialSuccess"
    );
    let message = partial["errorMessage"].as_str().unwrap();
    assert!(
        message.contains("typed"),
        "small print L1: names each metric with a reason: {message}"
    );
    assert_eq!(rows_of(&bucket, "fine").len(), 1);
    let unreadable = post(&bucket, "/v1/metrics", JSON, b"{");
    unreadable.expect(400, "small print L1: unreadable");
    let protobuf = &[("Content-Type", "application/x-protobuf")];
    let unreadable = post(&bucket, "/v1/metrics", protobuf, b"\xff\xff");
    assert_eq!(unreadable.status, 400, "small print L1: unreadable: {unreadable}");
    assert_eq!(
        unreadable.header("Content-Type"),
        Some("application/x-protobuf"),
        "small print L1: the request's type"
    );
    assert_eq!(
        unreadable.body[0],
        2 << 3 | 2,
        "the message of a google.rpc.Status"
    );
    let other = post(&bucket, "/v1/metrics", &[("Content-Type", "text/plain")], b"{}");
    other.expect(415, "small print L1: other types");
    let empty = post(
        &bucket,
        "/v1/metrics",
        &[("Content-Type", "application/x-protobuf")],
        b"",
    );
    assert_eq!(
        (empty.status, empty.body.len()),
        (200, 0),
        "an empty message is a message: {empty}"
    );
    assert_eq!(
        empty.header("Content-Type"),
        Some("application/x-protobuf"),
        "small print L1: the request's type"
    );
}

#[test]
fn texts_of_agents_are_cut_to_what_people_may_write() {
    let (_server, _account, bucket) = bucket();
    let metrics = json!([{
        "name": "long", "unit": format!("a\u{0}{}", "b".repeat(3_000)), "description": "d".repeat(100_000),
        "gauge": {"dataPoints": [{"timeUnixNano": "1700000000000000000", "asDouble": 1}]}
    }]);
    send(&bucket, &metrics).expect(200, "small print L1");
    let found = source(&bucket, "long").unwrap();
    let unit = found["schema"]["value"]["unit"].as_str().unwrap();
    assert_eq!(unit.len(), 200, "contract 3: at most 200 characters");
    assert!(!unit.contains('\u{0}'));
    let path = format!("/sources/{}", found["_id"].as_str().unwrap());
    let again = bucket.call("PATCH", &path, &json!({"schema": found["schema"]}));
    again.expect(200, "what is shown can be sent back");
}
