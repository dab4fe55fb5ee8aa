//! Which rows lie in which time step. Series that are sampled together have the same rows in the same steps, so the most
//! recent lists of steps are kept: finding the steps again would take as long as adding up the few values of each.

use std::ops::Range;

use crate::local_step::{Following, LocalStep};
use crate::step::Step;
use crate::times::Times;

/// How many steps are listed at once.
const STEPS_MAX: usize = 1_024;
/// How many lists are kept: series that are sampled together have the same few blocks each. Blocks with more steps than are
/// listed at once need several lists each.
const LISTS_MAX: usize = 8;

/// The rows of one time step. They begin where those of the step before end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowStep {
    /// Start of the step.
    pub(super) start_ns: i64,
    /// The row after the last one in it.
    pub(super) past: usize,
}

/// Lists of steps, each made once for equal rows. Their memory is bounded, and too little to be counted.
#[derive(Default)]
pub(super) struct RowSteps {
    /// Lists for evenly spaced rows.
    kept: Vec<(EvenRows, Vec<RowStep>)>,
    /// Index of the list that is replaced next.
    oldest: usize,
    /// The list of the last rows that are not evenly spaced, or whose step depends on a clock.
    other: Vec<RowStep>,
}

/// Evenly spaced rows and the step into which they are divided. A list depends on nothing else.
#[derive(PartialEq, Eq)]
struct EvenRows {
    first_ns: i64,
    interval_ns: i64,
    rows: Range<usize>,
    step: Step,
}

impl EvenRows {
    fn new(times: &Times<'_>, rows: &Range<usize>, step: LocalStep<'_>) -> Option<Self> {
        match *times {
            Times::Even {
                first_ns, step_ns, ..
            } => Some(EvenRows {
                first_ns,
                interval_ns: step_ns,
                rows: rows.clone(),
                step: step.in_utc()?,
            }),
            Times::Listed(_) => None,
        }
    }
}

impl RowSteps {
    /// The steps in which these rows lie, at most [`STEPS_MAX`]. If rows are left, call again with them.
    pub(super) fn of(&mut self, times: &Times<'_>, rows: Range<usize>, step: LocalStep<'_>) -> &[RowStep] {
        let Some(of) = EvenRows::new(times, &rows, step) else {
            list(&mut self.other, times, rows, step);
            return &self.other;
        };
        if let Some(place) = self.kept.iter().position(|(kept, _)| *kept == of) {
            return &self.kept[place].1;
        }
        if self.kept.len() < LISTS_MAX {
            self.kept.push((of, Vec::new()));
        } else {
            self.kept[self.oldest].0 = of;
        }
        let steps = &mut self.kept[self.oldest].1;
        self.oldest = (self.oldest + 1) % LISTS_MAX;
        list(steps, times, rows, step);
        steps
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
    use crate::local_step::Earlier;
    use crate::zone::Zone;

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
        let (mut all, mut row): (Vec<RowStep>, usize) = (Vec::new(), rows.start);
        while row < rows.end {
            let some = steps.of(times, row..rows.end, step);
            assert!(some.len() <= STEPS_MAX);
            row = some.last().unwrap().past;
            for of_step in some {
                match all.last_mut() {
                    // A step that ends with time has no end that is beyond its rows, and each of them is listed.
                    Some(RowStep { start_ns, past }) if *start_ns == of_step.start_ns => *past = of_step.past,
                    _ => all.push(*of_step),
                }
            }
        }
        all
    }

    #[test]
    fn steps_are_those_of_the_rows_whatever_was_listed_before() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let hour_ns = 3_600_000_000_000;
        let zone = Zone::new(hour_ns, [(30 * 24 * hour_ns, 2 * hour_ns)]);
        let units = [Unit::Minute, Unit::Hour, Unit::Day, Unit::Month].map(LocalStep::from);
        let quarters = Step::seconds(900).unwrap();
        let steps = [
            quarters.into(),
            LocalStep::from(quarters).earlier(Earlier::By(60_000_000_000)),
            Step::from(Unit::Day).by(Some(&zone)),
        ];
        let steps: Vec<LocalStep<'_>> = units.into_iter().chain(steps).collect();
        let mut rows = || {
            let count = [1, 7, 3_000][random.usize(..3)];
            let step_ns = [0, 60_000_000_000, 900_000_000_000][random.usize(..3)];
            let first_ns = [0, 450_000_000_000, i64::MIN, i64::MAX - 3_000 * step_ns][random.usize(..4)];
            let even = Times::Even {
                first_ns,
                step_ns,
                rows: count,
            };
            let every = (0..count).map(|row| even.get(row)).collect::<Vec<_>>();
            let times = match random.u8(..4) {
                0 => Times::Listed(Cow::Owned(every)),
                _ => even,
            };
            let start = random.usize(..2).min(count - 1);
            let rows = start..count - random.usize(..2).min(count - 1 - start);
            (times, rows, steps[random.usize(..steps.len())])
        };
        // Few different ones, so that the same come again, with others between that replace their lists.
        let rows: Vec<_> = (0..24).map(|_| rows()).collect();
        let mut kept = RowSteps::default();
        for _ in 0..500 {
            let (times, rows, step) = &rows[random.usize(..rows.len())];
            let expected = looked_up(times, rows.clone(), *step);
            assert_eq!(listed(&mut kept, times, rows.clone(), *step), expected);
            assert!(kept.kept.len() <= LISTS_MAX);
        }
    }

    #[test]
    fn equal_rows_are_listed_once() {
        let times = |first_ns| Times::Even {
            first_ns,
            step_ns: 900_000_000_000,
            rows: 672,
        };
        let mut kept = RowSteps::default();
        for _ in 0..3 {
            for first_ns in 0..LISTS_MAX as i64 {
                kept.of(&times(first_ns), 0..672, Unit::Hour.into());
            }
            assert_eq!((kept.kept.len(), kept.oldest), (LISTS_MAX, 0));
        }
    }

    #[test]
    fn no_rows_have_no_steps() {
        let times = Times::Listed(Cow::Borrowed(&[]));
        assert!(RowSteps::default().of(&times, 0..0, Unit::Hour.into()).is_empty());
    }
}
