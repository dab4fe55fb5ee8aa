//! Aggregations that make one value of a group: `sum`, `avg`, `quantile`, `count_values` and the like.

use std::collections::HashMap;

use super::steps::Steps;
use super::{Equal, Evaluation, Merger, Row, Rows};
use crate::error::Error;
use crate::expr::{Aggregate, AggregateOp, Expr, Grouping};
use crate::functions::kahan::{Mean, Sum};
use crate::functions::statistics;
use crate::json;
use crate::labels::{Labels, METRIC_NAME};
use crate::storage::{STALE_MARKER, is_stale_marker};

/// The rows of a group, in their order, by position.
pub(super) struct Group {
    pub(super) labels: Labels,
    pub(super) members: Vec<usize>,
}

impl Grouping {
    /// The labels of the group of a series.
    pub(super) fn of(&self, labels: &Labels) -> Labels {
        match self {
            Grouping::By(names) if names.is_empty() => Labels::empty(),
            Grouping::By(names) => labels.only(names),
            Grouping::Without(names) => labels.without(names).without_name(),
        }
    }
}

/// The groups, in the order in which their first rows stand.
pub(super) fn groups(rows: &[Row], grouping: &Grouping) -> Vec<Group> {
    let mut positions: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let labels = grouping.of(&row.labels);
        let position = *positions.entry(labels).or_insert_with_key(|labels| {
            groups.push(Group {
                labels: labels.clone(),
                members: Vec::new(),
            });
            groups.len() - 1
        });
        groups[position].members.push(index);
    }
    groups
}

impl<'a> Evaluation<'a> {
    pub(super) fn aggregate(&self, aggregate: &Aggregate, steps: Steps) -> Result<Rows<'a>, Error> {
        let grouped = |values: &dyn Fn(&[&Row]) -> Vec<f64>| self.grouped(aggregate, steps, values);
        match aggregate.op {
            AggregateOp::Sum => grouped(&|rows| folded::<SumOf>(rows, steps)),
            AggregateOp::Avg => grouped(&|rows| folded::<MeanOf>(rows, steps)),
            AggregateOp::Count => grouped(&|rows| folded::<CountOf>(rows, steps)),
            AggregateOp::Min => grouped(&|rows| folded::<LeastOf>(rows, steps)),
            AggregateOp::Max => grouped(&|rows| folded::<GreatestOf>(rows, steps)),
            AggregateOp::Group => grouped(&|rows| folded::<Presence>(rows, steps)),
            AggregateOp::Stdvar => grouped(&|rows| folded::<Variance>(rows, steps)),
            AggregateOp::Stddev => grouped(&|rows| folded::<Deviation>(rows, steps)),
            AggregateOp::Quantile => {
                let Some(param) = &aggregate.param else {
                    return Err(Error::bad_data("quantile takes a parameter"));
                };
                let q = self.scalar(param, steps)?;
                grouped(&|rows| quantiles(rows, &q))
            }
            AggregateOp::CountValues => self.count_values(aggregate, steps),
            AggregateOp::Topk | AggregateOp::Bottomk | AggregateOp::Limitk | AggregateOp::LimitRatio => {
                self.ranked(aggregate, steps)
            }
        }
    }

    /// One row per group, of one value per step.
    fn grouped(
        &self,
        aggregate: &Aggregate,
        steps: Steps,
        values: &dyn Fn(&[&Row]) -> Vec<f64>,
    ) -> Result<Rows<'a>, Error> {
        let (rows, _charge) = self.rows(&aggregate.expr, steps)?.take();
        let mut out = Rows::new(self.budget);
        for group in groups(&rows, &aggregate.grouping) {
            self.budget.check_time()?;
            self.check_steps(steps)?;
            let members: Vec<&Row> = group.members.iter().map(|member| &rows[*member]).collect();
            if let Some(row) = Row::new(group.labels, &values(&members)) {
                out.push(row)?;
            }
        }
        Ok(out)
    }

    /// How many series have each value, which becomes a label.
    fn count_values(&self, aggregate: &Aggregate, steps: Steps) -> Result<Rows<'a>, Error> {
        let label = match aggregate.param.as_ref().map(Expr::bare) {
            Some(Expr::String(label)) => label.clone(),
            _ => return Err(Error::bad_data("count_values takes the name of a label")),
        };
        self.check_label(&label, "label name in count_values()")?;
        let (rows, _charge) = self.rows(&aggregate.expr, steps)?.take();
        let is_dropped = match &aggregate.grouping {
            // The value's label belongs to the group without being listed.
            Grouping::By(_) => false,
            Grouping::Without(names) => names.contains(&label) || label == METRIC_NAME,
        };
        let mut charge = self.budget.charge();
        let mut counts: HashMap<Labels, Vec<f64>> = HashMap::new();
        for row in &rows {
            self.budget.check_time()?;
            let group = aggregate.grouping.of(&row.labels);
            for (step, value) in row.present() {
                let labels = if is_dropped {
                    group.clone()
                } else {
                    group.with(&label, &json::plain_number(value))
                };
                if !counts.contains_key(&labels) {
                    charge.add(steps.count.saturating_mul(size_of::<f64>()) + labels.bytes())?;
                }
                let count = counts
                    .entry(labels)
                    .or_insert_with(|| vec![STALE_MARKER; steps.count]);
                count[step] = if is_stale_marker(count[step]) {
                    1.0
                } else {
                    count[step] + 1.0
                };
            }
        }
        let mut merger = Merger::new(self.budget, Equal::Merged);
        for (labels, values) in counts {
            if let Some(row) = Row::new(labels, &values) {
                merger.add(row)?;
            }
        }
        let mut counted = merger.finish();
        counted.sort_by_labels();
        Ok(counted)
    }
}

