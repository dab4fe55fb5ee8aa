//! Series of values by step.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::budget::{Budget, Charge};
use crate::error::Error;
use crate::labels::Labels;
use crate::storage::{STALE_MARKER, is_stale_marker};

/// The values of a series at consecutive steps. A stale marker is a step without value; the first and the last value are
/// none.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) labels: Labels,
    /// The step of the first value.
    pub(crate) first: usize,
    pub(crate) values: Vec<f64>,
}

impl Row {
    /// From one value per step; none when no step has a value.
    pub(crate) fn new(labels: Labels, values: &[f64]) -> Option<Row> {
        Row::at(labels, 0, values)
    }

    /// From the values of the steps from `first` on.
    pub(crate) fn at(labels: Labels, first: usize, values: &[f64]) -> Option<Row> {
        let begin = values.iter().position(|value| !is_stale_marker(*value))?;
        let end = values.iter().rposition(|value| !is_stale_marker(*value))? + 1;
        Some(Row {
            labels,
            first: first + begin,
            values: values[begin..end].to_vec(),
        })
    }

    /// The value at a step; a stale marker when there is none.
    pub(crate) fn value(&self, step: usize) -> f64 {
        match step.checked_sub(self.first) {
            Some(at) => self.values.get(at).copied().unwrap_or(STALE_MARKER),
            None => STALE_MARKER,
        }
    }

    /// The steps that have a value, with it.
    pub(crate) fn present(&self) -> impl Iterator<Item = (usize, f64)> {
        let steps = self.first..;
        steps
            .zip(self.values.iter().copied())
            .filter(|(_, value)| !is_stale_marker(*value))
    }

    /// With other values in the place of those that are there; none when nothing is left.
    pub(crate) fn map(
        mut self,
        labels: Labels,
        mut value: impl FnMut(usize, f64) -> Option<f64>,
    ) -> Option<Row> {
        let mut is_complete = true;
        for (at, slot) in self.values.iter_mut().enumerate() {
            if !is_stale_marker(*slot) {
                *slot = value(self.first + at, *slot).unwrap_or(STALE_MARKER);
                is_complete &= !is_stale_marker(*slot);
            }
        }
        if is_complete {
            return Some(Row { labels, ..self });
        }
        Row::at(labels, self.first, &self.values)
    }

    fn bytes(&self) -> usize {
        size_of::<Row>() + self.values.len() * size_of::<f64>() + self.labels.bytes()
    }

    /// Takes over the values of a row with the same labels; false when both have a value at a step.
    fn merge(&mut self, other: &Row) -> bool {
        let first = self.first.min(other.first);
        let end = (self.first + self.values.len()).max(other.first + other.values.len());
        let mut values: Vec<f64> = (first..end).map(|step| self.value(step)).collect();
        for (step, value) in other.present() {
            if !is_stale_marker(values[step - first]) {
                return false;
            }
            values[step - first] = value;
        }
        (self.first, self.values) = (first, values);
        true
    }
}

/// Rows, charged to the budget of their evaluation.
pub(crate) struct Rows<'a> {
    rows: Vec<Row>,
    charge: Charge<'a>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(budget: &'a Budget<'a>) -> Rows<'a> {
        Rows {
            rows: Vec::new(),
            charge: budget.charge(),
        }
    }

    pub(crate) fn push(&mut self, row: Row) -> Result<(), Error> {
        self.charge.add(row.bytes())?;
        self.rows.push(row);
        Ok(())
    }

    /// The rows, and their charge, which has to live as long as they do.
    pub(crate) fn take(self) -> (Vec<Row>, Charge<'a>) {
        (self.rows, self.charge)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Row> {
        self.rows.iter()
    }

    pub(crate) fn sort_by_labels(&mut self) {
        self.rows
            .sort_unstable_by(|left, right| left.labels.cmp(&right.labels));
    }

    pub(crate) fn sort_by(&mut self, order: impl FnMut(&Row, &Row) -> std::cmp::Ordering) {
        self.rows.sort_by(order);
    }
}

