//! Evaluation: every expression once, for all steps together.
//!
//! An instant query is a range query with one step. The value of an expression is a number per step or rows: series with
//! a value, or none, per step. Each file of this room evaluates one kind of expression.

mod aggregate;
mod arithmetic;
mod binary;
mod budget;
mod calls;
mod histograms;
mod info;
mod invariant;
mod labelling;
mod matching;
mod ranked;
mod result;
mod rows;
mod selectors;
mod steps;

use budget::Budget;
use rows::{Equal, Merger, Row, Rows};
use steps::Steps;

use crate::error::Error;
use crate::expr::{Expr, Type};
use crate::options::{Limits, Options};
use crate::storage::Storage;
use crate::value::Value;

/// The latest instant that may be asked about, in milliseconds: sums of such times do not overflow.
const TIME_MS_MAX: i64 = 1 << 52;

/// The value of an expression.
enum Evaluated<'a> {
    /// A number per step.
    Scalar(Vec<f64>),
    String(String),
    Rows(Rows<'a>),
}

/// Answers a question about one instant.
pub(crate) fn instant(
    expr: &Expr,
    storage: &dyn Storage,
    time_ms: i64,
    options: &Options,
    limits: Limits<'_>,
) -> Result<Value, Error> {
    let budget = Budget::new(limits);
    let steps = checked_steps(time_ms, time_ms, 1)?;
    let evaluation = Evaluation::new(storage, options, &budget, time_ms, time_ms, 0);
    let prepared = invariant::prepared(expr, time_ms, time_ms);
    if prepared.value_type() == Type::Matrix {
        return evaluation.raw(prepared.bare(), steps);
    }
    let value = evaluation.eval(&prepared, steps)?;
    result::instant(value, prepared.bare(), time_ms)
}

/// Answers a question about the instants from a start to an end.
pub(crate) fn range(
    expr: &Expr,
    storage: &dyn Storage,
    (start_ms, end_ms, step_ms): (i64, i64, i64),
    options: &Options,
    limits: Limits<'_>,
) -> Result<Value, Error> {
    if end_ms < start_ms {
        return Err(Error::bad_data("end timestamp must not be before start time"));
    }
    if step_ms <= 0 {
        return Err(Error::bad_data(
            "zero or negative query resolution step widths are not accepted. Try a positive integer",
        ));
    }
    if !matches!(expr.value_type(), Type::Scalar | Type::Vector) {
        return Err(Error::bad_data(
            "invalid expression type for range query, must be Scalar or instant Vector",
        ));
    }
    let budget = Budget::new(limits);
    let steps = checked_steps(start_ms, end_ms, step_ms)?;
    let evaluation = Evaluation::new(storage, options, &budget, start_ms, end_ms, step_ms);
    let prepared = invariant::prepared(expr, start_ms, end_ms);
    let value = evaluation.eval(&prepared, steps)?;
    result::range(value, steps, &budget)
}

fn checked_steps(start_ms: i64, end_ms: i64, step_ms: i64) -> Result<Steps, Error> {
    let is_far = |ms: i64| ms.unsigned_abs() > TIME_MS_MAX.unsigned_abs();
    if is_far(start_ms) || is_far(end_ms) || is_far(step_ms) {
        return Err(Error::bad_data("a time or the step is out of range"));
    }
    Ok(Steps::new(start_ms, end_ms, step_ms))
}

/// What the evaluation of one question has at hand.
struct Evaluation<'a> {
    storage: &'a dyn Storage,
    options: &'a Options,
    budget: &'a Budget<'a>,
    start_ms: i64,
    end_ms: i64,
    /// 0 for an instant query.
    step_ms: i64,
}

