//! `range`: a number outside or inside two bounds.

use serde_json::json;

use super::matching::{Match, Matching, Test};
use super::parameters::Parameters;
use super::{Alert, Scalar, number};

/// Parameters `low`, `high`, `inside`, `match`, `minCount`. The bounds themselves are inside.
#[derive(Clone, Debug)]
pub struct Range {
    low: f64,
    high: f64,
    inside: bool,
    rule: Match,
}

impl Range {
    pub fn read(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        let (low, high) = (parameters.number("low")?, parameters.number("high")?);
        if low > high {
            return Err("parameter `low` must not be above `high`".to_owned());
        }
        Ok(Self {
            low,
            high,
            inside: parameters.optional_boolean("inside")?.unwrap_or(false),
            rule: Match::read(parameters)?,
        })
    }

    pub fn judge(self) -> Matching<Self> {
        let rule = self.rule;
        Matching::new(self, rule)
    }
}

impl Test for Range {
    fn wanted(&self) -> &'static str {
        "number"
    }

    fn passes(&self, value: &Scalar) -> Option<bool> {
        match value {
            Scalar::Number(value) => Some((self.low..=self.high).contains(value) == self.inside),
            Scalar::Text(_) | Scalar::Boolean(_) => None,
        }
    }

    fn alert(&self, value: &Scalar) -> Alert {
        Alert {
            current_value: value.to_value(),
            threshold: json!([number(self.low), number(self.high)]),
            operator: if self.inside { "between" } else { "outside" },
        }
    }
}
