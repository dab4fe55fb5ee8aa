//! Values that hold through steps in which their own source has none, while others that are merged with it have some.
//! Which steps these are is known when all sources are read.

use super::budget::{Budget, Held};
use super::group::{Grouped, Grouping};
use super::statistics::Statistics;
use crate::EngineError;
use crate::local_step::LocalStep;

/// The gaps of all sources that are merged.
pub(super) struct Gaps<'b> {
    gaps: Vec<Gap>,
    held: Held<'b>,
}

/// Whole steps between two values of a field of one source.
struct Gap {
    /// Number of the field in the cells.
    number: u32,
    /// The earlier value; of booleans 0 or 1.
    value: f64,
    /// Start of the first step.
    start_ns: i64,
    /// End of the last step, exclusive.
    end_ns: i64,
}

impl<'b> Gaps<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        Gaps {
            gaps: Vec::new(),
            held: budget.hold(),
        }
    }

    /// Adds the steps between the end of one and the start of a later one, if there are any.
    pub(super) fn add(
        &mut self,
        number: u32,
        value: f64,
        (start_ns, end_ns): (i64, i64),
    ) -> Result<(), EngineError> {
        if start_ns < end_ns {
            self.held.reserve(&mut self.gaps, 1)?;
            self.gaps.push(Gap {
                number,
                value,
                start_ns,
                end_ns,
            });
        }
        Ok(())
    }
}

impl<'b> Grouping<'b, Statistics> {
    /// The cells found. In merged cells, values count for the time for which they hold, also those of sources that have
    /// no value in the cell.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`].
    pub fn finish_merged(mut self, step: LocalStep<'_>) -> Result<Grouped<'b, Statistics>, EngineError> {
        let Gaps { gaps, held } = std::mem::replace(&mut self.gaps, Gaps::new(self.budget));
        let descending = self.cells.wanted.descending;
        let mut found = self.finish()?;
        for gap in &gaps {
            let is_before = |start_ns: i64, bound_ns: i64| match descending {
                true => start_ns >= bound_ns,
                false => start_ns < bound_ns,
            };
            let (first_ns, past_ns) = match descending {
                true => (gap.end_ns, gap.start_ns),
                false => (gap.start_ns, gap.end_ns),
            };
            let first = found
                .cells
                .partition_point(|cell| is_before(cell.start_ns, first_ns));
            let past = found
                .cells
                .partition_point(|cell| is_before(cell.start_ns, past_ns));
            for cell in &mut found.cells[first..past] {
                let ns = step.next_ns(cell.start_ns).saturating_sub(cell.start_ns);
                if let Some(statistics) = cell.value_mut(gap.number) {
                    statistics.hold(gap.value, ns);
                }
            }
        }
        drop(held);
        Ok(found)
    }
}
