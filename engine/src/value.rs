//! Values of rows that outlive these, and the first and the last of several.

use std::sync::Arc;

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
