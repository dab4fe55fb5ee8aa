//! What the payload of a message says: fields, and a time if it has one. Pure.
//!
//! A JSON number, `true` or `false` is the field `value`. The members of a JSON object are fields, except for
//! `timestamp`; members of an object inside are fields too, named by their path with dots. Null is no measurement.
//! Arrays are no fields and are left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::timestamp;

/// The field of a payload that is a plain number, `true` or `false`.
const PLAIN_FIELD: &str = "value";
/// The member of an object that is its time.
const TIMESTAMP: &str = "timestamp";
/// The most fields that a source of the service has.
pub const FIELDS_MAX: usize = 256;
/// Payloads above this size are not read. A point with 256 long strings has about as many bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// What one message has measured.
#[derive(Debug, PartialEq)]
pub struct Reading {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub timestamp_ns: Option<i64>,
    /// At least one; numbers are finite.
    pub fields: BTreeMap<String, FieldValue>,
}

/// A value of a type that the service keeps.
#[derive(Debug, PartialEq)]
pub enum FieldValue {
    Number(f64),
    Boolean(bool),
    Text(String),
}

/// Why a payload cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// More bytes than [`PAYLOAD_BYTES_MAX`].
    #[error("the payload has {0} bytes; at most {PAYLOAD_BYTES_MAX} are read")]
    TooLarge(usize),
    /// Not JSON.
    #[error("the payload is not JSON: {0}")]
    NotJson(String),
    /// A text, an array or null.
    #[error("the payload must be a JSON object, a number, true or false")]
    NoReading,
    /// The timestamp is in no form that the API takes.
    #[error("timestamp must be a text with an ISO 8601 date-time such as \"2026-01-31T12:00:00Z\"")]
    Timestamp,
    /// Nothing was measured.
    #[error("no member is a number, a boolean or a text")]
    NoFields,
    /// More fields than [`FIELDS_MAX`].
    #[error("more than {FIELDS_MAX} fields")]
    TooManyFields,
    /// Two members have the same path.
    #[error("the field {0:?} stands twice")]
    Twice(String),
}

/// Reads a payload.
///
/// # Errors
/// See [`PayloadError`].
pub fn read(payload: &[u8]) -> Result<Reading, PayloadError> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(PayloadError::TooLarge(payload.len()));
    }
    let json: Value =
        serde_json::from_slice(payload).map_err(|cause| PayloadError::NotJson(cause.to_string()))?;
    let mut reading = Reading {
        timestamp_ns: None,
        fields: BTreeMap::new(),
    };
    match json {
        Value::Object(mut members) => {
            reading.timestamp_ns = match members.remove(TIMESTAMP) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(timestamp::parse(&text).ok_or(PayloadError::Timestamp)?),
                Some(_) => return Err(PayloadError::Timestamp),
            };
            add_members(&mut reading.fields, "", members)?;
        }
        plain @ (Value::Number(_) | Value::Bool(_)) => {
            add(&mut reading.fields, PLAIN_FIELD.to_owned(), plain)?;
        }
        Value::Null | Value::String(_) | Value::Array(_) => return Err(PayloadError::NoReading),
    }
    match reading.fields.is_empty() {
        true => Err(PayloadError::NoFields),
        false => Ok(reading),
    }
}

/// The depth of objects is bounded by the parser, which refuses more than 128.
fn add_members(
    fields: &mut BTreeMap<String, FieldValue>,
    prefix: &str,
    members: Map<String, Value>,
) -> Result<(), PayloadError> {
    for (name, value) in members {
        add(fields, format!("{prefix}{name}"), value)?;
    }
    Ok(())
}

fn add(fields: &mut BTreeMap<String, FieldValue>, name: String, value: Value) -> Result<(), PayloadError> {
    let value = match value {
        Value::Null | Value::Array(_) => return Ok(()),
        Value::Object(members) => return add_members(fields, &format!("{name}."), members),
        Value::Bool(value) => FieldValue::Boolean(value),
        Value::String(text) => FieldValue::Text(text),
        // Without arbitrary precision every number is a finite double; the parser refuses those that are none.
        Value::Number(number) => FieldValue::Number(number.as_f64().unwrap_or_default()),
    };
    if fields.contains_key(&name) {
        return Err(PayloadError::Twice(name));
    }
    if fields.len() == FIELDS_MAX {
        return Err(PayloadError::TooManyFields);
    }
    fields.insert(name, value);
    Ok(())
}
