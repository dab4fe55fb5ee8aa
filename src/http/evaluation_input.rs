//! Reading a rule's `evaluation` block: its shape. Whether its sources and fields exist is for the service to say.

use std::collections::HashSet;

use serde_json::Value;

use super::faults::{Faults, Members, kind_of};
use super::values;
use crate::catalog::{Evaluation, Input, Parameter};
use crate::limits::{
    EVALUATION_INPUTS_MAX, EVALUATION_KIND_CHARS_MAX, FIELD_NAME_CHARS_MAX, INPUT_KEY_CHARS_MAX,
    INTERVAL_SECONDS, PARAMETER_CHARS_MAX, PARAMETERS_MAX, WINDOW_SECONDS,
};
use crate::service::query::{Aggregation, UNIT_NAMES};

const MEMBERS: [&str; 7] = [
    "mode",
    "kind",
    "intervalSeconds",
    "windowSeconds",
    "inputs",
    "parameters",
    "dwellSeconds",
];
const INPUT_MEMBERS: [&str; 6] = [
    "key",
    "field",
    "dataSourceId",
    "aggregation",
    "groupBy",
    "windowSeconds",
];

/// The block at `path`, with all its faults noted; `None` when there are any.
pub fn read(value: &Value, path: Vec<String>, faults: &mut Faults) -> Option<Evaluation> {
    let block = Members::at(value, path, faults);
    refuse_unknown(&block, &MEMBERS, faults);
    block.optional("mode", faults, mode);
    let kind = block.optional("kind", faults, kind_text);
    let interval = block.required("intervalSeconds", faults, |v| {
        values::number(v, INTERVAL_SECONDS.0, INTERVAL_SECONDS.1)
    });
    let window = block.required("windowSeconds", faults, window_seconds);
    let dwell = block.optional("dwellSeconds", faults, |v| values::number(v, 0.0, f64::MAX));
    let inputs = read_inputs(&block, faults);
    let parameters = read_parameters(&block, faults);
    let window_seconds = window?;
    Some(Evaluation {
        kind: kind.map(Into::into),
        interval_seconds: interval?,
        window_seconds,
        inputs: inputs?,
        parameters: parameters?,
        dwell_seconds: dwell.unwrap_or(window_seconds),
    })
}

fn mode(value: &Value) -> Result<(), String> {
    match values::string(value)? {
        "external" => Ok(()),
        "internal" => {
            Err("is reserved: rules are judged by external evaluators, send \"external\"".to_owned())
        }
        other => Err(format!("must be \"external\", not {other:?}")),
    }
}

fn kind_text(value: &Value) -> Result<String, String> {
    match values::text(value, EVALUATION_KIND_CHARS_MAX)? {
        kind if kind.is_empty() => Err("must not be empty; leave it out instead".to_owned()),
        kind => Ok(kind),
    }
}

fn window_seconds(value: &Value) -> Result<f64, String> {
    values::number(value, WINDOW_SECONDS.0, WINDOW_SECONDS.1)
}

fn read_inputs(block: &Members<'_>, faults: &mut Faults) -> Option<Vec<Input>> {
    let inputs = block.required("inputs", faults, |value| match value.as_array() {
        Some(inputs) if (1..=EVALUATION_INPUTS_MAX).contains(&inputs.len()) => Ok(inputs),
        Some(inputs) => Err(format!(
            "must have 1 to {EVALUATION_INPUTS_MAX} entries, not {}",
            inputs.len()
        )),
        None => Err(format!("must be an array of inputs, not {}", kind_of(value))),
    })?;
    let mut keys = HashSet::new();
    let mut read = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        let mut path = block.path_of("inputs");
        path.push(index.to_string());
        let members = Members::at(input, path, faults);
        let input = read_input(&members, faults);
        if let Some(key) = members.get("key").and_then(Value::as_str)
            && !keys.insert(key)
        {
            faults.add(
                &members.path_of("key"),
                format!("must be unique within the rule; {key:?} is there twice"),
            );
        }
        read.extend(input);
    }
    (read.len() == inputs.len()).then_some(read)
}

