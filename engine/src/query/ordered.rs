//! The rows of one source in order of (timestamp, sequence), read column by column: a run that overlaps no other is
//! read as it is stored; runs that overlap are merged page by page.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::budget::{Budget, Held};
use super::filter::{may_include, passing};
use super::group::GroupQuery;
use super::reader::{Run, RunReader};
use super::scan::{Position, ScanQuery, Selection, scan_within};
use super::{Touched, check_stop};
use crate::EngineError;
use crate::column::Column;
use crate::columns::Columns;
use crate::snapshot::SeriesSnapshot;
use crate::times::Times;

/// Number of rows of overlapping runs that are merged at a time.
const PAGE_ROWS: usize = 16_384;

/// Consecutive rows of a source.
pub(super) struct Batch<'a> {
    pub(super) runs: Vec<BatchRun<'a>>,
    /// The rows in order: the index of a run, and rows of it that follow each other.
    pub(super) stretches: Vec<(usize, Range<usize>)>,
}

/// A run of a batch.
pub(super) struct BatchRun<'a> {
    reader: RunReader<'a>,
    pub(super) times: Times<'a>,
    sequences: Cow<'a, [u64]>,
    /// The rows that pass the filters; `None` for all.
    pub(super) passes: Option<Vec<bool>>,
}

impl BatchRun<'_> {
    /// The column of a field, decoded; `held` grows by its memory.
    pub(super) fn column(
        &self,
        field: u16,
        held: &mut Held<'_>,
    ) -> Result<Option<Cow<'_, Column>>, EngineError> {
        // The size of a column of numbers, the most common type.
        let expected = self.reader.decoded_bytes(self.reader.rows() * size_of::<f64>());
        held.grow(expected)?;
        let column = self.reader.field(field)?;
        let bytes = column.as_ref().map_or(0, |column| column.memory_bytes());
        held.grow(self.reader.decoded_bytes(bytes).saturating_sub(expected))?;
        Ok(column)
    }

    /// The position of a row among all rows of the bucket.
    pub(super) fn position(&self, row: usize) -> Position {
        (self.times.get(row), self.sequences[row])
    }
}

/// Calls `each` with the rows of a source in ascending order, until it returns false.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true,
/// [`EngineError::OverBudget`], and those of `each`.
pub(super) fn in_order(
    series: &SeriesSnapshot,
    query: &GroupQuery<'_>,
    budget: &Budget,
    mut each: impl FnMut(&Batch<'_>, Touched) -> Result<bool, EngineError>,
) -> Result<(), EngineError> {
    let range_ns = query.range_ns;
    if range_ns.0 > range_ns.1 || query.fields.is_empty() {
        return Ok(());
    }
    let live = series.live(range_ns)?;
    let mut held = budget.hold();
    let mut runs = Vec::new();
    for run in live.runs(range_ns) {
        held.reserve(&mut runs, 1)?;
        runs.push(run);
    }
    runs.sort_by_key(|run| run.bounds_ns().0);
    let mut rest = &runs[..];
    while let Some((first, others)) = rest.split_first() {
        // The runs that overlap the first one, or others that do.
        let mut last_ns = first.bounds_ns().1;
        let overlaps = |run: &&Run<'_>| {
            let (start, end) = run.bounds_ns();
            let overlaps = start <= last_ns;
            last_ns = last_ns.max(end);
            overlaps
        };
        let overlapping = others.iter().take_while(overlaps).count();
        let goes_on = match overlapping {
            0 => single(*first, series, query, budget, &mut each)?,
            _ => {
                let end_ns = rest[..=overlapping].iter().map(|run| run.bounds_ns().1).max();
                let within = (
                    first.bounds_ns().0.max(range_ns.0),
                    end_ns.unwrap_or(last_ns).min(range_ns.1),
                );
                merged(within, series, query, budget, &mut each)?
            }
        };
        if !goes_on {
            break;
        }
        rest = &rest[1 + overlapping..];
    }
    Ok(())
}

/// Calls `each` with the rows of one run, in ascending order.
///
/// # Errors
/// As for [`in_order`].
pub(super) fn single(
    run: Run<'_>,
    series: &SeriesSnapshot,
    query: &GroupQuery<'_>,
    budget: &Budget,
    each: &mut impl FnMut(&Batch<'_>, Touched) -> Result<bool, EngineError>,
) -> Result<bool, EngineError> {
    check_stop(query.stop)?;
    let cache = series.cache();
    let has_any = match run {
        Run::Block(entry) => {
            let summary = &entry.block(cache)?.summary;
            let is_there = |field: &u16| summary.field(*field).is_some();
            query.fields.iter().any(is_there) && may_include(query.values, summary)
        }
        Run::Chunk(chunk) => query.fields.iter().any(|field| chunk.field(*field).is_some()),
    };
    if !has_any {
        return Ok(true);
    }
    let mut held = budget.hold();
    let reader = run.open(cache, &mut held)?;
    held.grow(reader.decoded_bytes(run.rows() * size_of::<Position>()))?;
    let passes = match query.is_filtered() {
        true => {
            held.grow(run.rows())?;
            Some(passing(
                &reader,
                query.metadata,
                query.values,
                query.stop,
                budget,
            )?)
        }
        false => None,
    };
    let times = reader.times()?;
    let rows = times.within(query.range_ns);
    let touched = Touched {
        rows: rows.len() as u64,
        blocks: u64::from(matches!(run, Run::Block(_))),
        cells: 0,
    };
    let batch = Batch {
        stretches: vec![(0, rows)],
        runs: vec![BatchRun {
            sequences: reader.sequences()?,
            reader,
            times,
            passes,
        }],
    };
    each(&batch, touched)
}

/// The rows of runs that overlap, within a range.
fn merged(
    range_ns: (i64, i64),
    series: &SeriesSnapshot,
    query: &GroupQuery<'_>,
    budget: &Budget,
    each: &mut impl FnMut(&Batch<'_>, Touched) -> Result<bool, EngineError>,
) -> Result<bool, EngineError> {
    let selection = [Selection {
        series,
        fields: Some(Arc::from(query.fields)),
        values: query.values,
        rows: None,
    }];
    let mut after = None;
    loop {
        let scan = ScanQuery {
            range_ns,
            descending: false,
            after,
            skip: 0,
            limit: PAGE_ROWS,
            metadata: query.metadata,
            stop: query.stop,
        };
        let (page, mut held) = scan_within(&selection, &scan, budget)?;
        let mut stretches: Vec<(usize, Range<usize>)> = Vec::new();
        for (run, row) in &page.rows {
            let (run, row) = (*run as usize, *row as usize);
            match stretches.last_mut() {
                Some((last, rows)) if *last == run && rows.end == row => rows.end += 1,
                _ => {
                    held.reserve(&mut stretches, 1)?;
                    stretches.push((run, row..row + 1));
                }
            }
        }
        let batch = Batch {
            runs: page.runs.iter().map(|run| of_page(&run.columns)).collect(),
            stretches,
        };
        if !each(&batch, page.touched)? {
            return Ok(false);
        }
        let last = page.rows.last();
        after = last.map(|(run, row)| page.runs[*run as usize].columns.key(*row as usize));
        if !page.more || after.is_none() {
            return Ok(true);
        }
    }
}

fn of_page(columns: &Columns) -> BatchRun<'_> {
    BatchRun {
        reader: RunReader::Chunk(columns),
        times: Times::Listed(Cow::Borrowed(&columns.timestamps_ns)),
        sequences: Cow::Borrowed(&columns.sequences),
        passes: None,
    }
}
