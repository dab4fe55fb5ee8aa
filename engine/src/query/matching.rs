//! Which rows of a run a filter selects, by time, metadata and values: for counting and deleting points.

use super::budget::Budget;
use super::check_stop;
use super::filter::{may_include, passing};
use super::group_rows::rows_within;
use super::reader::Run;
use crate::EngineError;
use crate::cache::Cache;
use crate::deletion::RowFilters;
use crate::snapshot::SeriesSnapshot;

/// The selected rows of a run.
pub(crate) enum Matching {
    None,
    All,
    /// Whether each row is selected; at least one is, and one is not.
    Some(Vec<bool>),
}

/// Finds the selected rows of a run. Reads it only if its bounds do not decide.
pub(crate) fn matching(
    run: Run<'_>,
    (start, end): (i64, i64),
    filters: &RowFilters<'_>,
    cache: &Cache,
    stop: &dyn Fn() -> bool,
    budget: &Budget,
) -> Result<Matching, EngineError> {
    let (first, last) = run.bounds_ns();
    if first > end || last < start {
        return Ok(Matching::None);
    }
    let filters_rows = filters.metadata.is_some() || !filters.values.is_empty();
    if !filters_rows && start <= first && last <= end {
        return Ok(Matching::All);
    }
    if let Run::Block(entry) = run
        && !filters.values.is_empty()
        && !may_include(filters.values, &entry.block(cache)?.summary)
    {
        return Ok(Matching::None);
    }
    let mut held = budget.reserve(run.rows() * (1 + size_of::<i64>()))?;
    let reader = run.open(cache, &mut held)?;
    let within = rows_within(&reader.timestamps_ns()?, (start, end));
    let mut selected = match filters_rows && !within.is_empty() {
        true => passing(&reader, filters.metadata, filters.values, stop, budget)?,
        false => vec![true; run.rows()],
    };
    selected[..within.start].fill(false);
    selected[within.end..].fill(false);
    Ok(match selected.iter().filter(|selected| **selected).count() {
        0 => Matching::None,
        count if count == selected.len() => Matching::All,
        _ => Matching::Some(selected),
    })
}

/// Number of a source's points in the range, both ends inclusive, that these filters select. Without filters, only blocks
/// that contain an end of the range are read.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true,
/// [`EngineError::OverBudget`].
pub fn count_matching(
    series: &SeriesSnapshot,
    range_ns: (i64, i64),
    filters: &RowFilters<'_>,
    stop: &dyn Fn() -> bool,
    budget: &Budget,
) -> Result<u64, EngineError> {
    let mut count = 0;
    for run in series.live(range_ns)?.runs(range_ns) {
        check_stop(stop)?;
        count += match matching(run, range_ns, filters, series.cache(), stop, budget)? {
            Matching::None => 0,
            Matching::All => run.rows() as u64,
            Matching::Some(selected) => selected.iter().filter(|selected| **selected).count() as u64,
        };
    }
    Ok(count)
}
