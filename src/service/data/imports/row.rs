//! Writes the rows of a file as points.

use std::borrow::Cow;

use protocols::{Field, Sample, SampleKind, Sink, TIMESTAMP_NS_MAX, TIMESTAMP_NS_MIN, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use tabular::{Cell, Row};

use super::EpochUnit;
use super::columns::{Columns, Role};
use crate::catalog::{FieldType, Schema};
use crate::ingest::{MetadataValue, MetadataWriter, timestamp};
use crate::limits::METADATA_BYTES_MAX;
use crate::service::data::EntrySink;
use crate::timestamp::format_timestamp_ns;

/// Writes rows as points of one source.
pub struct RowWriter<'a> {
    columns: &'a Columns,
    source: &'a str,
    /// The schema of a source that exists.
    schema: Option<&'a Schema>,
    unit: Option<EpochUnit>,
    exported_source: &'a mut Option<Box<str>>,
    metadata: MetadataWriter,
    /// The fields of a row; a buffer.
    fields: Vec<Field<'a>>,
    /// The metadata of the series that the sink has; `None` before the first.
    current: Option<String>,
}

impl<'a> RowWriter<'a> {
    pub fn new(
        columns: &'a Columns,
        source: &'a str,
        schema: Option<&'a Schema>,
        unit: Option<EpochUnit>,
        exported_source: &'a mut Option<Box<str>>,
    ) -> Self {
        RowWriter {
            columns,
            source,
            schema,
            unit,
            exported_source,
            metadata: MetadataWriter::default(),
            fields: Vec::new(),
            current: None,
        }
    }

    /// Writes a row, or says what is wrong with it. `index`: its place in the batch.
    pub fn write(&mut self, index: u32, row: &Row<'a>, sink: &mut EntrySink<'_>) -> Result<(), String> {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        let read = self.read(row, &mut fields);
        let written = read.and_then(|time_ns| {
            self.begin_series(sink)?;
            let sample = Sample {
                entry: index,
                number: index,
                kind: SampleKind::Value,
            };
            sink.point(sample, time_ns, &fields);
            Ok(())
        });
        self.fields = fields;
        written
    }

    /// Reads a row's fields and metadata. Returns its time in nanoseconds since 1970.
    fn read(&mut self, row: &Row<'a>, fields: &mut Vec<Field<'a>>) -> Result<i64, String> {
        if let Some(fault) = row.fault {
            return Err(format!("the row {fault}"));
        }
        let mut time_ns = None;
        self.metadata.clear();
        let columns = self.columns;
        for (column, cell) in row.cells() {
            match columns.role(column) {
                Role::Time => time_ns = Some(self.time_of(cell)?),
                Role::Dimension(name) => self.add_dimension(name, cell)?,
                Role::Field(name) => {
                    let value = self
                        .value_of(name, cell)
                        .map_err(|fault| format!("{name:?}: {fault}"))?;
                    fields.extend(value.map(|value| Field {
                        name: Cow::Borrowed(name.as_str()),
                        value,
                    }));
                }
                Role::ExportedSource => self.check_source(cell)?,
                Role::ExportedMetadata => self.take_metadata(cell)?,
                Role::ExportedValues => fields.extend(exported_values(cell)?),
                Role::ExportedId => {}
            }
        }
        let Some(time_ns) = time_ns else {
            return Err("the row has no time".to_owned());
        };
        if fields.is_empty() {
            return Err("the row has no value".to_owned());
        }
        Ok(time_ns)
    }

    fn begin_series(&mut self, sink: &mut EntrySink<'_>) -> Result<(), String> {
        let metadata = self.metadata.as_str();
        if metadata.len() > METADATA_BYTES_MAX {
            let bytes = metadata.len();
            return Err(format!(
                "its metadata has {bytes} bytes, and may have {METADATA_BYTES_MAX}"
            ));
        }
        if self.current.as_deref() != Some(metadata) {
            sink.series(self.source, metadata);
            let current = self.current.get_or_insert_default();
            current.clear();
            current.push_str(metadata);
        }
        Ok(())
    }

    fn time_of(&self, cell: Cell<'_>) -> Result<i64, String> {
        let ns = match (cell, self.unit) {
            (Cell::Time(ns), _) => ns,
            (Cell::Untyped(text) | Cell::Text(text), Some(unit)) if is_number(text) => epoch(text, unit)?,
            (Cell::Spelled(text), Some(unit)) => epoch(text, unit)?,
            (Cell::Integer(number), Some(unit)) => epoch(&number.to_string(), unit)?,
            (Cell::Double(number), Some(unit)) => epoch(&number.to_string(), unit)?,
            (Cell::Untyped(text) | Cell::Text(text), _) => match timestamp::parse(text) {
                Ok(ns) => ns,
                Err(_) if is_number(text) => return Err(NO_UNIT.to_owned()),
                Err(fault) => return Err(format!("its time {fault}, not {text:?}")),
            },
            (Cell::Spelled(_) | Cell::Integer(_) | Cell::Double(_), None) => return Err(NO_UNIT.to_owned()),
            (Cell::Boolean(_) | Cell::Json(_), _) => {
                return Err("its time is neither a text nor a number".to_owned());
            }
        };
        match (TIMESTAMP_NS_MIN..=TIMESTAMP_NS_MAX).contains(&ns) {
            true => Ok(ns),
            false => Err("its time is not within the years 1678 to 2261".to_owned()),
        }
    }