impl<'a> Evaluation<'a> {
    fn new(
        storage: &'a dyn Storage,
        options: &'a Options,
        budget: &'a Budget<'a>,
        start_ms: i64,
        end_ms: i64,
        step_ms: i64,
    ) -> Evaluation<'a> {
        Evaluation {
            storage,
            options,
            budget,
            start_ms,
            end_ms,
            step_ms,
        }
    }

    fn eval(&self, expr: &Expr, steps: Steps) -> Result<Evaluated<'a>, Error> {
        self.budget.check_time()?;
        match expr {
            Expr::Number(number) => self.constant(*number, steps).map(Evaluated::Scalar),
            Expr::String(string) => Ok(Evaluated::String(string.clone())),
            Expr::Selector(selector) => self
                .selected(selector, steps, selectors::Wanted::Value)
                .map(Evaluated::Rows),
            Expr::Call(call) => self.call(call, steps),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate, steps).map(Evaluated::Rows),
            Expr::Binary(binary) => self.binary(binary, steps),
            Expr::Negation(inner) => self.negation(inner, steps),
            Expr::Invariant(inner) => self.once(inner, steps),
            Expr::Range(_) | Expr::Subquery(_) => {
                Err(Error::bad_data("a range vector stands where it may not"))
            }
        }
    }

    /// The value of an expression of instant vectors.
    fn rows(&self, expr: &Expr, steps: Steps) -> Result<Rows<'a>, Error> {
        match self.eval(expr, steps)? {
            Evaluated::Rows(rows) => Ok(rows),
            Evaluated::Scalar(_) | Evaluated::String(_) => Err(Error::bad_data("expected an instant vector")),
        }
    }

    /// The value of an expression of numbers.
    fn scalar(&self, expr: &Expr, steps: Steps) -> Result<Vec<f64>, Error> {
        match self.eval(expr, steps)? {
            Evaluated::Scalar(values) => Ok(values),
            Evaluated::Rows(_) | Evaluated::String(_) => Err(Error::bad_data("expected a scalar")),
        }
    }

    fn constant(&self, number: f64, steps: Steps) -> Result<Vec<f64>, Error> {
        self.check_steps(steps)?;
        Ok(vec![number; steps.count])
    }

    /// An error when a value per step does not fit: a subquery may have any number of steps.
    fn check_steps(&self, steps: Steps) -> Result<(), Error> {
        self.budget
            .check_room(steps.count.saturating_mul(size_of::<f64>()))
    }

    /// Evaluates at the first step, for all steps.
    fn once(&self, expr: &Expr, steps: Steps) -> Result<Evaluated<'a>, Error> {
        let value = self.eval(expr, steps.first())?;
        if steps.count <= 1 {
            return Ok(value);
        }
        self.check_steps(steps)?;
        match value {
            Evaluated::String(_) => Ok(value),
            Evaluated::Scalar(values) => Ok(Evaluated::Scalar(vec![values[0]; steps.count])),
            Evaluated::Rows(rows) => {
                let (rows, _charge) = rows.take();
                let mut repeated = Rows::new(self.budget);
                for row in rows {
                    self.check_steps(steps)?;
                    repeated.push(Row {
                        values: vec![row.values[0]; steps.count],
                        ..row
                    })?;
                }
                Ok(Evaluated::Rows(repeated))
            }
        }
    }

    fn negation(&self, inner: &Expr, steps: Steps) -> Result<Evaluated<'a>, Error> {
        match self.eval(inner, steps)? {
            Evaluated::Scalar(values) => Ok(Evaluated::Scalar(
                values.into_iter().map(|value| -value).collect(),
            )),
            Evaluated::Rows(rows) => {
                let negated = self.mapped(rows, Equal::Refused, |_, value| Some(-value))?;
                Ok(Evaluated::Rows(negated))
            }
            Evaluated::String(_) => Err(Error::bad_data("a string cannot be negated")),
        }
    }

    /// Rows without their metrics' names and with other values.
    fn mapped(
        &self,
        rows: Rows<'a>,
        equal: Equal,
        value: impl Fn(usize, f64) -> Option<f64>,
    ) -> Result<Rows<'a>, Error> {
        let (rows, _charge) = rows.take();
        let mut merger = Merger::new(self.budget, equal);
        for row in rows {
            self.budget.check_time()?;
            let labels = row.labels.without_name();
            if let Some(row) = row.map(labels, &value) {
                merger.add(row)?;
            }
        }
        Ok(merger.finish())
    }
}
