//! The complete grouped result of one source, for queries that are known to be small.

use super::Touched;
use super::budget::Budget;
use super::cells::Wanted;
use super::group::{GroupQuery, Grouping};
use crate::EngineError;
use crate::aggregate::Aggregate;
use crate::snapshot::SeriesSnapshot;

/// All cells of one source that have rows, ascending by start; `aggregates` has one entry per cell and field, cell by
/// cell. For queries with few of both; others should use a [`Grouping`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Groups {
    /// Start of each cell.
    pub starts_ns: Vec<i64>,
    /// Aggregates of the requested fields, in their order, for each cell.
    pub aggregates: Vec<Aggregate>,
    /// What was read.
    pub touched: Touched,
}

impl Groups {
    /// The aggregates of the `index`-th cell.
    pub fn cell(&self, index: usize) -> &[Aggregate] {
        let (aggregates, cells) = (self.aggregates.len(), self.starts_ns.len());
        let fields = aggregates.checked_div(cells).unwrap_or(0);
        &self.aggregates[index * fields..(index + 1) * fields]
    }
}

/// Groups one source's rows.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true.
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