    fn add_dimension(&mut self, name: &str, cell: Cell<'_>) -> Result<(), String> {
        let value = match cell {
            Cell::Untyped(text) | Cell::Text(text) => MetadataValue::Text(text),
            Cell::Spelled(number) => MetadataValue::Spelled(number),
            Cell::Double(number) => MetadataValue::Double(number),
            Cell::Integer(number) => MetadataValue::Integer(number),
            Cell::Boolean(boolean) => MetadataValue::Boolean(boolean),
            Cell::Time(ns) => MetadataValue::Time(ns),
            Cell::Json(_) => return Err(format!("{name:?}: an object or array is no value of a dimension")),
        };
        self.metadata.add(name, value);
        Ok(())
    }

    /// The value of a cell; `None` if it stands for none.
    fn value_of<'c>(&self, name: &str, cell: Cell<'c>) -> Result<Option<Value<'c>>, String> {
        let declared = self.schema.and_then(|schema| {
            let ordinal = schema.field(name)?;
            Some(schema.fields[usize::from(ordinal)].kind)
        });
        Ok(Some(match cell {
            Cell::Untyped(text) => return untyped(text, declared),
            Cell::Text(text) => Value::Text(Cow::Borrowed(text)),
            Cell::Spelled(number) => Value::Number(finite(number)?),
            Cell::Double(number) => Value::Number(number),
            Cell::Integer(number) => Value::Number(number as f64),
            Cell::Boolean(boolean) => Value::Bool(boolean),
            Cell::Time(ns) => Value::Text(Cow::Owned(format_timestamp_ns(ns).as_str().to_owned())),
            Cell::Json(_) => return Err("an object or array is no value of a field".to_owned()),
        }))
    }

    /// Refuses points that another source had: as points of one source they would be mixed up.
    fn check_source(&mut self, cell: Cell<'_>) -> Result<(), String> {
        let (Cell::Untyped(id) | Cell::Text(id)) = cell else {
            return Ok(());
        };
        match self.exported_source {
            Some(first) if **first != *id => Err(format!(
                "the point is of the data source {id}, and those before are of {first}; export the points of one source \
                 to one file"
            )),
            Some(_) => Ok(()),
            None => {
                *self.exported_source = Some(id.into());
                Ok(())
            }
        }
    }

    fn take_metadata(&mut self, cell: Cell<'_>) -> Result<(), String> {
        let (Cell::Untyped(json) | Cell::Text(json) | Cell::Json(json)) = cell else {
            return Err("its metadata is no JSON object".to_owned());
        };
        if json.is_empty() {
            return Ok(());
        }
        let is_object = json.starts_with('{') && serde_json::from_str::<&RawValue>(json).is_ok();
        match is_object {
            true => self.metadata.add_object(json.trim_end()),
            false => return Err("its metadata is no JSON object".to_owned()),
        }
        Ok(())
    }
}

const NO_UNIT: &str = "its time is a number; name its unit with the parameter precision: ns, us, ms or s";

/// The values of an exported point.
fn exported_values<'f>(cell: Cell<'_>) -> Result<impl Iterator<Item = Field<'f>> + use<'f>, String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Scalar {
        Bool(bool),
        Number(f64),
        Text(String),
        Null(()),
    }
    let Cell::Json(json) = cell else {
        return Err("its values are no object".to_owned());
    };
    let values: std::collections::BTreeMap<String, Scalar> =
        serde_json::from_str(json).map_err(|fault| format!("its values are no flat object: {fault}"))?;
    Ok(values.into_iter().filter_map(|(name, value)| {
        let value = match value {
            Scalar::Bool(boolean) => Value::Bool(boolean),
            Scalar::Number(number) => Value::Number(number),
            Scalar::Text(text) => Value::Text(Cow::Owned(text)),
            Scalar::Null(()) => return None,
        };
        Some(Field {
            name: Cow::Owned(name),
            value,
        })
    }))
}

