//! Combines the findings of a rule's inputs into one verdict with evidence.

use serde_json::{Value, json};

use super::{Finding, Inputs, Outcome, Row, Scalar};

/// Maximum characters of any text of unknown length. Keeps the evidence far below the service's limit of 65,536 bytes.
const TEXT_CHARS_MAX: usize = 128;
/// Maximum bytes of a point's metadata in the evidence; the service's own limit.
const METADATA_BYTES_MAX: usize = 16_384;

/// The verdict posted for a rule.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    /// The outcome of the rule.
    pub outcome: Outcome,
    /// A JSON object with the reasons.
    pub evidence: Value,
}

/// The finding for one input.
#[derive(Debug)]
pub struct InputFinding {
    pub key: String,
    pub field: String,
    /// Number of rows read.
    pub rows: u64,
    /// The result of evaluating them.
    pub finding: Finding,
}

/// The verdict on a rule that cannot be evaluated at all.
pub fn inconclusive(kind: Option<&str>, reason: &str) -> Verdict {
    Verdict {
        outcome: Outcome::Inconclusive,
        evidence: json!({"kind": kind.map(clip), "reason": reason}),
    }
}

/// Combines the findings of all inputs.
pub fn verdict(kind: Option<&str>, inputs: Inputs, findings: &[InputFinding]) -> Verdict {
    let outcomes: Vec<_> = findings.iter().map(|input| input.finding.outcome).collect();
    let outcome = inputs.combine(&outcomes);
    let mut evidence = json!({"kind": kind.map(clip)});
    if outcome == Outcome::Met
        && let Some(input) = findings
            .iter()
            .find(|input| input.finding.outcome == Outcome::Met)
    {
        insert_alert(&mut evidence, input);
    }
    evidence["inputs"] = findings.iter().map(input_evidence).collect();
    Verdict { outcome, evidence }
}

/// Truncates a text.
pub fn clip(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Inserts the members that the service copies to `alert.triggered`. They come from the first input that is met.
fn insert_alert(evidence: &mut Value, input: &InputFinding) {
    if let Some(alert) = &input.finding.alert {
        evidence["currentValue"] = clipped(alert.current_value.clone());
        evidence["threshold"] = clipped(alert.threshold.clone());
        evidence["operator"] = alert.operator.into();
    }
    if let Some(row) = &input.finding.row {
        let values = json!({clip(&input.field): value_of(row)});
        let mut point = json!({"timestamp": clip(&row.timestamp), "values": values});
        if let Some(metadata) = metadata_of(row) {
            point["metadata"] = metadata;
        }
        evidence["dataPoint"] = point;
    }
}

fn input_evidence(input: &InputFinding) -> Value {
    let finding = &input.finding;
    let mut evidence = json!({
        "key": clip(&input.key),
        "field": clip(&input.field),
        "outcome": finding.outcome,
        "rows": input.rows,
    });
    if let Some(reason) = &finding.reason {
        evidence["reason"] = reason.as_str().into();
    }
    if let Some(row) = &finding.row {
        evidence["row"] = json!({"timestamp": clip(&row.timestamp), "value": value_of(row)});
    }
    for (name, figure) in &finding.figures {
        evidence[name.as_str()] = figure.clone();
    }
    evidence
}

fn value_of(row: &Row) -> Value {
    let value = row.value.as_ref().map(Scalar::to_value);
    value.map_or(Value::Null, clipped)
}

fn clipped(value: Value) -> Value {
    match value {
        Value::String(text) => clip(&text).into(),
        value => value,
    }
}

/// Omitted if it contains a number that the service could not parse again, or if it became too long.
fn metadata_of(row: &Row) -> Option<Value> {
    let metadata: Value = serde_json::from_str(row.metadata.as_ref()?.get()).ok()?;
    (metadata.to_string().len() <= METADATA_BYTES_MAX).then_some(metadata)
}
