//! Aggregations that keep some of the series of a group: `topk`, `bottomk`, `limitk`, `limit_ratio`.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::aggregate::groups;
use super::steps::Steps;
use super::{Evaluation, Row, Rows};
use crate::error::Error;
use crate::expr::{Aggregate, AggregateOp};
use crate::labels::Labels;
use crate::storage::{STALE_MARKER, is_stale_marker};

impl<'a> Evaluation<'a> {
    /// The values of each step that are kept, in their own series.
    pub(super) fn ranked(&self, aggregate: &Aggregate, steps: Steps) -> Result<Rows<'a>, Error> {
        let param = match &aggregate.param {
            Some(param) => self.scalar(param, steps)?,
            None => return Err(Error::bad_data("the aggregation takes a parameter")),
        };
        check_parameter(aggregate.op, &param)?;
        let (rows, _charge) = self.rows(&aggregate.expr, steps)?.take();
        let mut kept = Rows::new(self.budget);
        for group in groups(&rows, &aggregate.grouping) {
            let mut charge = self.budget.charge();
            charge.add(
                group
                    .members
                    .len()
                    .saturating_mul(steps.count)
                    .saturating_mul(size_of::<f64>()),
            )?;
            let mut values = vec![vec![STALE_MARKER; steps.count]; group.members.len()];
            let hashes: Vec<f64> = group
                .members
                .iter()
                .map(|member| position(&rows[*member].labels))
                .collect();
            let mut heap = Heap::new(aggregate.op == AggregateOp::Topk);
            for step in 0..steps.count {
                self.budget.check_time()?;
                heap.entries.clear();
                let k = param[step];
                let mut seen = 0.0;
                for (index, member) in group.members.iter().enumerate() {
                    let value = rows[*member].value(step);
                    if is_stale_marker(value) {
                        continue;
                    }
                    match aggregate.op {
                        AggregateOp::Limitk if seen < k.trunc() => values[index][step] = value,
                        AggregateOp::LimitRatio if is_sampled(hashes[index], k) => {
                            values[index][step] = value
                        }
                        AggregateOp::Topk | AggregateOp::Bottomk => heap.offer(k, index, value),
                        _ => {}
                    }
                    seen += 1.0;
                }
                for (index, value) in &heap.entries {
                    values[*index][step] = *value;
                }
            }
            for (member, values) in group.members.iter().zip(&values) {
                if let Some(row) = Row::new(rows[*member].labels.clone(), values) {
                    kept.push(row)?;
                }
            }
        }
        kept.sort_by_labels();
        Ok(kept)
    }
}

fn check_parameter(op: AggregateOp, param: &[f64]) -> Result<(), Error> {
    let refused = |what: String| Err(Error::execution(what));
    match op {
        AggregateOp::LimitRatio => match param.iter().find(|ratio| ratio.is_nan()) {
            Some(ratio) => refused(format!("ratio value {ratio} is NaN")),
            None => Ok(()),
        },
        _ => match param.iter().find(|k| k.is_nan() || k.abs() >= i64::MAX as f64) {
            Some(k) => refused(format!("scalar value {k} overflows int64")),
            None => Ok(()),
        },
    }
}

/// Whether a series belongs to the sample of a ratio: of `-r` exactly those that do not belong to the one of `1 - r`.
fn is_sampled(position: f64, ratio: f64) -> bool {
    let ratio = ratio.clamp(-1.0, 1.0);
    if ratio >= 0.0 {
        position < ratio
    } else {
        position >= 1.0 + ratio
    }
}

/// Where a series lies between 0 and 1: always at the same place, and all of them spread evenly.
fn position(labels: &Labels) -> f64 {
    let mut hasher = DefaultHasher::new();
    labels.hash(&mut hasher);
    hasher.finish() as f64 / (u64::MAX as f64 * (1.0 + f64::EPSILON))
}

/// The best `k` values offered so far, the worst of them in front.
///
/// It is a binary heap with the very moves of Go's `container/heap`, because they decide which of equal values is kept.
struct Heap {
    entries: Vec<(usize, f64)>,
    keeps_greatest: bool,
}

impl Heap {
    fn new(keeps_greatest: bool) -> Heap {
        Heap {
            entries: Vec::new(),
            keeps_greatest,
        }
    }

    /// Whether the first value is to be in front of the second one: NaN is worst.
    fn is_worse(&self, left: f64, right: f64) -> bool {
        left.is_nan()
            || if self.keeps_greatest {
                left < right
            } else {
                left > right
            }
    }

    fn offer(&mut self, k: f64, index: usize, value: f64) {
        if k < 1.0 {
            return;
        }
        if (self.entries.len() as f64) < k.trunc() {
            self.entries.push((index, value));
            self.raise(self.entries.len() - 1);
            return;
        }
        let worst = self.entries[0].1;
        let is_better = if self.keeps_greatest {
            worst < value
        } else {
            worst > value
        };
        if is_better || worst.is_nan() && !value.is_nan() {
            self.entries[0] = (index, value);
            self.sink(0);
        }
    }

    fn raise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.is_worse(self.entries[at].1, self.entries[parent].1) {
                break;
            }
            self.entries.swap(at, parent);
            at = parent;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            if left >= self.entries.len() {
                break;
            }
            let right = left + 1;
            let is_right =
                right < self.entries.len() && self.is_worse(self.entries[right].1, self.entries[left].1);
            let child = if is_right { right } else { left };
            if !self.is_worse(self.entries[child].1, self.entries[at].1) {
                break;
            }
            self.entries.swap(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(keeps_greatest: bool, k: f64, values: &[f64]) -> Vec<usize> {
        let mut heap = Heap::new(keeps_greatest);
        for (index, value) in values.iter().enumerate() {
            heap.offer(k, index, *value);
        }
        let mut kept: Vec<usize> = heap.entries.iter().map(|(index, _)| *index).collect();
        kept.sort_unstable();
        kept
    }

    #[test]
    fn the_best_values_are_kept_and_nan_is_worst() {
        assert_eq!(kept(true, 2.0, &[1.0, 5.0, 3.0, 4.0]), [1, 3]);
        assert_eq!(kept(false, 2.0, &[1.0, 5.0, 3.0, 4.0]), [0, 2]);
        assert_eq!(kept(true, 2.0, &[f64::NAN, 1.0, f64::NAN, 2.0]), [1, 3]);
        assert_eq!(kept(false, 1.0, &[f64::NAN, 1.0]), [1]);
        assert_eq!(kept(true, 0.5, &[1.0]), [0; 0]);
    }

    #[test]
    fn a_ratio_and_its_complement_share_no_series() {
        for at in 0..100 {
            let position = position(&Labels::from_pairs([("a", at.to_string())]));
            assert!((0.0..1.0).contains(&position));
            assert_ne!(is_sampled(position, 0.3), is_sampled(position, -0.7));
            assert!(is_sampled(position, 1.0) && is_sampled(position, -1.0) && !is_sampled(position, 0.0));
        }
    }
}
