//! The values of a field of one series in order of time.

use super::budget::Budget;
use super::group::GroupQuery;
use super::ordered::in_order;
use super::reader::Run;
use super::scan::Position;
use crate::EngineError;
use crate::column::Values;
use crate::ends::ENDED_SERIES;
use crate::snapshot::SeriesSnapshot;
use crate::step::Step;

/// Calls `each` with the positions and values of a field in the range (UTC nanoseconds, both ends inclusive), in order of
/// time and then of arrival. Booleans are 0 or 1; texts are left out.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop`, which is called before each block,
/// returns true, [`EngineError::OverBudget`].
pub fn for_each_value(
    series: &SeriesSnapshot,
    field: u16,
    range_ns: (i64, i64),
    budget: &Budget,
    stop: &dyn Fn() -> bool,
    mut each: impl FnMut(Position, f64),
) -> Result<(), EngineError> {
    let query = GroupQuery {
        range_ns,
        step: Step::From(0).into(),
        fields: &[field],
        metadata: None,
        values: &[],
        stop,
    };
    in_order(series, &query, budget, |batch, _| {
        let mut held = budget.hold();
        let mut columns = Vec::with_capacity(batch.runs.len());
        for run in &batch.runs {
            columns.push(run.column(field, &mut held)?);
        }
        for (run, rows) in &batch.stretches {
            let Some(column) = &columns[*run] else { continue };
            let run = &batch.runs[*run];
            let present = rows.clone().filter(|row| column.has(*row));
            match &column.values {
                Values::Numbers { values, .. } => {
                    present.for_each(|row| each(run.position(row), values[row]))
                }
                Values::Booleans(values) => {
                    present.for_each(|row| each(run.position(row), f64::from(u8::from(values[row]))));
                }
                Values::Texts(_) => {}
            }
        }
        Ok(true)
    })
}

/// Calls `each` with the position of each end in the range, both ends inclusive, in order of time and then of arrival, and
/// with the ordinal of the series that ended. `ends`: those of a source, by [`View::ends`](crate::View::ends).
///
/// # Errors
/// As for [`for_each_value`].
pub fn for_each_end(
    ends: &SeriesSnapshot,
    range_ns: (i64, i64),
    budget: &Budget,
    stop: &dyn Fn() -> bool,
    mut each: impl FnMut(Position, u32),
) -> Result<(), EngineError> {
    for_each_value(ends, ENDED_SERIES, range_ns, budget, stop, |position, ordinal| {
        each(position, ordinal as u32);
    })
}

/// Whether a series may have values of a field in the range, both ends inclusive, as far as summaries of its blocks tell.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block.
pub fn may_have_values(
    series: &SeriesSnapshot,
    field: u16,
    range_ns: (i64, i64),
) -> Result<bool, EngineError> {
    for run in series.live(range_ns)?.runs(range_ns) {
        let has = match run {
            Run::Block(entry) => entry.block(series.cache())?.summary.field(field).is_some(),
            Run::Chunk(chunk) => chunk.field(field).is_some(),
        };
        if has {
            return Ok(true);
        }
    }
    Ok(false)
}