/// What happens to rows whose labels have become equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Equal {
    /// They become one row, unless both have a value at the same step.
    Merged,
    /// They are an error.
    Refused,
}

/// Collects rows whose labels have been changed and may have become equal.
pub(crate) struct Merger<'a> {
    rows: Rows<'a>,
    positions: HashMap<Labels, usize>,
    equal: Equal,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(budget: &'a Budget<'a>, equal: Equal) -> Merger<'a> {
        Merger {
            rows: Rows::new(budget),
            positions: HashMap::new(),
            equal,
        }
    }

    pub(crate) fn add(&mut self, row: Row) -> Result<(), Error> {
        let labels = row.labels.clone();
        if self.try_add(row)? {
            return Ok(());
        }
        Err(Error::execution(format!(
            "vector cannot contain metrics with the same labelset: {labels}"
        )))
    }

    /// False when the row collides with one that is there.
    pub(crate) fn try_add(&mut self, row: Row) -> Result<bool, Error> {
        match self.positions.entry(row.labels.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(self.rows.rows.len());
                self.rows.push(row)?;
            }
            Entry::Occupied(occupied) => {
                let kept = &mut self.rows.rows[*occupied.get()];
                let before = kept.bytes();
                if self.equal == Equal::Refused || !kept.merge(&row) {
                    return Ok(false);
                }
                let after = kept.bytes();
                self.rows.charge.add(after - before)?;
            }
        }
        Ok(true)
    }

    pub(crate) fn finish(self) -> Rows<'a> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Limits;

    const NONE: f64 = STALE_MARKER;

    fn row(values: &[f64]) -> Option<Row> {
        Row::new(Labels::empty(), values)
    }

    #[test]
    fn rows_begin_and_end_with_a_value() {
        let row = row(&[NONE, 1.0, NONE, f64::NAN, NONE]).unwrap();
        assert_eq!((row.first, row.values.len()), (1, 3));
        assert_eq!(row.value(1), 1.0);
        assert!(
            is_stale_marker(row.value(0)) && is_stale_marker(row.value(2)) && is_stale_marker(row.value(9))
        );
        assert!(super::Row::new(Labels::empty(), &[NONE]).is_none());
    }

    #[test]
    fn rows_of_equal_labels_merge_when_they_share_no_step() {
        let is_interrupted = || false;
        let budget = Budget::new(Limits {
            memory_bytes_max: 10_000,
            is_interrupted: &is_interrupted,
        });
        let mut merger = Merger::new(&budget, Equal::Merged);
        merger.add(row(&[1.0, NONE, NONE]).unwrap()).unwrap();
        merger.add(row(&[NONE, NONE, 3.0]).unwrap()).unwrap();
        assert!(merger.add(row(&[NONE, NONE, 4.0]).unwrap()).is_err());
        let rows = merger.finish();
        let values: Vec<_> = rows.iter().next().unwrap().present().collect();
        assert_eq!(values, [(0, 1.0), (2, 3.0)]);
        let mut refusing = Merger::new(&budget, Equal::Refused);
        refusing.add(row(&[1.0, NONE]).unwrap()).unwrap();
        assert!(refusing.add(row(&[NONE, 1.0]).unwrap()).is_err());
    }

    #[test]
    fn the_budget_is_counted_and_given_back() {
        let is_interrupted = || false;
        let budget = Budget::new(Limits {
            memory_bytes_max: 1_000,
            is_interrupted: &is_interrupted,
        });
        for _ in 0..3 {
            let mut rows = Rows::new(&budget);
            rows.push(row(&[1.0; 100]).unwrap()).unwrap();
            let error = rows.push(row(&[1.0; 100]).unwrap()).unwrap_err();
            assert!(error.message.contains("matchers"), "{error}");
        }
    }
}