fn read_input(members: &Members<'_>, faults: &mut Faults) -> Option<Input> {
    refuse_unknown(members, &INPUT_MEMBERS, faults);
    let key = members.required("key", faults, key);
    let field = members.required("field", faults, |v| values::name(v, FIELD_NAME_CHARS_MAX));
    let source_id = members.optional("dataSourceId", faults, values::id);
    let aggregation = members.optional("aggregation", faults, |v| {
        values::one_of(v, &Aggregation::NAMES).map(Aggregation::name)
    });
    let unit = members.optional("groupBy", faults, |v| {
        values::one_of(v, &UNIT_NAMES.map(|(name, _)| (name, name)))
    });
    for (given, missing) in [("aggregation", "groupBy"), ("groupBy", "aggregation")] {
        if members.given(given).is_some() && members.given(missing).is_none() {
            faults.add(
                &members.path_of(missing),
                format!("is required with {given}: both together, or neither"),
            );
        }
    }
    let window = members.optional("windowSeconds", faults, window_seconds);
    Some(Input {
        key: key?.into(),
        field: field?.into(),
        source_id,
        grouping: aggregation
            .zip(unit)
            .map(|(aggregation, unit)| (aggregation.into(), unit.into())),
        window_seconds: window,
    })
}

fn key(value: &Value) -> Result<String, String> {
    let key = values::text(value, INPUT_KEY_CHARS_MAX)?;
    let starts = key.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        Ok(key)
    } else {
        Err(format!(
            "must start with a letter and go on with letters, digits and underscores, not {key:?}"
        ))
    }
}

fn read_parameters(block: &Members<'_>, faults: &mut Faults) -> Option<Vec<(Box<str>, Parameter)>> {
    let value = block.required("parameters", faults, |value| match value.as_object() {
        Some(map) if map.len() > PARAMETERS_MAX => Err(format!(
            "must have at most {PARAMETERS_MAX} members, not {}",
            map.len()
        )),
        Some(_) => Ok(value),
        None => Err(format!(
            "must be an object of numbers, strings and booleans, not {}",
            kind_of(value)
        )),
    })?;
    let members = Members::at(value, block.path_of("parameters"), faults);
    let mut read = Vec::new();
    for (name, value) in members.iter() {
        if name.chars().count() > PARAMETER_CHARS_MAX {
            faults.add(
                &members.path_of(name),
                format!("must have a name of at most {PARAMETER_CHARS_MAX} characters"),
            );
        }
        match parameter(value) {
            Ok(parameter) => read.push((name.as_str().into(), parameter)),
            Err(fault) => faults.add(&members.path_of(name), fault),
        }
    }
    Some(read)
}

fn parameter(value: &Value) -> Result<Parameter, String> {
    match value {
        Value::Bool(boolean) => Ok(Parameter::Boolean(*boolean)),
        Value::Number(_) => values::number(value, f64::MIN, f64::MAX).map(Parameter::Number),
        Value::String(_) => values::text(value, PARAMETER_CHARS_MAX).map(|text| Parameter::Text(text.into())),
        other => Err(format!(
            "must be a number, a string or a boolean, not {}: parameters are flat",
            kind_of(other)
        )),
    }
}

