//! A grouped answer of one source as a whole, for questions that are known to be small.

use super::Touched;
use super::budget::Budget;
use super::cells::Wanted;
use super::group::{GroupQuery, Grouping};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::snapshot::SeriesSnapshot;

/// All cells with rows of one source, ascending by start; `aggregates` has one entry for each cell and field, cell by
/// cell. For questions with few of both; what may be large is asked by a [`Grouping`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Groups {
    /// Start of each cell.
    pub starts_ns: Vec<i64>,
    /// Aggregates of the fields asked for, in their order, for each cell.
    pub aggregates: Vec<Aggregate>,
    /// What was read.
    pub touched: Touched,
}

impl Groups {
    /// The aggregates of the `index`-th cell.
    pub fn cell(&self, index: usize) -> &[Aggregate] {
        let fields = self
            .aggregates
            .len()
            .checked_div(self.starts_ns.len())
            .unwrap_or(0);
        &self.aggregates[index * fields..(index + 1) * fields]
    }
}

/// Groups one source's rows.
///
/// # Errors
/// [`EngineError::Corrupt`] for a damaged block, [`EngineError::Stopped`] when `stop` says so.
pub fn group(series: &SeriesSnapshot, query: &GroupQuery<'_>) -> Result<Groups, EngineError> {
    let budget = Budget::unlimited();
    let mut grouping = Grouping::new(Wanted::ALL, &budget);
    grouping.add(0, series, query, None)?;
    let found = grouping.finish()?;
    let mut groups = Groups {
        starts_ns: Vec::with_capacity(found.cells.len()),
        aggregates: vec![Aggregate::default(); found.cells.len() * query.fields.len()],
        touched: found.touched,
    };
    for (index, cell) in found.cells.iter().enumerate() {
        groups.starts_ns.push(cell.start_ns);
        for (field, aggregate) in cell.values() {
            groups.aggregates[index * query.fields.len() + field as usize] = *aggregate;
        }
    }
    Ok(groups)
}
