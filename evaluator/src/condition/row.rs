//! The rows of a query's answer, and the query's window.

use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub const SECOND_NS: i64 = 1_000_000_000;

/// A measurement. Only values of the same type have a meaningful order.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Scalar {
    /// A finite number.
    Number(f64),
    /// A string.
    Text(String),
    Boolean(bool),
}

impl Scalar {
    /// Converts a JSON value; null and containers are not measurements.
    pub fn of(value: Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_f64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text)),
            Value::Bool(flag) => Some(Self::Boolean(flag)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The type's name in a schema.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Boolean(_) => "boolean",
        }
    }

    pub fn to_value(&self) -> Value {
        match self {
            Self::Number(value) => number(*value),
            Self::Text(text) => text.as_str().into(),
            Self::Boolean(flag) => (*flag).into(),
        }
    }
}

/// A number as the service writes it: integers without `.0`. Infinity becomes null.
pub fn number(value: f64) -> Value {
    /// Up to here every integer is exactly a double.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        (value as i64).into()
    } else {
        value.into()
    }
}

/// A raw point or a group, reduced to one field.
#[derive(Clone, Debug)]
pub struct Row {
    /// The point's timestamp, or the start of the group.
    pub timestamp: String,
    /// `values[field]`.
    pub value: Option<Scalar>,
    /// Metadata of a raw point. Kept as text, because its numbers may exceed a double.
    pub metadata: Option<Box<RawValue>>,
}

impl Row {
    /// The value if it is a number.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            Some(Scalar::Number(number)) => Some(number),
            _ => None,
        }
    }
}

/// The time range of a query and the length of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// `filters.startTime`, UTC nanoseconds.
    pub start_ns: Option<i64>,
    /// `filters.endTime`.
    pub end_ns: Option<i64>,
    /// Maximum length of a row: 0 for a raw point, the unit for a group.
    pub row_ns: i64,
}

impl Window {
    /// Reads the window from a query's body.
    pub fn of_query(query: &Map<String, Value>) -> Self {
        let time = |name| parse_timestamp(query.get("filters")?.get(name)?.as_str()?);
        let row_seconds = match query.get("groupBy").and_then(Value::as_str) {
            Some("minute") => 60,
            Some("hour") => 3_600,
            Some("day") => 86_400,
            Some("week") => 7 * 86_400,
            Some("month") => 31 * 86_400,
            _ => 0,
        };
        Self {
            start_ns: time("startTime"),
            end_ns: time("endTime"),
            row_ns: row_seconds * SECOND_NS,
        }
    }
}

/// Parses a timestamp to UTC nanoseconds since 1970-01-01.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let timestamp: Timestamp = text.parse().ok()?;
    timestamp.as_nanosecond().try_into().ok()
}

/// Reason for an inconclusive outcome: no rows at all, or none with a value of the type.
pub fn no_value(rows: u64, value_type: &str) -> String {
    match rows {
        0 => "no rows in the window".to_owned(),
        rows => format!("none of the {rows} rows has a {value_type} in the field"),
    }
}
