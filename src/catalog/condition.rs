//! What a condition's text says, once it is understood.

use serde::{Deserialize, Serialize};

/// A parsed condition: `{field, operator, value}`, and `percent: true` where a change is in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParsedCondition {
    /// Name of the field in the schema.
    pub field: Box<str>,
    /// How the field is compared.
    pub operator: Operator,
    /// What it is compared with.
    pub value: ConditionValue,
    /// Whether a change is in percent of the value before.
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

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConditionValue {
    /// Of a number field.
    Number(f64),
    /// Of a boolean field.
    Boolean(bool),
    /// Of a string field.
    Text(Box<str>),
    /// `[low, high]`.
    Range([f64; 2]),
}
