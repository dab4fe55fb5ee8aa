//! Behaviour of the parser of OTLP metrics, sentence by sentence of the contract. Bodies are JSON here, because it can be
//! read; `tests/it` compares it with protobuf by the official messages.

mod bodies;
mod histograms;
mod points;

use super::{Encoding, message, parse};
use crate::Unreadable;
use crate::recorder::Recorder;

/// Reads a body. A sink that remembers series is given the same, the first time and when it recalls them.
fn read(json: &str) -> Result<Recorder, Unreadable> {
    let (mut recorder, mut buffer) = (Recorder::default(), Vec::new());
    let message = message(json.as_bytes(), Encoding::Json, &mut buffer)?;
    parse(message, &mut recorder)?;
    let mut remembering = Recorder::remembering();
    for _ in 0..2 {
        parse(message, &mut remembering)?;
        assert_eq!(std::mem::take(&mut remembering.events), recorder.events, "{json}");
    }
    Ok(recorder)
}

/// A request of one resource with these attributes and metrics.
fn request(attributes: &str, metrics: &str) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{attributes}]}},"scopeMetrics":[{{"scope":{{"name":"s","attributes":[{{"key":"scope.attribute","value":{{"stringValue":"dropped"}}}}]}},"metrics":[{metrics}]}}]}}]}}"#
    )
}

fn text(key: &str, value: &str) -> String {
    format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
}

/// What is read of metrics, without what is known of sources.
fn events(metrics: &str) -> Vec<String> {
    let mut events = read(&request("", metrics)).unwrap().events;
    events.retain(|event| !event.starts_with("family "));
    events
}

/// A gauge `g` with these data points.
fn gauge(points: &str) -> String {
    format!(r#"{{"name":"g","gauge":{{"dataPoints":[{points}]}}}}"#)
}

#[track_caller]
fn check(metrics: &str, expected: &[&str]) {
    assert_eq!(events(metrics), expected, "{metrics}");
}

/// A data point of a gauge with more members is refused.
#[track_caller]
fn check_refused(metrics: &str, reason: &str) {
    let events = events(metrics);
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].starts_with("0 refused: ") && events[0].contains(reason),
        "{events:?}"
    );
}
