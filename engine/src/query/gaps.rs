//! Values that hold through steps in which their own series has none, while others that are merged with it have some.
//! Which steps these are is known when all series are read.

use super::budget::{Budget, Held};
use super::group::{Grouped, Grouping};
use super::statistics::Statistics;
use crate::EngineError;
use crate::local_step::LocalStep;

/// The gaps of all series that are merged.
pub(super) struct Gaps<'b> {
    gaps: Vec<Gap>,
    held: Held<'b>,
}

/// Whole steps between two values of a field of one series.
struct Gap {
    /// Number of the cells to which the series is added.
    source: u32,
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
        (source, number): (u32, u32),
        value: f64,
        (start_ns, end_ns): (i64, i64),
    ) -> Result<(), EngineError> {
        if start_ns < end_ns {
            self.held.reserve(&mut self.gaps, 1)?;
            self.gaps.push(Gap {
                source,
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
        let mut starts_ns: Vec<i64> = found.cells.iter().map(|cell| cell.start_ns).collect();
        if descending {
            starts_ns.reverse();
        }
        starts_ns.dedup();
        for gap in &gaps {
            let first = starts_ns.partition_point(|start_ns| *start_ns < gap.start_ns);
            let past = starts_ns.partition_point(|start_ns| *start_ns < gap.end_ns);
            for start_ns in &starts_ns[first..past.max(first)] {
                let key = (*start_ns, gap.source);
                let place = found.cells.binary_search_by(|cell| {
                    let order = (cell.start_ns, cell.source).cmp(&key);
                    if descending { order.reverse() } else { order }
                });
                let Ok(place) = place else { continue };
                let ns = step.next_ns(*start_ns).saturating_sub(*start_ns);
                if let Some(statistics) = found.cells[place].value_mut(gap.number) {
                    statistics.hold(gap.value, ns);
                }
            }
        }
        drop(held);
        Ok(found)
    }
}
