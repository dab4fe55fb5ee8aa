//! The grammar of conditions from outside: texts with their parsed meaning, and refused texts with their messages.

mod accepted;
mod generated;
mod names;
mod refused;
mod robust;
mod states;
mod units;

use super::*;

fn schema_of(fields: &[(&str, FieldType, Option<&str>)]) -> Schema {
    let field = |(name, kind, unit): &(&str, FieldType, Option<&str>)| Field {
        name: (*name).into(),
        kind: *kind,
        unit: unit.map(Into::into),
        description: None,
    };
    fields.iter().map(field).collect::<Vec<_>>().into()
}

/// The fields of a machine with typical names.
fn machine() -> Schema {
    schema_of(&[
        ("temperature", FieldType::Number, Some("°C")),
        ("pressure", FieldType::Number, None),
        ("cpu_usage", FieldType::Number, Some("%")),
        ("engine_temp", FieldType::Number, None),
        ("speed", FieldType::Number, Some("km/h")),
        ("depth", FieldType::Number, Some("in")),
        ("co2", FieldType::Number, Some("ppm")),
        ("temp 2", FieldType::Number, None),
        ("Füllstand", FieldType::Number, Some("l")),
        ("time over limit", FieldType::Number, Some("s")),
        ("above_ground_level", FieldType::Number, Some("m")),
        ("requestRate", FieldType::Number, Some("requests per second")),
        ("value", FieldType::Number, None),
        ("voltage", FieldType::Number, Some("V")),
        ("latency", FieldType::Number, Some("ms")),
        ("energy", FieldType::Number, Some("kWh")),
        ("heat", FieldType::Number, Some("K")),
        ("cost", FieldType::Number, Some("USD")),
        ("price", FieldType::Number, Some("EUR/kWh")),
        ("queue", FieldType::Number, Some("widgets")),
        ("humidity", FieldType::Number, None),
        ("visitors", FieldType::Number, None),
        ("is_open", FieldType::Boolean, None),
        ("pump", FieldType::Boolean, None),
        ("door", FieldType::String, None),
        ("status", FieldType::String, None),
        ("mode", FieldType::String, None),
        ("error-code", FieldType::String, None),
    ])
}

/// Field, operator and value in one line, as in `pressure decreases_by 20 percent`.
fn line(condition: &ParsedCondition) -> String {
    let percent = if condition.percent { " percent" } else { "" };
    let (field, operator) = (&condition.field, condition.operator.name());
    format!("{field} {operator} {}{percent}", condition.value.to_json())
}

fn read(text: &str, schema: &Schema) -> Result<String, ConditionError> {
    parse(text, schema).map(|condition| line(&condition))
}

/// Asserts that each text is parsed as the line beside it.
#[track_caller]
fn assert_parsed(cases: &[(&str, &str)]) {
    let schema = machine();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(text, expected)| {
            let found = read(text, &schema);
            (found.as_deref() != Ok(*expected)).then(|| format!("{text:?}: {found:?}, expected {expected:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The part of the message before the help that ends every refusal.
fn fault(error: &ConditionError) -> String {
    let text = error.to_string();
    text.split("; understood are")
        .next()
        .unwrap_or_default()
        .to_owned()
}
