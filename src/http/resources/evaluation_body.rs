//! The shape of a rule's `evaluation` block. The service checks that its sources and fields exist.

use std::collections::HashSet;

use serde_json::Value;
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, SchemaType, Type};

use super::dimension_filters::{
    DimensionFilters, GroupDimensions, dimensions_go_with_groups, dimensions_with_groups_schema,
};
use super::query_body::{GROUPS, OF_GROUPS, ZoneName};
use super::query_members::FillValue;
use crate::catalog::{Evaluation, Input, Parameter};
use crate::http::shape::{
    FromJson, List, Mode, Number, Object, Place, Rule, Text, Trimmed, body, described, kind_of,
};
use crate::ids::ObjectId;
use crate::limits::{
    EVALUATION_INPUTS_MAX, EVALUATION_KIND_CHARS_MAX, FIELD_NAME_CHARS_MAX, INPUT_KEY_CHARS_MAX,
    INTERVAL_SECONDS, PARAMETER_CHARS_MAX, PARAMETERS_MAX, WINDOW_SECONDS,
};
use crate::service::query::{Aggregation, GroupBy};

type Kind = Text<EVALUATION_KIND_CHARS_MAX>;
type Interval = Number<{ INTERVAL_SECONDS.0 }, { INTERVAL_SECONDS.1 }>;
type Window = Number<{ WINDOW_SECONDS.0 }, { WINDOW_SECONDS.1 }>;
type Dwell = Number<0, { u64::MAX }>;
type Inputs = List<InputBody, 1, EVALUATION_INPUTS_MAX>;
type Field = Trimmed<FIELD_NAME_CHARS_MAX>;

body! {
    /// An evaluation block. Unknown members are rejected.
    pub struct EvaluationBody {
        /// Only `external` is allowed; optional.
        mode: Option<Mode>,
        /// Label by which evaluators select the rules that they handle.
        kind: Option<Kind>,
        /// Interval between evaluations, in seconds.
        interval_seconds: Interval,
        /// Length of the time window to evaluate, in seconds.
        window_seconds: Window,
        /// Inputs of the evaluation, 1 to 10.
        inputs: Inputs,
        /// Parameters passed to the evaluator: a flat object of at most 256 members.
        parameters: Parameters,
        /// Time after `not_met` until the rule is armed again, in seconds; `windowSeconds` when absent.
        dwell_seconds: Option<Dwell>,
    }
    rules [Rule::Closed, Rule::Values(keys_are_unique)]
}

body! {
    /// A series that the evaluator reads.
    pub struct InputBody {
        /// Name of the input: a letter, then letters, digits and underscores; unique within the rule.
        key: Key,
        /// A field of the data source.
        field: Field,
        /// Data source; that of the rule when absent.
        data_source_id: Option<ObjectId>,
        /// Aggregate computed for each group; requires `groupBy`.
        aggregation: Option<Aggregation>,
        /// Step of a group, as in a query; requires `aggregation`.
        #[schema(value_type = Option<String>, example = "15m")]
        group_by: Option<GroupBy>,
        /// Overrides the window of the rule, in seconds.
        window_seconds: Option<Window>,
        /// What stands in steps without values, as in a query; requires `aggregation` and `groupBy`.
        fill: Option<FillValue>,
        /// Time zone in which hours, days and longer steps begin, as in a query.
        #[schema(value_type = Option<String>, example = "Europe/Stockholm")]
        timezone: Option<ZoneName>,
        /// Conditions on dimensions: `filters.dimensions` of the query.
        dimensions: Option<DimensionFilters>,
        /// Dimensions by whose values series are grouped, as in a query; requires `aggregation` and `groupBy`.
        group_by_dimensions: Option<GroupDimensions>,
    }
    rules [
        Rule::Closed,
        Rule::Together("aggregation", "groupBy"),
        Rule::Beside("fill", GROUPS, OF_GROUPS),
        Rule::Described(dimensions_go_with_groups, dimensions_with_groups_schema),
    ]
}

fn keys_are_unique(block: &Object<'_>) {
    let mut keys = HashSet::new();
    let inputs = block.given("inputs").and_then(Value::as_array);
    for (index, input) in inputs.into_iter().flatten().enumerate() {
        if let Some(key) = input.get("key").and_then(Value::as_str)
            && !keys.insert(key)
        {
            let inputs = block.place.member("inputs");
            let message = format!("must be unique within the rule; {key:?} is there twice");
            inputs.index(index).member("key").fault(message);
        }
    }
}

impl From<EvaluationBody> for Evaluation {
    fn from(block: EvaluationBody) -> Self {
        let window_seconds = block.window_seconds.0;
        Self {
            kind: block.kind.map(|kind| kind.0.into()),
            interval_seconds: block.interval_seconds.0,
            window_seconds,
            inputs: block.inputs.0.into_iter().map(Into::into).collect(),
            parameters: block.parameters.0,
            dwell_seconds: block.dwell_seconds.map_or(window_seconds, |dwell| dwell.0),
        }
    }
}

