//! Calls of functions.

use super::selectors::Wanted;
use super::steps::Steps;
use super::{Equal, Evaluated, Evaluation, Merger, Row, Rows};
use crate::error::Error;
use crate::expr::{Call, Expr};
use crate::functions::map::Map;
use crate::functions::over::Over;
use crate::functions::{Function, Order, natural};
use crate::labels::{Labels, METRIC_NAME};
use crate::matcher::{MatchOp, Matcher};
use crate::storage::STALE_MARKER;

impl<'a> Evaluation<'a> {
    pub(super) fn call(&self, call: &Call, steps: Steps) -> Result<Evaluated<'a>, Error> {
        let args = &call.args[..];
        let rows = match (call.function, args) {
            (Function::Over(over), _) => self.over_call_of(over, args, steps)?,
            (Function::Map(map), [vector, numbers @ ..]) => self.map(map, vector, numbers, steps)?,
            (Function::Calendar(part), []) => {
                let seconds = self.times(steps)?;
                let values: Vec<f64> = seconds
                    .into_iter()
                    .map(|seconds| part.of(seconds.floor()))
                    .collect();
                self.single(Labels::empty(), &values)?
            }
            (Function::Calendar(part), [vector, ..]) => {
                let rows = self.rows(vector, steps)?;
                self.mapped(rows, Equal::Merged, |_, value| Some(part.of(value)))?
            }
            (Function::Absent, [vector, ..]) => {
                let rows = self.rows(vector, steps)?;
                self.absent(&rows, vector, steps)?
            }
            (Function::AbsentOverTime, [range, ..]) => {
                let rows = self.over(Over::Present, range, &[], steps)?;
                self.absent(&rows, range, steps)?
            }
            (Function::Vector, [number, ..]) => {
                let values = self.scalar(number, steps)?;
                self.single(Labels::empty(), &values)?
            }
            (Function::Timestamp, [vector, ..]) => self.timestamp(vector, steps)?,
            (Function::Sort(order), [vector, ..]) => self.sort(vector, order, steps)?,
            (Function::SortByLabel(order), [vector, names @ ..]) => {
                self.sort_by_label(vector, names, order, steps)?
            }
            (Function::LabelReplace, _) => self.label_replace(args, steps)?,
            (Function::LabelJoin, _) => self.label_join(args, steps)?,
            (Function::HistogramQuantile, [q, vector, ..]) => self.histogram_quantile(q, vector, steps)?,
            (Function::HistogramQuantiles, [vector, label, numbers @ ..]) => {
                self.histogram_quantiles(vector, label, numbers, steps)?
            }
            (Function::HistogramFraction, [lower, upper, vector, ..]) => {
                self.histogram_fraction(lower, upper, vector, steps)?
            }
            (Function::NativeHistogram, [vector, ..]) => {
                self.rows(vector, steps)?;
                Rows::new(self.budget)
            }
            (Function::Info, [vector, labels @ ..]) => self.info(vector, labels.first(), steps)?,
            _ => return self.number(call.function, args, steps).map(Evaluated::Scalar),
        };
        Ok(Evaluated::Rows(rows))
    }

    /// The functions whose value is a number.
    fn number(&self, function: Function, args: &[Expr], steps: Steps) -> Result<Vec<f64>, Error> {
        match (function, args) {
            (Function::Time, _) => self.times(steps),
            (Function::Pi, _) => self.constant(std::f64::consts::PI, steps),
            (Function::Scalar, [vector, ..]) => self.scalar_of(vector, steps),
            (Function::QueryStart, _) => self.constant(self.start_ms as f64 / 1000.0, steps),
            (Function::QueryEnd, _) => self.constant(self.end_ms as f64 / 1000.0, steps),
            (Function::QueryRange, _) => self.constant((self.end_ms - self.start_ms) as f64 / 1000.0, steps),
            (Function::QueryStep, _) => self.constant(self.step_ms as f64 / 1000.0, steps),
            (Function::MinOf, [left, right, ..]) => self.zipped(left, right, steps, |left, right| {
                if right < left || left.is_nan() {
                    right
                } else {
                    left
                }
            }),
            (Function::MaxOf, [left, right, ..]) => self.zipped(left, right, steps, |left, right| {
                if right > left || left.is_nan() {
                    right
                } else {
                    left
                }
            }),
            _ => Err(Error::bad_data("a function has the wrong number of arguments")),
        }
    }

    fn zipped(
        &self,
        left: &Expr,
        right: &Expr,
        steps: Steps,
        value: impl Fn(f64, f64) -> f64,
    ) -> Result<Vec<f64>, Error> {
        let (left, right) = (self.scalar(left, steps)?, self.scalar(right, steps)?);
        Ok(left
            .into_iter()
            .zip(right)
            .map(|(left, right)| value(left, right))
            .collect())
    }

    /// The instants of the steps, in seconds.
    fn times(&self, steps: Steps) -> Result<Vec<f64>, Error> {
        self.check_steps(steps)?;
        Ok((0..steps.count)
            .map(|step| steps.time_ms(step) as f64 / 1000.0)
            .collect())
    }

    /// One row of the given values, or none when there is no value.
    fn single(&self, labels: Labels, values: &[f64]) -> Result<Rows<'a>, Error> {
        let mut rows = Rows::new(self.budget);
        if let Some(row) = Row::new(labels, values) {
            rows.push(row)?;
        }
        Ok(rows)
    }

    fn over_call_of(&self, over: Over, args: &[Expr], steps: Steps) -> Result<Rows<'a>, Error> {
        let mut params = Vec::new();
        let mut range = None;
        for (index, arg) in args.iter().enumerate() {
            if index == over.range_argument() {
                range = Some(arg);
            } else {
                params.push(self.scalar(arg, steps)?);
            }
        }
        let Some(range) = range else {
            return Err(Error::bad_data("a function over a range has no range"));
        };
        let rows = self.over(over, range, &params, steps)?;
        if over.keeps_name() {
            return Ok(rows);
        }
        let (rows, _charge) = rows.take();
        let mut merger = Merger::new(self.budget, Equal::Refused);
        for row in rows {
            merger.add(Row {
                labels: row.labels.without_name(),
                ..row
            })?;
        }
        Ok(merger.finish())
    }

    fn map(&self, map: Map, vector: &Expr, numbers: &[Expr], steps: Steps) -> Result<Rows<'a>, Error> {
        let rows = self.rows(vector, steps)?;
        let numbers = numbers
            .iter()
            .map(|number| self.scalar(number, steps))
            .collect::<Result<Vec<_>, _>>()?;
        self.mapped(rows, Equal::Merged, |step, value| {
            // No function of this kind has more than two further arguments.
            let mut args = [f64::NAN; 2];
            for (arg, values) in args.iter_mut().zip(&numbers) {
                *arg = values[step];
            }
            map.apply(value, &args[..numbers.len().min(args.len())])
        })
    }

    /// The value of the only series of each step, NaN where there is none or more than one.
    fn scalar_of(&self, vector: &Expr, steps: Steps) -> Result<Vec<f64>, Error> {
        let rows = self.rows(vector, steps)?;
        let mut counts = vec![0_usize; steps.count];
        let mut values = self.constant(f64::NAN, steps)?;
        for row in rows.iter() {
            for (step, value) in row.present() {
                counts[step] += 1;
                values[step] = if counts[step] == 1 { value } else { f64::NAN };
            }
        }
        Ok(values)
    }

    /// 1 at the steps at which no row has a value, with the labels that the selector demands.
    fn absent(&self, rows: &Rows<'a>, selected: &Expr, steps: Steps) -> Result<Rows<'a>, Error> {
        let mut values = self.constant(1.0, steps)?;
        for row in rows.iter() {
            for (step, _) in row.present() {
                values[step] = STALE_MARKER;
            }
        }
        self.single(demanded_labels(selected), &values)
    }

    /// The time of the sample of a selector, else the time of the step.
    fn timestamp(&self, vector: &Expr, steps: Steps) -> Result<Rows<'a>, Error> {
        let Expr::Selector(selector) = vector.bare() else {
            let rows = self.rows(vector, steps)?;
            return self.mapped(rows, Equal::Merged, |step, _| {
                Some(steps.time_ms(step) as f64 / 1000.0)
            });
        };
        let rows = self.selected(selector, steps, Wanted::Time)?;
        self.mapped(rows, Equal::Merged, |_, time| Some(time))
    }

    /// By the value of the first step: only answers about one instant have an order. NaN comes last.
    fn sort(&self, vector: &Expr, order: Order, steps: Steps) -> Result<Rows<'a>, Error> {
        let mut rows = self.rows(vector, steps)?;
        rows.sort_by_labels();
        rows.sort_by(|left, right| {
            let (left, right) = (left.values[0], right.values[0]);
            let by_value = match order {
                Order::Ascending => left.partial_cmp(&right),
                Order::Descending => right.partial_cmp(&left),
            };
            by_value.unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
        });
        Ok(rows)
    }

    fn sort_by_label(
        &self,
        vector: &Expr,
        names: &[Expr],
        order: Order,
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        let mut rows = self.rows(vector, steps)?;
        let names = names
            .iter()
            .map(|name| self.string(name))
            .collect::<Result<Vec<_>, _>>()?;
        rows.sort_by(|left, right| {
            let by_name = |name: &String| natural::compare(left.labels.get(name), right.labels.get(name));
            let by_names = names.iter().map(by_name).find(|order| order.is_ne());
            let ascending = by_names.unwrap_or_else(|| left.labels.cmp(&right.labels));
            match order {
                Order::Ascending => ascending,
                Order::Descending => ascending.reverse(),
            }
        });
        Ok(rows)
    }

    /// A text as argument.
    pub(super) fn string(&self, expr: &Expr) -> Result<String, Error> {
        match expr.bare() {
            Expr::String(string) => Ok(string.clone()),
            _ => Err(Error::bad_data("expected a string")),
        }
    }
}

/// The labels that a selector demands to be equal to a value; those it names more than once are left out.
fn demanded_labels(selected: &Expr) -> Labels {
    let matchers: &[Matcher] = match selected.bare() {
        Expr::Selector(selector) => &selector.matchers,
        Expr::Range(range) => &range.selector.matchers,
        _ => &[],
    };
    let mut labels = Labels::empty();
    let mut demanded: Vec<&str> = Vec::new();
    for matcher in matchers.iter().filter(|matcher| matcher.name() != METRIC_NAME) {
        let is_first = !demanded.contains(&matcher.name());
        if matcher.op() == MatchOp::Equal && is_first {
            labels = labels.with(matcher.name(), matcher.value());
            demanded.push(matcher.name());
        } else {
            labels = labels.with(matcher.name(), "");
        }
    }
    labels
}
