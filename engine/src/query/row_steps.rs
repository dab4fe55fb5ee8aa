//! Which rows lie in which time step. Series that are sampled together have the same rows in the same steps, so the steps
//! of the rows before are kept: finding them again would take as long as adding up the few values of each.

use std::ops::Range;

use crate::local_step::{Following, LocalStep};
use crate::times::Times;

/// How many steps are listed at once.
const STEPS_MAX: usize = 1_024;
/// How many lists are kept: series that are sampled together have the same few blocks each.
const LISTS_MAX: usize = 8;

/// The rows of one time step. They begin where those of the step before end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowStep {
    /// Start of the step.
    pub(super) start_ns: i64,
    /// The row after the last one in it.
    pub(super) past: usize,
}

/// Lists steps.
#[derive(Default)]
pub(super) struct RowSteps {
    /// The steps of rows that can be compared.
    kept: Vec<(EvenRows, Vec<RowStep>)>,
    /// Which of them is replaced next.
    oldest: usize,
    /// Those of the last other rows.
    other: Vec<RowStep>,
}

/// Evenly spaced rows, and steps of one length: all steps follow from these.
#[derive(PartialEq, Eq)]
struct EvenRows {
    first_ns: i64,
    interval_ns: i64,
    rows: Range<usize>,
    start_ns: i64,
    length_ns: i64,
}

impl EvenRows {
    fn new(times: &Times<'_>, rows: &Range<usize>, step: LocalStep<'_>) -> Option<Self> {
        match *times {
            Times::Even {
                first_ns, step_ns, ..
            } if !rows.is_empty() => Some(EvenRows {
                first_ns,
                interval_ns: step_ns,
                rows: rows.clone(),
                start_ns: step.start_ns(times.get(rows.start)),
                length_ns: step.length_ns()?,
            }),
            _ => None,
        }
    }
}

impl RowSteps {
    /// The steps of these rows that have any, at most [`STEPS_MAX`]: the rows behind them are to be listed next.
    pub(super) fn of(&mut self, times: &Times<'_>, rows: Range<usize>, step: LocalStep<'_>) -> &[RowStep] {
        let Some(of) = EvenRows::new(times, &rows, step) else {
            list(&mut self.other, times, rows, step);
            return &self.other;
        };
        let place = match self.kept.iter().position(|(kept, _)| *kept == of) {
            Some(place) => place,
            None if self.kept.len() < LISTS_MAX => {
                let mut steps = Vec::new();
                list(&mut steps, times, rows, step);
                self.kept.push((of, steps));
                self.kept.len() - 1
            }
            None => {
                let place = self.oldest;
                self.oldest = (place + 1) % LISTS_MAX;
                let (kept, steps) = &mut self.kept[place];
                list(steps, times, rows, step);
                *kept = of;
                place
            }
        };
        &self.kept[place].1
    }
}

/// Replaces a list by the steps of these rows.
fn list(steps: &mut Vec<RowStep>, times: &Times<'_>, rows: Range<usize>, step: LocalStep<'_>) {
    steps.clear();
    let mut following = Following::new(step);
    let mut row = rows.start;
    // How many rows the step before has besides its first.
    let mut more = 0;
    while row < rows.end && steps.len() < STEPS_MAX {
        let (start_ns, next_ns) = following.containing(times.get(row));
        let past = times.first_near(row + 1..rows.end, next_ns, more);
        more = past - row - 1;
        row = past;
        steps.push(RowStep { start_ns, past });
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::calendar::Unit;
    use crate::step::Step;

    /// All steps of rows, looked up row by row.
    fn looked_up(times: &Times<'_>, rows: Range<usize>, step: LocalStep<'_>) -> Vec<RowStep> {
        let mut steps: Vec<RowStep> = Vec::new();
        for row in rows {
            let (start_ns, past) = (step.start_ns(times.get(row)), row + 1);
            match steps.last_mut() {
                Some(last) if last.start_ns == start_ns => last.past = past,
                _ => steps.push(RowStep { start_ns, past }),
            }
        }
        steps
    }

    fn listed(
        steps: &mut RowSteps,
        times: &Times<'_>,
        rows: Range<usize>,
        step: LocalStep<'_>,
    ) -> Vec<RowStep> {
        let (mut all, mut row) = (Vec::new(), rows.start);
        while row < rows.end {
            let some = steps.of(times, row..rows.end, step);
            assert!(some.len() <= STEPS_MAX);
            row = some.last().unwrap().past;
            all.extend_from_slice(some);
        }
        all
    }

    #[test]
    fn steps_are_those_of_the_rows_whatever_was_listed_before() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let units = [Unit::Minute, Unit::Hour, Unit::Day, Unit::Month];
        let quarters = Step::seconds(900).unwrap();
        let steps: Vec<LocalStep<'_>> = units
            .into_iter()
            .map(Into::into)
            .chain([quarters.into()])
            .collect();
        let mut kept = RowSteps::default();
        for _ in 0..3_000 {
            // Few different ones, so that the same come again.
            let first_ns = random.i64(0..3) * 450_000_000_000;
            let step_ns = [0, 60_000_000_000, 900_000_000_000][random.usize(..3)];
            let count = [1, 7, 3_000][random.usize(..3)];
            let even = Times::Even {
                first_ns,
                step_ns,
                rows: count,
            };
            let every = (0..count).map(|row| even.get(row)).collect::<Vec<_>>();
            let times = match random.bool() {
                true => even,
                false => Times::Listed(Cow::Owned(every)),
            };
            let start = random.usize(..2).min(count - 1);
            let rows = start..count - random.usize(..2).min(count - 1 - start);
            let step = steps[random.usize(..steps.len())];
            let expected = looked_up(&times, rows.clone(), step);
            assert_eq!(listed(&mut kept, &times, rows, step), expected);
        }
    }

    #[test]
    fn no_rows_have_no_steps() {
        let times = Times::Listed(Cow::Borrowed(&[]));
        assert!(RowSteps::default().of(&times, 0..0, Unit::Hour.into()).is_empty());
    }
}