/// The quantile of each step, `q` of them.
fn quantiles(rows: &[&Row], q: &[f64]) -> Vec<f64> {
    let mut sorted = Vec::new();
    let of_step = |(step, q): (usize, &f64)| {
        sorted.clear();
        let values = rows.iter().map(|row| row.value(step));
        sorted.extend(values.filter(|value| !is_stale_marker(*value)));
        if sorted.is_empty() {
            STALE_MARKER
        } else {
            statistics::quantile(*q, &mut sorted)
        }
    };
    q.iter().enumerate().map(of_step).collect()
}

/// What an aggregation keeps of the values of a group at one step.
trait Fold: Clone {
    fn new(value: f64) -> Self;
    fn add(&mut self, value: f64);
    fn result(&self) -> f64;
}

/// One value per step from all values of the rows at it, row by row.
fn folded<F: Fold>(rows: &[&Row], steps: Steps) -> Vec<f64> {
    let mut folds: Vec<Option<F>> = vec![None; steps.count];
    for row in rows {
        for (fold, value) in folds[row.first..].iter_mut().zip(&row.values) {
            if is_stale_marker(*value) {
                continue;
            }
            match fold {
                Some(fold) => fold.add(*value),
                None => *fold = Some(F::new(*value)),
            }
        }
    }
    folds
        .iter()
        .map(|fold| fold.as_ref().map_or(STALE_MARKER, F::result))
        .collect()
}

#[derive(Clone)]
struct SumOf(Sum);

impl Fold for SumOf {
    fn new(value: f64) -> Self {
        SumOf(Sum::of(value))
    }

    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn result(&self) -> f64 {
        self.0.total()
    }
}

#[derive(Clone)]
struct MeanOf(Mean);

impl Fold for MeanOf {
    fn new(value: f64) -> Self {
        let mut mean = Mean::default();
        mean.add(value);
        MeanOf(mean)
    }

    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn result(&self) -> f64 {
        self.0.total()
    }
}

#[derive(Clone)]
struct CountOf(f64);

impl Fold for CountOf {
    fn new(_value: f64) -> Self {
        CountOf(1.0)
    }

    fn add(&mut self, _value: f64) {
        self.0 += 1.0;
    }

    fn result(&self) -> f64 {
        self.0
    }
}

/// The least value; NaN only when all are.
#[derive(Clone)]
struct LeastOf(f64);

impl Fold for LeastOf {
    fn new(value: f64) -> Self {
        LeastOf(value)
    }

    fn add(&mut self, value: f64) {
        if value < self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }

    fn result(&self) -> f64 {
        self.0
    }
}

/// The greatest value; NaN only when all are.
#[derive(Clone)]
struct GreatestOf(f64);

impl Fold for GreatestOf {
    fn new(value: f64) -> Self {
        GreatestOf(value)
    }

    fn add(&mut self, value: f64) {
        if value > self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }

    fn result(&self) -> f64 {
        self.0
    }
}

#[derive(Clone)]
struct Presence;

impl Fold for Presence {
    fn new(_value: f64) -> Self {
        Presence
    }

    fn add(&mut self, _value: f64) {}

    fn result(&self) -> f64 {
        1.0
    }
}

/// The population variance, by Welford's method.
#[derive(Clone)]
struct Variance {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Fold for Variance {
    fn new(value: f64) -> Self {
        Variance {
            count: 1.0,
            mean: value,
            squares: if value.is_finite() { 0.0 } else { f64::NAN },
        }
    }

    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }

    fn result(&self) -> f64 {
        self.squares / self.count
    }
}

/// The population standard deviation.
#[derive(Clone)]
struct Deviation(Variance);

impl Fold for Deviation {
    fn new(value: f64) -> Self {
        Deviation(Variance::new(value))
    }

    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn result(&self) -> f64 {
        self.0.result().sqrt()
    }
}
