//! Binary operations by the types of their sides, and the set operators.

use std::collections::HashMap;

use super::steps::Steps;
use super::{Equal, Evaluated, Evaluation, Merger, Row, Rows, arithmetic};
use crate::error::Error;
use crate::expr::{Binary, BinaryOp};
use crate::labels::Labels;
use crate::options::Semantics;

impl<'a> Evaluation<'a> {
    pub(super) fn binary(&self, binary: &Binary, steps: Steps) -> Result<Evaluated<'a>, Error> {
        let left = self.eval(&binary.left, steps)?;
        let right = self.eval(&binary.right, steps)?;
        let rows = match (left, right) {
            (Evaluated::Scalar(left), Evaluated::Scalar(right)) => {
                let value = |(left, right)| match binary.op.is_comparison() {
                    true => arithmetic::apply_bool(binary.op, left, right),
                    false => arithmetic::apply(binary.op, left, right).unwrap_or(f64::NAN),
                };
                return Ok(Evaluated::Scalar(
                    left.into_iter().zip(right).map(value).collect(),
                ));
            }
            (Evaluated::Rows(rows), Evaluated::Scalar(numbers)) => {
                self.with_number(binary, rows, &numbers, false)?
            }
            (Evaluated::Scalar(numbers), Evaluated::Rows(rows)) => {
                self.with_number(binary, rows, &numbers, true)?
            }
            (Evaluated::Rows(left), Evaluated::Rows(right)) => match binary.op {
                BinaryOp::And => self.present_in_both(binary, left, right, steps, true)?,
                BinaryOp::Unless => self.present_in_both(binary, left, right, steps, false)?,
                BinaryOp::Or => self.either(binary, left, right, steps)?,
                _ => self.matched(binary, left, right, steps)?,
            },
            (Evaluated::String(_), _) | (_, Evaluated::String(_)) => {
                return Err(Error::bad_data("strings have no operators"));
            }
        };
        Ok(Evaluated::Rows(rows))
    }

    /// Whether the result is no longer a value of the metric, so that it has no name.
    pub(super) fn drops_name(&self, binary: &Binary) -> bool {
        match binary.op {
            // Prometheus 2 leaves the name, by mistake.
            BinaryOp::Atan2 => self.options.semantics == Semantics::V3,
            op => !op.is_comparison() || binary.returns_bool,
        }
    }

    fn with_number(
        &self,
        binary: &Binary,
        rows: Rows<'a>,
        numbers: &[f64],
        is_number_left: bool,
    ) -> Result<Rows<'a>, Error> {
        let op = binary.op;
        let (rows, _charge) = rows.take();
        let mut merger = Merger::new(self.budget, Equal::Merged);
        let drops_name = self.drops_name(binary);
        for row in rows {
            self.budget.check_time()?;
            let labels = if drops_name {
                row.labels.without_name()
            } else {
                row.labels.clone()
            };
            let row = row.map(labels, |step, value| {
                let (left, right) = if is_number_left {
                    (numbers[step], value)
                } else {
                    (value, numbers[step])
                };
                if binary.returns_bool {
                    return Some(arithmetic::apply_bool(op, left, right));
                }
                let result = arithmetic::apply(op, left, right);
                // What passes a comparison is the value of the series, on whichever side it stands.
                if op.is_comparison() {
                    result.map(|_| value)
                } else {
                    result
                }
            });
            if let Some(row) = row {
                merger.add(row)?;
            }
        }
        Ok(merger.finish())
    }

    /// `and` and `unless`: the left values at whose step a matching right one is, or is not.
    fn present_in_both(
        &self,
        binary: &Binary,
        left: Rows<'a>,
        right: Rows<'a>,
        steps: Steps,
        wanted: bool,
    ) -> Result<Rows<'a>, Error> {
        let present = self.presence(binary, &right, steps)?;
        let (left, _charge) = left.take();
        let mut kept = Rows::new(self.budget);
        for row in left {
            self.budget.check_time()?;
            let row = match present.get(&binary.matching.of_match(&row.labels)) {
                None if wanted => None,
                None => Some(row),
                Some(present) => {
                    let labels = row.labels.clone();
                    row.map(labels, |step, value| (present[step] == wanted).then_some(value))
                }
            };
            if let Some(row) = row {
                kept.push(row)?;
            }
        }
        Ok(kept)
    }

    /// `or`: the left values, and the right ones at whose step no matching left one is.
    fn either(
        &self,
        binary: &Binary,
        left: Rows<'a>,
        right: Rows<'a>,
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        let present = self.presence(binary, &left, steps)?;
        let mut merger = Merger::new(self.budget, Equal::Merged);
        let (left, _left_charge) = left.take();
        let (right, _right_charge) = right.take();
        for row in left {
            merger.add(row)?;
        }
        for row in right {
            self.budget.check_time()?;
            let labels = row.labels.clone();
            let row = match present.get(&binary.matching.of_match(&row.labels)) {
                None => Some(row),
                Some(present) => row.map(labels, |step, value| (!present[step]).then_some(value)),
            };
            if let Some(row) = row {
                merger.add(row)?;
            }
        }
        Ok(merger.finish())
    }

    /// By match, at which steps a row has a value.
    fn presence(
        &self,
        binary: &Binary,
        rows: &Rows<'a>,
        steps: Steps,
    ) -> Result<HashMap<Labels, Vec<bool>>, Error> {
        let mut charge = self.budget.charge();
        let mut present: HashMap<Labels, Vec<bool>> = HashMap::new();
        for row in rows.iter() {
            let signature = binary.matching.of_match(&row.labels);
            if !present.contains_key(&signature) {
                charge.add(steps.count + signature.bytes())?;
            }
            mark(
                row,
                present
                    .entry(signature)
                    .or_insert_with(|| vec![false; steps.count]),
            );
        }
        Ok(present)
    }
}

fn mark(row: &Row, present: &mut [bool]) {
    for (step, _) in row.present() {
        present[step] = true;
    }
}
