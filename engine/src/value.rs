//! Values of rows that outlive these, and the first and the last of several.

use std::sync::Arc;

use crate::rows::Scalar;

/// A value that is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A double.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// A text.
    Text(Arc<str>),
}

/// The first and the last value, with their positions among all rows of the bucket: timestamp and sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Ends {
    /// The first one.
    pub first: ((i64, u64), Value),
    /// The last one.
    pub last: ((i64, u64), Value),
}

impl Value {
    /// A copy of a value in a row.
    pub(crate) fn of(scalar: Scalar<'_>) -> Self {
        match scalar {
            Scalar::Number(number) => Value::Number(number),
            Scalar::Boolean(boolean) => Value::Boolean(boolean),
            Scalar::Text(text) => Value::Text(text.into()),
        }
    }

    /// Whether both have the same bits.
    pub(crate) fn is_same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Number(one), Value::Number(other)) => one.to_bits() == other.to_bits(),
            (one, other) => one == other,
        }
    }

    /// Memory of a text, in bytes.
    pub fn text_bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Number(_) | Value::Boolean(_) => 0,
        }
    }
}

impl Ends {
    /// The first and last value of both.
    pub fn absorb(&mut self, others: Ends) {
        if others.first.0 < self.first.0 {
            self.first = others.first;
        }
        if others.last.0 > self.last.0 {
            self.last = others.last;
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.first.1.text_bytes() + self.last.1.text_bytes()
    }

    /// The difference of last and first number.
    pub fn delta(&self) -> Option<f64> {
        match (&self.first.1, &self.last.1) {
            (Value::Number(first), Value::Number(last)) => Some(within_doubles(last - first)),
            _ => None,
        }
    }
}

/// JSON has no infinity.
pub(crate) fn within_doubles(value: f64) -> f64 {
    value.clamp(f64::MIN, f64::MAX)
}
