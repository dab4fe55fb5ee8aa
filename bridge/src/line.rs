//! Writes points in InfluxDB's line protocol, as `POST /api/v2/write` reads it. Pure.
//!
//! In names and values of tags, and in names of fields, a comma, an equals sign and a blank are written with a
//! backslash. A backslash before anything else is itself, so nothing can be written that ends with one: it would change
//! the meaning of the separator behind it. The protocol has no spelling for a line break there either.

use std::fmt::Write;

use crate::payload::{FieldValue, Reading};
use crate::topic::Origin;

/// Why a point has no line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The level of the topic is empty.
    #[error("the topic's level that names the source is empty")]
    NoSource,
    /// A member of the object has an empty name.
    #[error("a field without a name")]
    NoFieldName,
    /// The text has a control character, or a backslash at its end.
    #[error("{0:?} cannot be written: it has a control character, or a backslash at its end")]
    Unwritable(String),
}

/// Whether a text can stand as the name of a source, dimension or field, or as the value of a dimension.
pub fn is_writable(text: &str) -> bool {
    !text.ends_with('\\') && !text.contains(char::is_control)
}

/// Writes a point as one line, without the line break. A dimension with an empty value is left out.
///
/// # Errors
/// See [`LineError`].
pub fn write(origin: &Origin<'_>, reading: &Reading, timestamp_ns: i64) -> Result<String, LineError> {
    if origin.source.is_empty() {
        return Err(LineError::NoSource);
    }
    let mut line = String::with_capacity(128);
    escape(&mut line, origin.source)?;
    for (name, value) in origin.dimensions.iter().filter(|(_, value)| !value.is_empty()) {
        line.push(',');
        escape(&mut line, name)?;
        line.push('=');
        escape(&mut line, value)?;
    }
    let mut separator = ' ';
    for (name, value) in &reading.fields {
        if name.is_empty() {
            return Err(LineError::NoFieldName);
        }
        line.push(separator);
        separator = ',';
        escape(&mut line, name)?;
        line.push('=');
        write_value(&mut line, value);
    }
    push(&mut line, format_args!(" {timestamp_ns}"));
    Ok(line)
}

fn escape(line: &mut String, text: &str) -> Result<(), LineError> {
    if !is_writable(text) {
        return Err(LineError::Unwritable(text.to_owned()));
    }
    for c in text.chars() {
        if matches!(c, ',' | '=' | ' ') {
            line.push('\\');
        }
        line.push(c);
    }
    Ok(())
}

fn write_value(line: &mut String, value: &FieldValue) {
    match value {
        // The shortest digits that are the same double; with an exponent where it is large or small.
        FieldValue::Number(number) => push(line, format_args!("{number:?}")),
        FieldValue::Boolean(boolean) => push(line, format_args!("{boolean}")),
        FieldValue::Text(text) => {
            line.push('"');
            for c in text.chars() {
                if matches!(c, '"' | '\\') {
                    line.push('\\');
                }
                line.push(c);
            }
            line.push('"');
        }
    }
}

fn push(line: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = line.write_fmt(text);
}
