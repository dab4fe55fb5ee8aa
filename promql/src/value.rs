//! What a question is answered with.

use crate::labels::Labels;

/// A value at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// Any number, NaN and the infinities included.
    pub value: f64,
}

/// One value of an instant vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The labels of its series.
    pub labels: Labels,
    /// The value, at the instant of the question.
    pub point: Point,
}

/// A series of values, in the order of time; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its labels.
    pub labels: Labels,
    /// Its values.
    pub points: Vec<Point>,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Scalar(Point),
    /// A text, at the instant of the question.
    String {
        /// Milliseconds since 1970.
        time_ms: i64,
        /// The text.
        text: String,
    },
    /// Values of one instant: behind `sort` and its relatives in their order, else by labels.
    Vector(Vec<Sample>),
    /// Series, by labels.
    Matrix(Vec<Series>),
}
