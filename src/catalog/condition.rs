//! Parsed conditions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names;

/// A parsed condition: `{field, operator, value}`, and `percent: true` where a change is in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParsedCondition {
    /// Name of the field in the schema.
    pub field: Box<str>,
    pub operator: Operator,
    /// The value that the field is compared with.
    pub value: ConditionValue,
    /// Whether a change is in percent of the previous value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub percent: bool,
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the contract's names")]
pub enum Operator {
    Gt,
    Gte,
    Lt,
    Lte,
    Eq,
    Neq,
    Between,
    Outside,
    IncreasesBy,
    DecreasesBy,
}

names!(
    Operator:
    Gt => "gt",
    Gte => "gte",
    Lt => "lt",
    Lte => "lte",
    Eq => "eq",
    Neq => "neq",
    Between => "between",
    Outside => "outside",
    IncreasesBy => "increases_by",
    DecreasesBy => "decreases_by"
);

/// The value that a field is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConditionValue {
    /// For a number field.
    Number(f64),
    /// For a boolean field.
    Boolean(bool),
    /// For a string field.
    Text(Box<str>),
    /// `[low, high]`.
    Range([f64; 2]),
}

impl ConditionValue {
    /// The value in the API.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => json_number(*number),
            Self::Boolean(value) => Value::from(*value),
            Self::Text(text) => Value::from(&**text),
            Self::Range(limits) => Value::from(limits.map(json_number).to_vec()),
        }
    }
}

/// A number as the API shows it: an integral one without `.0`, like the values of points.
pub fn json_number(number: f64) -> Value {
    /// From here on doubles are written with an exponent, and therefore without `.0`.
    const EXPONENT_FROM: f64 = 1e16;
    if number.fract() == 0.0 && number.abs() < EXPONENT_FROM {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> [ConditionValue; 8] {
        [
            ConditionValue::Number(30.0),
            ConditionValue::Number(-0.25),
            ConditionValue::Number(1e300),
            ConditionValue::Boolean(true),
            ConditionValue::Text("Out Of Order".into()),
            ConditionValue::Text("42".into()),
            ConditionValue::Range([-10.0, -5.0]),
            ConditionValue::Range([0.0, 1.5]),
        ]
    }

    fn conditions() -> impl Iterator<Item = ParsedCondition> {
        Operator::ALL.into_iter().flat_map(|operator| {
            values().into_iter().map(move |value| ParsedCondition {
                field: "Füllstand 2".into(),
                operator,
                percent: operator == Operator::DecreasesBy,
                value,
            })
        })
    }

    #[test]
    fn stored_conditions_round_trip() {
        for condition in conditions() {
            let bytes = rmp_serde::to_vec_named(&condition).unwrap();
            assert_eq!(
                rmp_serde::from_slice::<ParsedCondition>(&bytes).unwrap(),
                condition
            );
            let json = serde_json::to_string(&condition).unwrap();
            assert_eq!(serde_json::from_str::<ParsedCondition>(&json).unwrap(), condition);
        }
    }

    #[test]
    fn shown_values_read_back_as_the_stored_values() {
        for condition in conditions() {
            let shown = condition.value.to_json();
            assert_eq!(
                serde_json::from_value::<ConditionValue>(shown).unwrap(),
                condition.value
            );
        }
    }

    #[test]
    fn integral_numbers_are_shown_without_a_fraction() {
        let shown = |number: f64| ConditionValue::Number(number).to_json().to_string();
        for (number, text) in [
            (30.0, "30"),
            (-7.0, "-7"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (9_007_199_254_740_994.0, "9007199254740994"),
            (9_999_999_999_999_998.0, "9999999999999998"),
            (1e16, "1e+16"),
            (-1e300, "-1e+300"),
        ] {
            assert_eq!(shown(number), text);
        }
        let range = ConditionValue::Range([-10.0, 2.5]).to_json().to_string();
        assert_eq!(range, "[-10,2.5]");
    }
}