impl From<InputBody> for Input {
    fn from(input: InputBody) -> Self {
        let grouping = input.aggregation.zip(input.group_by);
        Self {
            key: input.key.0.into(),
            field: input.field.0.into(),
            source_id: input.data_source_id,
            grouping: grouping.map(|(aggregation, group_by)| {
                (aggregation.name().as_ref().into(), group_by.as_str().into())
            }),
            window_seconds: input.window_seconds.map(|window| window.0),
            fill: input.fill.map(FillValue::as_parameter),
            timezone: input.timezone.map(|zone| zone.name.into()),
            dimensions: input
                .dimensions
                .filter(|dimensions| !dimensions.filters.is_empty())
                .map(|dimensions| dimensions.sent.to_string().into()),
            group_by_dimensions: input
                .group_by_dimensions
                .unwrap_or_default()
                .0
                .into_iter()
                .map(Into::into)
                .collect(),
        }
    }
}

/// Name of an input within its rule, or of a variable within its board.
#[derive(Debug)]
pub struct Key(pub String);

impl FromJson for Key {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let Text::<INPUT_KEY_CHARS_MAX>(key) = FromJson::read(value, place)?;
        let is_word = key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_word && key.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Some(Self(key));
        }
        place.fault(format!(
            "must start with a letter and go on with letters, digits and underscores, not {key:?}"
        ));
        None
    }
}

described!(
    Key,
    "InputKey",
    text()
        .max_length(Some(INPUT_KEY_CHARS_MAX))
        .pattern(Some("^[A-Za-z][A-Za-z0-9_]*$"))
);

/// Parameters for the evaluator: numbers, strings and booleans by name.
#[derive(Debug)]
pub struct Parameters(pub Vec<(Box<str>, Parameter)>);

impl FromJson for Parameters {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let Some(members) = value.as_object() else {
            let found = kind_of(value);
            place.fault(format!(
                "must be an object of numbers, strings and booleans, not {found}"
            ));
            return None;
        };
        if members.len() > PARAMETERS_MAX {
            let count = members.len();
            place.fault(format!("must have at most {PARAMETERS_MAX} members, not {count}"));
            return None;
        }
        let mut parameters = Vec::with_capacity(members.len());
        for (name, value) in members {
            let place = place.member(name);
            if name.chars().count() > PARAMETER_CHARS_MAX {
                place.fault(format!(
                    "must have a name of at most {PARAMETER_CHARS_MAX} characters"
                ));
            }
            parameters.extend(parameter(value, &place).map(|parameter| (name.as_str().into(), parameter)));
        }
        (parameters.len() == members.len()).then_some(Self(parameters))
    }
}

fn parameter(value: &Value, place: &Place<'_>) -> Option<Parameter> {
    match value {
        Value::Bool(boolean) => Some(Parameter::Boolean(*boolean)),
        Value::Number(number) => number.as_f64().map(Parameter::Number),
        Value::String(_) => {
            let Text::<PARAMETER_CHARS_MAX>(text) = FromJson::read(value, place)?;
            Some(Parameter::Text(text.into()))
        }
        other => {
            let found = kind_of(other);
            place.fault(format!(
                "must be a number, a string or a boolean, not {found}: parameters are flat"
            ));
            None
        }
    }
}

described!(Parameters, "Parameters", {
    let value = [Type::Number, Type::String, Type::Boolean];
    let value = ObjectBuilder::new().schema_type(SchemaType::from_iter(value));
    let value = value.max_length(Some(PARAMETER_CHARS_MAX));
    let names = text().max_length(Some(PARAMETER_CHARS_MAX)).build();
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .max_properties(Some(PARAMETERS_MAX))
        .property_names(Some(Schema::Object(names)))
        .additional_properties(Some(AdditionalProperties::RefOr(value.into())))
});

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::shape::Faults;

    fn block() -> Value {
        json!({
            "mode": "external", "kind": "threshold", "intervalSeconds": 60, "windowSeconds": 300,
            "inputs": [{"key": "t", "field": "temperature"}], "parameters": {"value": 80, "unit": "°C", "strict": true}
        })
    }

    fn faults_of(value: &Value) -> Vec<String> {
        let faults = Faults::default();
        let read = EvaluationBody::read(value, &faults.root().member("evaluation"));
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
        let read = EvaluationBody::read(&block(), &Faults::default().root()).unwrap();
        let read = Evaluation::from(read);
        assert_eq!(read.dwell_seconds, 300.0, "the window's");
        assert_eq!(read.parameters[0], ("value".into(), Parameter::Number(80.0)));
        assert_eq!(read.parameters[1], ("unit".into(), Parameter::Text("°C".into())));
        assert_eq!(read.parameters[2], ("strict".into(), Parameter::Boolean(true)));
        assert_eq!(read.inputs[0].grouping, None);
    }

    #[test]
    fn every_member_has_its_limits() {
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
    fn all_faults_are_reported_together() {
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
