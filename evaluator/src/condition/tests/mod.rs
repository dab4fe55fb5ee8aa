//! The kinds, evaluated without a service.

mod absence;
mod change;
mod condition;
mod matching;
mod verdict;
mod zscore;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::row::SECOND_NS;
use super::{Condition, Finding, Outcome, Row, Scalar, Window};

/// The window of every test: it starts at the epoch and has this many seconds.
const WINDOW_SECONDS: i64 = 600;

fn window(row_seconds: i64) -> Window {
    Window {
        start_ns: Some(0),
        end_ns: Some(WINDOW_SECONDS * SECOND_NS),
        row_ns: row_seconds * SECOND_NS,
    }
}

fn row(second: i64, value: Value) -> Row {
    Row {
        timestamp: Timestamp::from_second(second).unwrap().to_string(),
        value: Scalar::of(value),
        metadata: None,
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

/// The finding of the kind for these values, one a second, in the window of the tests.
#[track_caller]
fn found(kind: &str, parameters: Value, values: &[Value]) -> Finding {
    let rows = (0..)
        .zip(values)
        .map(|(second, value)| row(second, value.clone()));
    found_in(&window(0), kind, parameters, rows)
}

#[track_caller]
fn found_in(window: &Window, kind: &str, parameters: Value, rows: impl IntoIterator<Item = Row>) -> Finding {
    let condition = Condition::parse(Some(kind), &object(parameters)).unwrap();
    let mut evaluation = condition;
    for row in rows {
        evaluation.add(row);
    }
    let finding = evaluation.finish(window);
    // What holds for every kind and any rows.
    assert_eq!(
        finding.outcome == Outcome::Inconclusive,
        finding.reason.is_some(),
        "{finding:?}"
    );
    assert!(
        finding.alert.is_none() || finding.outcome == Outcome::Met,
        "{finding:?}"
    );
    finding
}

fn numbers(values: &[f64]) -> Vec<Value> {
    values.iter().map(|value| json!(value)).collect()
}

/// The second of the row that decided.
fn decided_at(finding: &Finding) -> Option<String> {
    finding.row.as_ref().map(|row| row.timestamp.clone())
}

fn second(second: i64) -> Option<String> {
    Some(Timestamp::from_second(second).unwrap().to_string())
}
