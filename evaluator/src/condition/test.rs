//! The tests of single values: `threshold` compares a value with a constant, `range` a number with two bounds.

use std::cmp::Ordering;

use serde_json::json;

use super::parameters::{Parameters, missing};
use super::{Alert, Scalar, number};

/// The name of a comparison, and whether it holds for the order of value and constant.
type Operator = (&'static str, fn(Ordering) -> bool);

const OPERATORS: [Operator; 6] = [
    ("gt", Ordering::is_gt),
    ("gte", Ordering::is_ge),
    ("lt", Ordering::is_lt),
    ("lte", Ordering::is_le),
    ("eq", Ordering::is_eq),
    ("neq", Ordering::is_ne),
];

/// A test of a row's value.
#[derive(Clone, Debug)]
pub enum Test {
    /// Parameters `operator`, `value`. Strings and booleans support only `eq` and `neq`.
    Threshold { operator: Operator, limit: Scalar },
    /// Parameters `low`, `high`, `inside`. The bounds themselves are inside.
    Range { low: f64, high: f64, inside: bool },
}

impl Test {
    pub fn parse_threshold(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        let operators = OPERATORS.map(|operator| (operator.0, operator));
        let operator = parameters
            .one_of("operator", &operators)?
            .ok_or_else(|| missing("operator"))?;
        let limit = parameters.optional("value").ok_or_else(|| missing("value"))?;
        let limit = Scalar::of(limit.clone())
            .ok_or_else(|| "parameter `value` must be a number, string or boolean".to_owned())?;
        if !matches!(limit, Scalar::Number(_)) && !matches!(operator.0, "eq" | "neq") {
            return Err(format!(
                "a {} is compared by eq or neq, only numbers have an order",
                limit.type_name()
            ));
        }
        Ok(Self::Threshold { operator, limit })
    }

    pub fn parse_range(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        let (low, high) = (parameters.number("low")?, parameters.number("high")?);
        if low > high {
            return Err("parameter `low` must not be above `high`".to_owned());
        }
        let inside = parameters.optional_boolean("inside")?.unwrap_or(false);
        Ok(Self::Range { low, high, inside })
    }

    /// The type of value that can be tested.
    pub fn value_type(&self) -> &'static str {
        match self {
            Self::Threshold { limit, .. } => limit.type_name(),
            Self::Range { .. } => "number",
        }
    }

    /// Whether the value passes; `None` if it has another type.
    pub fn passes(&self, value: &Scalar) -> Option<bool> {
        if value.type_name() != self.value_type() {
            return None;
        }
        match (self, value) {
            (Self::Threshold { operator, limit }, _) => {
                let (_, holds) = operator;
                value.partial_cmp(limit).map(holds)
            }
            (Self::Range { low, high, inside }, Scalar::Number(value)) => {
                Some((low..=high).contains(&value) == *inside)
            }
            (Self::Range { .. }, _) => None,
        }
    }

    /// The alert for a value that passed.
    pub fn alert(&self, value: &Scalar) -> Alert {
        let (operator, threshold) = match self {
            Self::Threshold { operator, limit } => (operator.0, limit.to_value()),
            Self::Range { low, high, inside } => {
                let operator = if *inside { "between" } else { "outside" };
                (operator, json!([number(*low), number(*high)]))
            }
        };
        Alert {
            current_value: value.to_value(),
            threshold,
            operator,
        }
    }
}
