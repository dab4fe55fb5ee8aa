//! `change`: the difference of the window's last number from a reference.

use serde_json::json;

use super::parameters::{Parameters, missing};
use super::row::nothing_to_judge;
use super::{Alert, Finding, Judge, Outcome, Row, Window, number};

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
#[derive(Clone, Copy, Debug)]
pub struct Change {
    direction: Direction,
    by: f64,
    percent: bool,
    from: From,
}

impl Change {
    pub fn read(parameters: &mut Parameters<'_>) -> Result<Self, String> {
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
                "nothing lies above the max or below the min: parameter `from` contradicts \
                        `direction`"
                    .to_owned(),
            );
        }
        Ok(Self {
            direction,
            by,
            percent,
            from,
        })
    }

    pub fn judge(self) -> ChangeJudge {
        ChangeJudge {
            change: self,
            rows: 0,
            numbers: 0,
            reference: None,
            last: None,
        }
    }
}

pub struct ChangeJudge {
    change: Change,
    rows: u64,
    numbers: u64,
    reference: Option<(f64, String)>,
    last: Option<(f64, Row)>,
}

impl Judge for ChangeJudge {
    fn see(&mut self, row: Row) {
        self.rows += 1;
        let Some(value) = row.number() else { return };
        self.numbers += 1;
        let replaces = match (&self.reference, self.change.from) {
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

    fn conclude(self: Box<Self>, _: &Window) -> Finding {
        let (Some((reference, since)), Some((last, row))) = (self.reference, self.last) else {
            return Finding::inconclusive(nothing_to_judge(self.rows, "number"));
        };
        if self.numbers < 2 {
            return Finding::inconclusive("one number alone shows no change");
        }
        let Change {
            direction,
            by,
            percent,
            ..
        } = self.change;
        let difference = last - reference;
        let amount = match (percent, reference == 0.0) {
            (false, _) => difference,
            (true, false) => difference / reference.abs() * 100.0,
            (true, true) if difference == 0.0 => 0.0,
            (true, true) => return Finding::inconclusive("there are no percent of a reference of 0"),
        };
        let met = match direction {
            Direction::Increase => amount >= by,
            Direction::Decrease => amount <= -by,
            Direction::Any => amount.abs() >= by,
        };
        let alert = Alert {
            current_value: number(last),
            threshold: number(by),
            operator: match (direction, amount >= 0.0) {
                (Direction::Increase, _) | (Direction::Any, true) => "increases_by",
                (Direction::Decrease, _) | (Direction::Any, false) => "decreases_by",
            },
        };
        Finding {
            row: Some(row),
            alert: met.then_some(alert),
            ..Finding::of(Outcome::of(met))
        }
        .with("from", json!({"timestamp": since, "value": number(reference)}))
        .with(if percent { "changePercent" } else { "change" }, number(amount))
    }
}
