//! Which of some values a series has.

use std::collections::HashSet;

use super::budget::Budget;
use super::check_stop;
use crate::EngineError;
use crate::rows::KnownValues;
use crate::snapshot::SeriesSnapshot;

/// The values of these fields at these times, sorted, that a series has. Reads the blocks whose bounds include one of
/// the times.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop`, which is called before each block,
/// returns true.
pub fn present(
    series: &SeriesSnapshot,
    times_ns: &[i64],
    fields: &[u16],
    stop: &dyn Fn() -> bool,
) -> Result<KnownValues, EngineError> {
    let mut found = KnownValues::new();
    let (Some(first), Some(last)) = (times_ns.first(), times_ns.last()) else {
        return Ok(found);
    };
    let range_ns = (*first, *last);
    let wanted: HashSet<i64> = times_ns.iter().copied().collect();
    let budget = Budget::unlimited();
    for run in series.live(range_ns)?.runs(range_ns) {
        check_stop(stop)?;
        let (first, last) = run.bounds_ns();
        let next = times_ns.partition_point(|time_ns| *time_ns < first);
        if times_ns.get(next).is_none_or(|time_ns| *time_ns > last) {
            continue;
        }
        let reader = run.open(series.cache(), &mut budget.hold())?;
        let timestamps_ns = reader.timestamps_ns()?;
        let rows: Vec<usize> = (0..timestamps_ns.len())
            .filter(|row| wanted.contains(&timestamps_ns[*row]))
            .collect();
        if rows.is_empty() {
            continue;
        }
        for field in fields {
            if let Some(column) = reader.field(*field)? {
                let there = rows.iter().filter(|row| column.has(**row));
                found.extend(there.map(|row| (timestamps_ns[*row], *field)));
            }
        }
    }
    Ok(found)
}
