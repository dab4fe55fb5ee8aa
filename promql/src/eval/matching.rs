//! Arithmetic and comparisons between vectors: which series of both sides belong together.

use std::collections::HashMap;

use super::rows::{Equal, Merger};
use super::steps::Steps;
use super::{Evaluation, Row, Rows, arithmetic};
use crate::error::Error;
use crate::expr::{Binary, Grouping, Many};
use crate::labels::Labels;
use crate::storage::{STALE_MARKER, is_stale_marker};

impl Grouping {
    /// The labels by which a series is matched.
    pub(super) fn of_match(&self, labels: &Labels) -> Labels {
        self.of(labels)
    }
}

/// The series of both sides with one match. In a match of many to one, `many` are those of the many.
#[derive(Default)]
struct Match {
    many: Vec<usize>,
    one: Vec<usize>,
}

impl<'a> Evaluation<'a> {
    /// One result for each pair of series that match, at the steps at which both have a value.
    pub(super) fn matched(
        &self,
        binary: &Binary,
        left: Rows<'a>,
        right: Rows<'a>,
        steps: Steps,
    ) -> Result<Rows<'a>, Error> {
        let (left, _left_charge) = left.take();
        let (right, _right_charge) = right.take();
        let (many, one) = match binary.many {
            Many::Neither | Many::Left => (&left, &right),
            Many::Right => (&right, &left),
        };
        let mut positions: HashMap<Labels, usize> = HashMap::new();
        let mut matches: Vec<Match> = Vec::new();
        for (side, rows) in [many, one].into_iter().enumerate() {
            for (index, row) in rows.iter().enumerate() {
                let position = *positions
                    .entry(binary.matching.of_match(&row.labels))
                    .or_insert_with(|| {
                        matches.push(Match::default());
                        matches.len() - 1
                    });
                let found = &mut matches[position];
                if side == 0 {
                    found.many.push(index)
                } else {
                    found.one.push(index)
                }
            }
        }
        let pairing = Pairing {
            evaluation: self,
            binary,
            many,
            one,
            steps,
        };
        let mut merger = Merger::new(self.budget, Equal::Merged);
        for found in &matches {
            self.budget.check_time()?;
            pairing.pair(found, &mut merger)?;
        }
        Ok(merger.finish())
    }
}

/// The pairing of two sides.
struct Pairing<'e, 'a> {
    evaluation: &'e Evaluation<'a>,
    binary: &'e Binary,
    many: &'e [Row],
    one: &'e [Row],
    steps: Steps,
}

impl<'a> Pairing<'_, 'a> {
    /// Adds the results of the series of one match.
    fn pair(&self, found: &Match, results: &mut Merger<'a>) -> Result<(), Error> {
        self.refuse_ambiguity(found)?;
        // At which steps a result of this match is taken: only one to one, where a second one is ambiguous.
        let is_single = self.binary.many == Many::Neither && found.many.len() > 1;
        let mut taken = vec![false; if is_single { self.steps.count } else { 0 }];
        let mut of_match = Merger::new(self.evaluation.budget, Equal::Merged);
        for many in &found.many {
            for one in &found.one {
                let Some(row) = self.result(&self.many[*many], &self.one[*one]) else {
                    continue;
                };
                if !taken.is_empty() {
                    for (step, _) in row.present() {
                        if std::mem::replace(&mut taken[step], true) {
                            return Err(Error::execution(
                                "multiple matches for labels: many-to-one matching must be explicit \
                                 (group_left/group_right)",
                            ));
                        }
                    }
                }
                if !of_match.try_add(row)? {
                    return Err(Error::execution(
                        "multiple matches for labels: grouping labels must ensure unique matches",
                    ));
                }
            }
        }
        let (rows, _charge) = of_match.finish().take();
        rows.into_iter().try_for_each(|row| results.add(row))
    }

    /// The side of the one may have several series for a match, as long as only one of them has a value at a step.
    fn refuse_ambiguity(&self, found: &Match) -> Result<(), Error> {
        if found.one.len() < 2 {
            return Ok(());
        }
        let mut taken = vec![false; self.steps.count];
        for one in &found.one {
            for (step, _) in self.one[*one].present() {
                let is_ambiguous = std::mem::replace(&mut taken[step], true);
                // Prometheus looks for matches only at steps at which both sides have any value.
                if is_ambiguous && self.many.iter().any(|row| !is_stale_marker(row.value(step))) {
                    return Err(Error::execution(format!(
                        "found duplicate series for the match group {} on one side of the operation; many-to-many \
                         matching not allowed: matching labels must be unique on one side",
                        self.binary.matching.of_match(&self.one[*one].labels)
                    )));
                }
            }
        }
        Ok(())
    }

    fn result(&self, many: &Row, one: &Row) -> Option<Row> {
        let op = self.binary.op;
        let first = many.first.max(one.first);
        let end = (many.first + many.values.len()).min(one.first + one.values.len());
        if first >= end {
            return None;
        }
        let manys = &many.values[first - many.first..end - many.first];
        let ones = &one.values[first - one.first..end - one.first];
        let value = |(many, one): (&f64, &f64)| {
            if is_stale_marker(*many) || is_stale_marker(*one) {
                return STALE_MARKER;
            }
            let (left, right) = match self.binary.many {
                Many::Neither | Many::Left => (*many, *one),
                Many::Right => (*one, *many),
            };
            if self.binary.returns_bool {
                return arithmetic::apply_bool(op, left, right);
            }
            arithmetic::apply(op, left, right).unwrap_or(STALE_MARKER)
        };
        let values: Vec<f64> = manys.iter().zip(ones).map(value).collect();
        Row::at(self.labels(&many.labels, &one.labels), first, &values)
    }

    fn labels(&self, many: &Labels, one: &Labels) -> Labels {
        let mut labels = many.clone();
        if self.evaluation.drops_name(self.binary) {
            labels = labels.without_name();
        }
        if self.binary.many == Many::Neither {
            labels = match &self.binary.matching {
                Grouping::By(names) => labels.only(names),
                Grouping::Without(names) => labels.without(names),
            };
        }
        for name in &self.binary.include {
            labels = labels.with(name, one.get(name));
        }
        labels
    }
}