/// Here a misspelt member must not be lost silently.
fn refuse_unknown(members: &Members<'_>, known: &[&str], faults: &mut Faults) {
    for (name, _) in members.iter() {
        if !known.contains(&name.as_str()) {
            faults.add(
                &members.path_of(name),
                format!("is not known here; known are {}", known.join(", ")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn block() -> Value {
        json!({
            "mode": "external", "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 300,
            "inputs": [{"key": "t", "field": "temperature"}], "parameters": {"value": 80, "unit": "°C", "strict": true}
        })
    }

    /// Paths of the faults.
    fn faults_of(value: &Value) -> Vec<String> {
        let mut faults = Faults::default();
        let read = read(value, vec!["evaluation".to_owned()], &mut faults);
        match faults.check() {
            Ok(()) => {
                assert!(read.is_some());
                Vec::new()
            }
            Err(error) => {
                let paths = error.details.into_iter().map(|detail| detail.path.join("."));
                paths.collect()
            }
        }
    }

    #[test]
    fn a_block_is_read_with_its_defaults() {
        let mut faults = Faults::default();
        let read = read(&block(), Vec::new(), &mut faults).unwrap();
        assert!(faults.none());
        assert_eq!(read.dwell_seconds, 300.0, "the window's");
        assert_eq!(read.parameters[0], ("value".into(), Parameter::Number(80.0)));
        assert_eq!(read.parameters[1], ("unit".into(), Parameter::Text("°C".into())));
        assert_eq!(read.parameters[2], ("strict".into(), Parameter::Boolean(true)));
        assert_eq!(read.inputs[0].grouping, None);
    }

    #[test]
    fn every_member_has_its_edges() {
        let with = |name: &str, value: Value| {
            let mut block = block();
            block[name] = value;
            faults_of(&block)
        };
        let input = |input: Value| with("inputs", json!([input]));
        let many = |count: usize| -> Value {
            (0..count)
                .map(|n| json!({"key": format!("k{n}"), "field": "f"}))
                .collect()
        };
        let none: [&str; 0] = [];
        for fine in [
            with("intervalSeconds", json!(60)),
            with("intervalSeconds", json!(86_400)),
            with("windowSeconds", json!(60)),
            with("windowSeconds", json!(31_536_000)),
            with("dwellSeconds", json!(0)),
            with("dwellSeconds", json!(1e300)),
            with("kind", json!("k".repeat(64))),
            with("parameters", json!({})),
            with("inputs", many(10)),
            input(
                json!({"key": "K_9", "field": "f", "aggregation": "avg", "groupBy": "hour", "windowSeconds": 60}),
            ),
        ] {
            assert_eq!(fine, none);
        }
        let at_input = |member: &str| format!("evaluation.inputs.0.{member}");
        for (found, expected) in [
            (
                with("intervalSeconds", json!(59)),
                "evaluation.intervalSeconds".to_owned(),
            ),
            (
                with("intervalSeconds", json!(86_401)),
                "evaluation.intervalSeconds".to_owned(),
            ),
            (
                with("intervalSeconds", json!("60")),
                "evaluation.intervalSeconds".to_owned(),
            ),
            (
                with("windowSeconds", json!(59.9)),
                "evaluation.windowSeconds".to_owned(),
            ),
            (
                with("windowSeconds", json!(31_536_001)),
                "evaluation.windowSeconds".to_owned(),
            ),
            (
                with("dwellSeconds", json!(-1)),
                "evaluation.dwellSeconds".to_owned(),
            ),
            (with("kind", json!("k".repeat(65))), "evaluation.kind".to_owned()),
            (with("mode", json!("internal")), "evaluation.mode".to_owned()),
            (with("dwellSecond", json!(1)), "evaluation.dwellSecond".to_owned()),
            (with("inputs", json!([])), "evaluation.inputs".to_owned()),
            (with("inputs", many(11)), "evaluation.inputs".to_owned()),
            (with("parameters", json!([])), "evaluation.parameters".to_owned()),
            (
                with("parameters", json!({"a": {"b": 1}})),
                "evaluation.parameters.a".to_owned(),
            ),
            (
                with("parameters", json!({"a": null})),
                "evaluation.parameters.a".to_owned(),
            ),
            (input(json!({"key": "9k", "field": "f"})), at_input("key")),
            (input(json!({"key": "k-", "field": "f"})), at_input("key")),
            (input(json!({"key": "", "field": "f"})), at_input("key")),
            (input(json!({"field": "f"})), at_input("key")),
            (input(json!({"key": "k"})), at_input("field")),
            (
                input(json!({"key": "k", "field": "f", "dataSourceId": "x"})),
                at_input("dataSourceId"),
            ),
            (
                input(json!({"key": "k", "field": "f", "aggregation": "avg"})),
                at_input("groupBy"),
            ),
            (
                input(json!({"key": "k", "field": "f", "groupBy": "hour"})),
                at_input("aggregation"),
            ),
            (
                input(json!({"key": "k", "field": "f", "windowSeconds": 59})),
                at_input("windowSeconds"),
            ),
            (
                input(json!({"key": "k", "field": "f", "extra": 1})),
                at_input("extra"),
            ),
        ] {
            assert_eq!(found, [expected]);
        }
        let twice = with(
            "inputs",
            json!([{"key": "k", "field": "f"}, {"key": "k", "field": "g"}]),
        );
        assert_eq!(twice, ["evaluation.inputs.1.key"]);
    }

    #[test]
    fn all_faults_are_told_together() {
        let found = faults_of(&json!({"mode": "internal", "inputs": [{}], "windowSeconds": 1}));
        assert_eq!(
            found,
            [
                "evaluation.mode",
                "evaluation.intervalSeconds",
                "evaluation.windowSeconds",
                "evaluation.inputs.0.key",
                "evaluation.inputs.0.field",
                "evaluation.parameters"
            ]
        );
    }
}