/// The value that characters without a type stand for.
fn untyped(text: &str, declared: Option<FieldType>) -> Result<Option<Value<'_>>, String> {
    let boolean = |text: &str| match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    let value = match declared {
        Some(FieldType::String) => Value::Text(Cow::Borrowed(text)),
        _ if text.is_empty() => return Ok(None),
        Some(FieldType::Boolean) => {
            let boolean = boolean(text).ok_or_else(|| format!("must be true or false, not {text:?}"))?;
            Value::Bool(boolean)
        }
        Some(FieldType::Number) => match number(text) {
            Some(number) => Value::Number(checked(number, text)?),
            None => return Err(format!("must be a number, not {text:?}")),
        },
        None if text == "true" || text == "false" => Value::Bool(text == "true"),
        None => match number(text) {
            Some(number) => Value::Number(checked(number, text)?),
            None => Value::Text(Cow::Borrowed(text)),
        },
    };
    Ok(Some(value))
}

/// The number that characters are: digits with a sign, a point and an exponent as far as Rust reads them, but no names. It
/// is infinite beyond the range of doubles.
fn number(text: &str) -> Option<f64> {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    text.parse().ok().filter(|_| text.bytes().all(is_of_number))
}

/// Whether characters are a number, as [`number`] reads it.
fn is_number(text: &str) -> bool {
    let is_integer = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_integer || number(text).is_some()
}

/// The number that a text is, if it is finite.
fn finite(text: &str) -> Result<f64, String> {
    checked(text.parse().unwrap_or(f64::NAN), text)
}

/// The number itself, if it is finite.
fn checked(number: f64, text: &str) -> Result<f64, String> {
    match number.is_finite() {
        true => Ok(number),
        false => Err(format!("{text} is no number of 64 bits")),
    }
}

/// A time of so many units since 1970, exactly as it is spelled, in nanoseconds.
fn epoch(text: &str, EpochUnit(unit_ns): EpochUnit) -> Result<i64, String> {
    let out_of_range = || "its time is not within the years 1678 to 2261".to_owned();
    if let Ok(whole) = text.parse::<i64>() {
        return whole.checked_mul(unit_ns).ok_or_else(out_of_range);
    }
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.contains(['e', 'E']) {
        // Programs write large numbers so. A double has the microsecond of today.
        let ns = finite(text)? * unit_ns as f64;
        return match ns.abs() < i64::MAX as f64 {
            true => Ok(ns as i64),
            false => Err(out_of_range()),
        };
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut ns: i64 = match whole {
        "" => 0,
        whole => whole.parse::<i64>().map_err(|_| out_of_range())?,
    };
    ns = ns.checked_mul(unit_ns).ok_or_else(out_of_range)?;
    let mut place_ns = unit_ns;
    for digit in fraction.bytes() {
        place_ns /= 10;
        ns = ns
            .checked_add(place_ns * i64::from(digit - b'0'))
            .ok_or_else(out_of_range)?;
    }
    Ok(if is_negative { -ns } else { ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: EpochUnit = EpochUnit(1_000_000_000);

    #[test]
    fn epochs_are_read_as_they_are_spelled() {
        for (text, unit_ns, ns) in [
            ("0", 1, 0),
            ("1700000000", 1_000_000_000, 1_700_000_000_000_000_000),
            ("1700000000.123456789", 1_000_000_000, 1_700_000_000_123_456_789),
            ("1700000000.1234567891", 1_000_000_000, 1_700_000_000_123_456_789),
            ("-1.5", 1_000_000_000, -1_500_000_000),
            ("1700000000123", 1_000_000, 1_700_000_000_123_000_000),
            ("1.7e9", 1_000_000_000, 1_700_000_000_000_000_000),
            ("5.9", 1, 5),
        ] {
            assert_eq!(epoch(text, EpochUnit(unit_ns)), Ok(ns), "{text}");
        }
        for text in ["9223372037", "1e300", "99999999999999999999"] {
            assert!(epoch(text, SECOND).is_err(), "{text}");
        }
    }

    #[test]
    fn characters_become_what_the_schema_says_or_what_they_look_like() {
        let number = |number| Ok(Some(Value::Number(number)));
        let text = |text| Ok(Some(Value::Text(Cow::Borrowed(text))));
        assert_eq!(untyped("12", None), number(12.0));
        assert_eq!(untyped("-1.5e3", None), number(-1_500.0));
        assert_eq!(untyped("true", None), Ok(Some(Value::Bool(true))));
        for word in ["nan", "inf", "1,5", "12 ", "True", "-", "e"] {
            assert_eq!(untyped(word, None), text(word));
        }
        assert_eq!(untyped("", None), Ok(None));
        assert_eq!(untyped("", Some(FieldType::Number)), Ok(None));
        assert_eq!(untyped("", Some(FieldType::String)), text(""));
        assert_eq!(untyped("12", Some(FieldType::String)), text("12"));
        assert_eq!(
            untyped("TRUE", Some(FieldType::Boolean)),
            Ok(Some(Value::Bool(true)))
        );
        assert!(untyped("1", Some(FieldType::Boolean)).is_err());
        assert!(untyped("n/a", Some(FieldType::Number)).is_err());
        assert!(untyped("1e999", None).is_err());
    }
}
