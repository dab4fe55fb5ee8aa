//! `filters.values` of a query.

use serde_json::{Value, json};
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, SchemaType, Type};

use crate::http::shape::{FromJson, Place, described, kind_of};
use crate::limits::{VALUE_FILTER_FIELDS_MAX, VALUE_FILTER_VALUES_MAX};
use crate::service::query::{Condition, Literal, Set, Test};

/// Conditions on the values of fields, by their names.
#[derive(Debug, Default)]
pub struct ValueFilters(pub Vec<Condition>);

impl FromJson for ValueFilters {
    fn read(value: &Value, place: &Place<'_>) -> Option<Self> {
        let fields = place.object(value)?.members;
        if fields.len() > VALUE_FILTER_FIELDS_MAX {
            let count = fields.len();
            place.fault(format!(
                "must have conditions for at most {VALUE_FILTER_FIELDS_MAX} fields, not {count}"
            ));
            return None;
        }
        let read = |(field, tests): (&String, &Value)| condition(field, tests, &place.member(field));
        // All of them are read, so that all faults are found.
        let conditions: Vec<Option<Condition>> = fields.iter().map(read).collect();
        conditions.into_iter().collect::<Option<_>>().map(Self)
    }
}

described!(
    ValueFilters,
    "ValueFilters",
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .max_properties(Some(VALUE_FILTER_FIELDS_MAX))
        .additional_properties(Some(schema_of_tests()))
        .examples([json!({"temperature": {"gte": 80, "lt": 100}})])
);

fn schema_of_tests() -> ObjectBuilder {
    let any = || {
        let kinds = [Type::Number, Type::Boolean, Type::String];
        ObjectBuilder::new().schema_type(SchemaType::from_iter(kinds))
    };
    let some = ArrayBuilder::new()
        .items(any())
        .min_items(Some(1))
        .max_items(Some(VALUE_FILTER_VALUES_MAX));
    let number = || ObjectBuilder::new().schema_type(Type::Number);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("gt", number())
        .property("gte", number())
        .property("lt", number())
        .property("lte", number())
        .property("eq", any())
        .property("neq", any())
        .property("in", some)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

fn condition(field: &str, tests: &Value, place: &Place<'_>) -> Option<Condition> {
    let members = place.object(tests)?.members;
    if members.is_empty() {
        place.fault("must have at least one of gt, gte, lt, lte, eq, neq, in");
        return None;
    }
    let read = |(name, value): (&String, &Value)| test(name, value, &place.member(name));
    let tests: Vec<Option<Test>> = members.iter().map(read).collect();
    Some(Condition {
        field: field.to_owned(),
        tests: tests.into_iter().collect::<Option<_>>()?,
    })
}

fn test(name: &str, value: &Value, place: &Place<'_>) -> Option<Test> {
    match name {
        "gt" => number(value, place).map(Test::Gt),
        "gte" => number(value, place).map(Test::Gte),
        "lt" => number(value, place).map(Test::Lt),
        "lte" => number(value, place).map(Test::Lte),
        "eq" => literal(value, place).map(Test::Eq),
        "neq" => literal(value, place).map(Test::Neq),
        "in" => set(value, place).map(Test::In),
        _ => {
            place.fault("is no operator; they are gt, gte, lt, lte, eq, neq, in");
            None
        }
    }
}

fn number(value: &Value, place: &Place<'_>) -> Option<f64> {
    let number = value.as_f64().filter(|number| number.is_finite());
    if number.is_none() {
        place.fault(format!("must be a finite number, not {}", kind_of(value)));
    }
    number
}

fn literal(value: &Value, place: &Place<'_>) -> Option<Literal> {
    match value {
        Value::Number(_) => number(value, place).map(Literal::Number),
        Value::Bool(value) => Some(Literal::Boolean(*value)),
        Value::String(text) => Some(Literal::Text(text.as_str().into())),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            place.fault(format!(
                "must be a number, a boolean or a string, not {}",
                kind_of(value)
            ));
            None
        }
    }
}

fn set(value: &Value, place: &Place<'_>) -> Option<Set> {
    let Some(values) = value.as_array() else {
        place.fault(format!("must be an array, not {}", kind_of(value)));
        return None;
    };
    if values.is_empty() || values.len() > VALUE_FILTER_VALUES_MAX {
        let count = values.len();
        place.fault(format!(
            "must have 1 to {VALUE_FILTER_VALUES_MAX} values, not {count}"
        ));
        return None;
    }
    let read = |(index, value): (usize, &Value)| literal(value, &place.index(index));
    let values: Vec<Option<Literal>> = values.iter().enumerate().map(read).collect();
    values.into_iter().collect::<Option<_>>().map(Set::new)
}
