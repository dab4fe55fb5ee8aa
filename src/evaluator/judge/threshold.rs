//! `threshold`: a value compared with a constant.

use super::matching::{Match, Matching, Test};
use super::parameters::{Parameters, missing};
use super::{Alert, Scalar};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Gt,
    Gte,
    Lt,
    Lte,
    Eq,
    Neq,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("gt", Operator::Gt),
    ("gte", Operator::Gte),
    ("lt", Operator::Lt),
    ("lte", Operator::Lte),
    ("eq", Operator::Eq),
    ("neq", Operator::Neq),
];

/// Parameters `operator`, `value`, `match`, `minCount`. Strings and booleans support only `eq` and `neq`.
#[derive(Clone, Debug)]
pub struct Threshold {
    operator: Operator,
    value: Scalar,
    rule: Match,
}

impl Threshold {
    pub fn read(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        let operator = parameters
            .one_of("operator", &OPERATORS)?
            .ok_or_else(|| missing("operator"))?;
        let value = parameters.optional("value").ok_or_else(|| missing("value"))?;
        let value = Scalar::of(value.clone())
            .ok_or_else(|| "parameter `value` must be a number, string or boolean".to_owned())?;
        if !matches!(
            (operator, &value),
            (Operator::Eq | Operator::Neq, _) | (_, Scalar::Number(_))
        ) {
            return Err(format!(
                "a {} is compared by eq or neq, only numbers have an order",
                value.type_name()
            ));
        }
        let rule = Match::read(parameters)?;
        Ok(Self {
            operator,
            value,
            rule,
        })
    }

    pub fn judge(self) -> Matching<Self> {
        let rule = self.rule;
        Matching::new(self, rule)
    }
}

impl Test for Threshold {
    fn wanted(&self) -> &'static str {
        self.value.type_name()
    }

    fn passes(&self, value: &Scalar) -> Option<bool> {
        let equal = match (value, &self.value) {
            (Scalar::Number(value), Scalar::Number(limit)) => {
                return Some(match self.operator {
                    Operator::Gt => value > limit,
                    Operator::Gte => value >= limit,
                    Operator::Lt => value < limit,
                    Operator::Lte => value <= limit,
                    Operator::Eq => value == limit,
                    Operator::Neq => value != limit,
                });
            }
            (Scalar::Text(value), Scalar::Text(limit)) => value == limit,
            (Scalar::Boolean(value), Scalar::Boolean(limit)) => value == limit,
            _ => return None,
        };
        Some(equal == (self.operator == Operator::Eq))
    }

    fn alert(&self, value: &Scalar) -> Alert {
        let name = OPERATORS.iter().find(|(_, operator)| *operator == self.operator);
        Alert {
            current_value: value.to_value(),
            threshold: self.value.to_value(),
            operator: name.map_or("", |(name, _)| name),
        }
    }
}
