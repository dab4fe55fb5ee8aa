//! Functions of classic histograms: series that differ in the label `le` only are the buckets of one.

use std::collections::HashMap;

use super::steps::Steps;
use super::{Equal, Evaluation, Merger, Row, Rows};
use crate::error::Error;
use crate::expr::Expr;
use crate::functions::histogram::{self, Bucket};
use crate::labels::{Labels, METRIC_NAME};
use crate::options::Semantics;
use crate::storage::{STALE_MARKER, is_stale_marker};

/// The label with the upper bound of a bucket.
const BUCKET: &str = "le";

/// The buckets of one histogram: their upper bounds and rows.
struct Histogram {
    labels: Labels,
    buckets: Vec<(f64, Row)>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn histogram_quantile(
        &self,
        q: &Expr,
        vector: &Expr,
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        let q = self.scalar(q, steps)?;
        let semantics = self.options.semantics;
        let mut merger = Merger::new(self.budget, Equal::Merged);
        self.each_histogram(vector, steps, |histogram| {
            let values = values(histogram, steps, |step, buckets| {
                histogram::quantile(q[step], buckets, semantics)
            });
            Row::new(histogram.labels.clone(), &values).map_or(Ok(()), |row| merger.add(row))
        })?;
        Ok(merger.finish())
    }

    /// Several quantiles, each in a label.
    pub(super) fn histogram_quantiles(
        &self,
        vector: &Expr,
        label: &Expr,
        numbers: &[Expr],
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        let label = self.string(label)?;
        self.check_label(&label, "label name in histogram_quantiles()")?;
        let quantiles = numbers
            .iter()
            .map(|number| self.scalar(number, steps))
            .collect::<Result<Vec<_>, _>>()?;
        let mut merger = Merger::new(self.budget, Equal::Merged);
        self.each_histogram(vector, steps, |histogram| {
            for q in &quantiles {
                // A quantile that changes with the steps gives a series for each of its values.
                let mut distinct: Vec<u64> = q.iter().map(|q| q.to_bits()).collect();
                distinct.sort_unstable();
                distinct.dedup();
                for bits in distinct {
                    let wanted = f64::from_bits(bits);
                    let values = values(histogram, steps, |step, buckets| {
                        if q[step].to_bits() == bits {
                            histogram::quantile(wanted, buckets, Semantics::V3)
                        } else {
                            STALE_MARKER
                        }
                    });
                    let labels = histogram.labels.with(&label, &open_metrics(wanted));
                    if let Some(row) = Row::new(labels, &values) {
                        merger.add(row)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(merger.finish())
    }

    pub(super) fn histogram_fraction(
        &self,
        lower: &Expr,
        upper: &Expr,
        vector: &Expr,
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        let (lower, upper) = (self.scalar(lower, steps)?, self.scalar(upper, steps)?);
        if self.options.semantics == Semantics::V2 {
            // Prometheus 2 has fractions of native histograms only.
            self.rows(vector, steps)?;
            return Ok(Rows::new(self.budget));
        }
        let mut merger = Merger::new(self.budget, Equal::Merged);
        self.each_histogram(vector, steps, |histogram| {
            let values = values(histogram, steps, |step, buckets| {
                histogram::fraction(lower[step], upper[step], buckets)
            });
            Row::new(histogram.labels.clone(), &values).map_or(Ok(()), |row| merger.add(row))
        })?;
        Ok(merger.finish())
    }

    /// Visits the histograms of a vector. Series without an upper bound that is a number are left out.
    fn each_histogram(
        &self,
        vector: &Expr,
        steps: Steps,
        mut visit: impl FnMut(&Histogram) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (rows, _charge) = self.rows(vector, steps)?.take();
        let mut histograms: Vec<Histogram> = Vec::new();
        let mut positions: HashMap<Labels, usize> = HashMap::new();
        for row in rows {
            let Ok(upper) = row.labels.get(BUCKET).parse::<f64>() else {
                continue;
            };
            let labels = row.labels.with(BUCKET, "");
            let key = match self.options.semantics {
                Semantics::V3 => labels.clone(),
                Semantics::V2 => labels.with(METRIC_NAME, ""),
            };
            let position = *positions.entry(key).or_insert_with(|| {
                histograms.push(Histogram {
                    labels: labels.without_name(),
                    buckets: Vec::new(),
                });
                histograms.len() - 1
            });
            histograms[position].buckets.push((upper, row));
        }
        for histogram in &histograms {
            self.budget.check_time()?;
            visit(histogram)?;
        }
        Ok(())
    }
}

/// One value per step from the buckets that have a count then.
fn values(histogram: &Histogram, steps: Steps, value: impl Fn(usize, &mut Vec<Bucket>) -> f64) -> Vec<f64> {
    let mut buckets = Vec::with_capacity(histogram.buckets.len());
    let of_step = |step| {
        buckets.clear();
        for (upper, row) in &histogram.buckets {
            let count = row.value(step);
            if !is_stale_marker(count) {
                buckets.push(Bucket { upper: *upper, count });
            }
        }
        if buckets.is_empty() {
            STALE_MARKER
        } else {
            value(step, &mut buckets)
        }
    };
    (0..steps.count).map(of_step).collect()
}

/// A number as OpenMetrics writes it in a label: whole numbers with `.0`.
fn open_metrics(number: f64) -> String {
    let text = crate::json::number(number);
    let is_whole = number.is_finite() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_whole { format!("{text}.0") } else { text }
}
