//! The values of one column in a batch.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, StringBuilder, TimestampNanosecondBuilder,
};
use arrow_schema::{DataType, Field, TimeUnit};

use crate::BATCH_ROWS_MAX;

/// The time zone of timestamps.
const UTC: &str = "UTC";

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nanoseconds since 1970, UTC.
    Timestamp,
    /// A double.
    Number,
    /// A boolean.
    Boolean,
    /// A text in UTF-8.
    Text,
}

/// What a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
    /// Whether a row may have none.
    pub is_nullable: bool,
    /// Whether nearly all values are different.
    pub is_distinct: bool,
}

impl ColumnSpec {
    pub(crate) fn field(&self) -> Field {
        let kind = match self.kind {
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            Kind::Number => DataType::Float64,
            Kind::Boolean => DataType::Boolean,
            Kind::Text => DataType::Utf8,
        };
        Field::new(&self.name, kind, self.is_nullable)
    }
}

/// Values of one type. A value of another type than that of the column becomes null.
pub struct Column(Values);

enum Values {
    Timestamps(TimestampNanosecondBuilder),
    Numbers(Float64Builder),
    Booleans(BooleanBuilder),
    Texts(StringBuilder),
}

impl Column {
    pub(crate) fn new(kind: Kind) -> Self {
        Column(match kind {
            Kind::Timestamp => {
                let builder = TimestampNanosecondBuilder::with_capacity(BATCH_ROWS_MAX);
                Values::Timestamps(builder.with_timezone(UTC))
            }
            Kind::Number => Values::Numbers(Float64Builder::with_capacity(BATCH_ROWS_MAX)),
            Kind::Boolean => Values::Booleans(BooleanBuilder::with_capacity(BATCH_ROWS_MAX)),
            Kind::Text => Values::Texts(StringBuilder::new()),
        })
    }

    /// Adds a time, in nanoseconds since 1970 UTC.
    pub fn push_timestamp(&mut self, ns: i64) {
        match &mut self.0 {
            Values::Timestamps(values) => values.append_value(ns),
            _ => self.push_null(),
        }
    }

    /// Adds a number.
    pub fn push_number(&mut self, number: f64) {
        match &mut self.0 {
            Values::Numbers(values) => values.append_value(number),
            _ => self.push_null(),
        }
    }

    /// Adds a boolean.
    pub fn push_boolean(&mut self, boolean: bool) {
        match &mut self.0 {
            Values::Booleans(values) => values.append_value(boolean),
            _ => self.push_null(),
        }
    }

    /// Adds a text.
    pub fn push_text(&mut self, text: &str) {
        match &mut self.0 {
            Values::Texts(values) => values.append_value(text),
            _ => self.push_null(),
        }
    }

    /// Adds no value.
    pub fn push_null(&mut self) {
        match &mut self.0 {
            Values::Timestamps(values) => values.append_null(),
            Values::Numbers(values) => values.append_null(),
            Values::Booleans(values) => values.append_null(),
            Values::Texts(values) => values.append_null(),
        }
    }

    /// Size of the values.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0 {
            Values::Timestamps(values) => values.len() * size_of::<i64>(),
            Values::Numbers(values) => values.len() * size_of::<f64>(),
            Values::Booleans(values) => values.len().div_ceil(8),
            Values::Texts(values) => values.values_slice().len() + values.len() * size_of::<i32>(),
        }
    }

    /// Takes the values.
    pub(crate) fn take(&mut self) -> ArrayRef {
        match &mut self.0 {
            Values::Timestamps(values) => Arc::new(values.finish()),
            Values::Numbers(values) => Arc::new(values.finish()),
            Values::Booleans(values) => Arc::new(values.finish()),
            Values::Texts(values) => Arc::new(values.finish()),
        }
    }
}
