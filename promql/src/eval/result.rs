//! From values by step to answers.

use super::budget::Budget;
use super::steps::Steps;
use super::{Evaluated, Row};
use crate::error::Error;
use crate::expr::{Call, Expr};
use crate::functions::Function;
use crate::labels::Labels;
use crate::value::{Point, Sample, Series, Value};

/// The answer to a question about one instant.
pub(super) fn instant(value: Evaluated<'_>, expr: &Expr, time_ms: i64) -> Result<Value, Error> {
    match value {
        Evaluated::Scalar(values) => {
            let value = values.first().copied().unwrap_or(f64::NAN);
            Ok(Value::Scalar(Point { time_ms, value }))
        }
        Evaluated::String(text) => Ok(Value::String { time_ms, text }),
        Evaluated::Rows(rows) => {
            let (rows, _charge) = rows.take();
            let sample = |row: Row| Sample {
                point: Point {
                    time_ms,
                    value: row.values[0],
                },
                labels: row.labels,
            };
            let mut samples: Vec<Sample> = rows.into_iter().map(sample).collect();
            if !is_sorted(expr) {
                samples.sort_by(|left, right| left.labels.cmp(&right.labels));
            }
            refuse_equal_labels(samples.iter().map(|sample| &sample.labels))?;
            Ok(Value::Vector(samples))
        }
    }
}

/// The answer to a question about many instants.
pub(super) fn range(value: Evaluated<'_>, steps: Steps, budget: &Budget<'_>) -> Result<Value, Error> {
    let point = |(step, value)| Point {
        time_ms: steps.time_ms(step),
        value,
    };
    match value {
        Evaluated::Scalar(values) => {
            let points = values.into_iter().enumerate().map(point).collect();
            let labels = Labels::empty();
            Ok(Value::Matrix(vec![Series { labels, points }]))
        }
        Evaluated::String(_) => Err(Error::bad_data("invalid expression type for range query")),
        Evaluated::Rows(rows) => {
            let (rows, mut row_charge) = rows.take();
            let mut charge = budget.charge();
            let mut series = Vec::with_capacity(rows.len());
            for row in rows {
                row_charge.give_back(row.values.len() * size_of::<f64>());
                charge.add(row.values.len() * size_of::<Point>())?;
                let points: Vec<Point> = row.present().map(point).collect();
                series.push(Series {
                    labels: row.labels,
                    points,
                });
            }
            series.sort_by(|left, right| left.labels.cmp(&right.labels));
            refuse_equal_labels(series.iter().map(|series| &series.labels))?;
            Ok(Value::Matrix(series))
        }
    }
}

/// Whether an expression puts its values into an order that its reader wants.
fn is_sorted(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Call(Call {
            function: Function::Sort(_) | Function::SortByLabel(_),
            ..
        })
    )
}

/// Every operation that changes labels refuses equal ones; a storage that gives a series twice is found here.
fn refuse_equal_labels<'l>(labels: impl Iterator<Item = &'l Labels>) -> Result<(), Error> {
    let mut sorted: Vec<&Labels> = labels.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::execution(format!(
            "vector cannot contain metrics with the same labelset: {}",
            pair[0]
        ))),
        None => Ok(()),
    }
}
