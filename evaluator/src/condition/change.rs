//! `change`: the difference of the window's last number from a reference.

use serde_json::json;

use super::parameters::{Parameters, missing};
use super::row::no_value;
use super::{Alert, Finding, Row, number};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Increase,
    Decrease,
    Any,
}

/// The reference that the last number is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    First,
    Min,
    Max,
}

/// Parameters `direction`, `by`, `percent`, `from`. Met if the last number differs from the reference by at least `by`
/// in the given direction; with `percent`, by at least `by` percent of the reference's absolute value.
#[derive(Clone, Debug)]
pub struct Change {
    direction: Direction,
    by: f64,
    percent: bool,
    from: From,
    numbers: u64,
    reference: Option<(f64, String)>,
    last: Option<(f64, Row)>,
}

impl Change {
    pub fn parse(parameters: &mut Parameters<'_>) -> Result<Self, String> {
        let directions = [
            ("increase", Direction::Increase),
            ("decrease", Direction::Decrease),
            ("any", Direction::Any),
        ];
        let direction = parameters
            .one_of("direction", &directions)?
            .ok_or_else(|| missing("direction"))?;
        let by = parameters.optional_positive("by")?.ok_or_else(|| missing("by"))?;
        let percent = parameters.optional_boolean("percent")?.unwrap_or(false);
        let words = [("first", From::First), ("min", From::Min), ("max", From::Max)];
        let from = parameters.one_of("from", &words)?.unwrap_or(From::First);
        if matches!(
            (direction, from),
            (Direction::Increase, From::Max) | (Direction::Decrease, From::Min)
        ) {
            return Err(
                "nothing lies above the max or below the min: parameter `from` contradicts `direction`"
                    .to_owned(),
            );
        }
        Ok(Self {
            direction,
            by,
            percent,
            from,
            numbers: 0,
            reference: None,
            last: None,
        })
    }

    pub fn add(&mut self, row: Row) {
        let Some(value) = row.number() else { return };
        self.numbers += 1;
        let replaces = match (&self.reference, self.from) {
            (None, _) => true,
            (Some(_), From::First) => false,
            (Some((reference, _)), From::Min) => value < *reference,
            (Some((reference, _)), From::Max) => value > *reference,
        };
        if replaces {
            self.reference = Some((value, row.timestamp.clone()));
        }
        self.last = Some((value, row));
    }

    pub fn finish(self, rows: u64) -> Finding {
        let (Some((reference, since)), Some((last, row))) = (self.reference, self.last) else {
            return Finding::inconclusive(no_value(rows, "number"));
        };
        if self.numbers < 2 {
            return Finding::inconclusive("one number alone shows no change");
        }
        let difference = last - reference;
        let amount = match (self.percent, reference == 0.0) {
            (false, _) => difference,
            (true, false) => difference / reference.abs() * 100.0,
            (true, true) if difference == 0.0 => 0.0,
            (true, true) => return Finding::inconclusive("there are no percent of a reference of 0"),
        };
        let met = match self.direction {
            Direction::Increase => amount >= self.by,
            Direction::Decrease => amount <= -self.by,
            Direction::Any => amount.abs() >= self.by,
        };
        let alert = Alert {
            current_value: number(last),
            threshold: number(self.by),
            operator: match (self.direction, amount >= 0.0) {
                (Direction::Increase, _) | (Direction::Any, true) => "increases_by",
                (Direction::Decrease, _) | (Direction::Any, false) => "decreases_by",
            },
        };
        Finding::decided(met, row, Some(alert))
            .with("from", json!({"timestamp": since, "value": number(reference)}))
            .with(
                if self.percent { "changePercent" } else { "change" },
                number(amount),
            )
    }
}
