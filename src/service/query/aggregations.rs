//! What a grouped query computes of each field.

use engine::Aggregate;

use crate::catalog::{FieldType, names};

/// An aggregation of the values of a field in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Mean of a number field.
    Avg,
    /// Sum of a number field.
    Sum,
    /// Minimum of a number field.
    Min,
    /// Maximum of a number field.
    Max,
    /// Number of values of any field.
    Count,
    /// Difference of maximum and minimum of a number field.
    Range,
}

names!(Aggregation: Avg => "avg", Sum => "sum", Min => "min", Max => "max", Count => "count", Range => "range");

impl Aggregation {
    /// Whether fields of this type have it.
    pub fn covers(self, kind: FieldType) -> bool {
        self == Aggregation::Count || kind == FieldType::Number
    }

    /// Its value.
    pub fn of(self, aggregate: &Aggregate) -> f64 {
        match self {
            Aggregation::Avg => aggregate.avg(),
            Aggregation::Sum => aggregate.sum(),
            Aggregation::Min => aggregate.min,
            Aggregation::Max => aggregate.max,
            Aggregation::Count => aggregate.count as f64,
            // JSON has no infinity.
            Aggregation::Range => (aggregate.max - aggregate.min).min(f64::MAX),
        }
    }
}

/// The aggregations of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregations {
    /// A single one: its value is that of the field.
    One(Aggregation),
    /// Several, without duplicates: the field has an object with the value of each.
    Several(Vec<Aggregation>),
}

impl Aggregations {
    /// All of them, in the order in which they were sent.
    pub fn all(&self) -> &[Aggregation] {
        match self {
            Aggregations::One(one) => std::slice::from_ref(one),
            Aggregations::Several(all) => all,
        }
    }

    /// Whether fields of this type have any of them.
    pub fn cover(&self, kind: FieldType) -> bool {
        self.all().iter().any(|aggregation| aggregation.covers(kind))
    }
}
