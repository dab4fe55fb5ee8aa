//! The points of an export, in pages.

use engine::EngineError;
use engine::query::{Page, Position, scan_some};

use super::super::Answer;
use super::super::plan::Tests;
use super::super::raw::position;
use super::super::result::{Points, QueryResult};
use super::{Shared, WriteExport};
use crate::error::{ErrorKind, ServiceError};
use crate::query_pool::Stop;

/// Rows of the first page: few, since nothing is known of their size. Later pages have up to four times as many as the one
/// before.
const ROWS_FIRST: usize = 512;
/// Rows of a page, at most.
const ROWS_MAX: usize = 1 << 20;
/// Pages are made to have about this size. The larger they are, the fewer times a block is read from which a page takes
/// only some rows, as when many sources have points at the same time.
const PAGE_BYTES: usize = 4 << 20;
/// A page that is larger than this is read again for its next rows, instead of being kept while the client takes a piece.
const KEPT_BYTES_MAX: usize = 6 << 20;
/// Divisor for the number of rows to read if they exceed the memory limit.
const FEWER_ROWS: usize = 8;
/// A turn ends when it has passed over this many rows, even if few of them were selected.
const TURN_ROWS_MAX: u64 = 4 << 20;

/// How much of the points is written.
pub(super) struct PointsProgress {
    /// The page from which rows are being written.
    page: Option<StartedPage>,
    /// Position of the last row written or passed over.
    last: Option<Position>,
    /// Number of rows to read next.
    next_rows: usize,
    /// Whether no rows follow the page.
    is_at_end: bool,
}

struct StartedPage {
    page: Page,
    /// Number of rows written.
    written: usize,
    bytes: usize,
}

impl PointsProgress {
    pub(super) fn new() -> Self {
        PointsProgress {
            page: None,
            last: None,
            next_rows: ROWS_FIRST,
            is_at_end: false,
        }
    }
}

impl Shared {
    /// Writes rows until the answer is full. Returns whether there are no more.
    pub(super) fn write_points(
        &self,
        progress: &mut PointsProgress,
        writer: &mut dyn WriteExport,
        answer: &mut Answer<'_>,
        stop: &Stop,
    ) -> Result<bool, ServiceError> {
        let (mut passed, bytes_before) = (0, answer.len());
        while !answer.is_full() {
            if progress.page.is_none() {
                if progress.is_at_end {
                    return Ok(true);
                }
                if passed >= TURN_ROWS_MAX {
                    break;
                }
                match self.read_page(progress, stop) {
                    Ok(started) => {
                        passed += started.page.touched.rows;
                        progress.page = Some(started);
                    }
                    // What is written goes out; the next turn meets the error again, and can be repeated.
                    Err(error) if error.kind == ErrorKind::Unavailable && answer.len() > bytes_before => {
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            let Some(started) = &mut progress.page else { break };
            let rows = started.page.rows.len();
            if started.written < rows {
                let points = Points {
                    plan: &self.plan,
                    page: &started.page,
                    series: &self.found.series,
                    skipped: started.written,
                    rows_before: 0,
                    end: None,
                };
                started.written += writer.write(&QueryResult::Points(points), answer)?;
                progress.last = position(&started.page, started.written).or(progress.last);
            }
            if started.written == rows {
                progress.last = started.page.reached.or(progress.last);
                progress.is_at_end = !started.page.more;
                progress.page = None;
            }
        }
        progress.page.take_if(|started| started.bytes > KEPT_BYTES_MAX);
        Ok(false)
    }

    /// Reads the next page; fewer rows if they would exceed the memory limit.
    fn read_page(&self, progress: &mut PointsProgress, stop: &Stop) -> Result<StartedPage, ServiceError> {
        let (plan, budget) = (&self.plan, stop.budget());
        let mut selections_held = budget.hold();
        let mut selections = Vec::new();
        selections_held.reserve(&mut selections, self.found.series.len())?;
        let tests = Tests::of(plan);
        let (filters, results) = (tests.filters(plan), plan.results());
        let series = self.found.series.iter();
        selections.extend(series.map(|series| plan.points(series, &filters, &results)));
        let filter = |text: Option<&str>| plan.passes(text);
        let stop_now = || stop.now();
        loop {
            let query = plan.scan_from(progress.last, progress.next_rows, &filter, &stop_now);
            match scan_some(&selections, &query, TURN_ROWS_MAX / 4, budget) {
                Err(EngineError::OverBudget { .. }) if progress.next_rows > 1 => {
                    progress.next_rows = (progress.next_rows / FEWER_ROWS).max(1);
                }
                scanned => {
                    let (page, held) = scanned?;
                    stop.touched(page.touched);
                    let (rows, bytes) = (page.rows.len(), held.bytes());
                    if rows == progress.next_rows {
                        let fitting = rows.saturating_mul(PAGE_BYTES) / bytes.max(1);
                        progress.next_rows = fitting.clamp(1, rows.saturating_mul(4).min(ROWS_MAX));
                    }
                    let written = 0;
                    return Ok(StartedPage { page, written, bytes });
                }
            }
        }
    }
}
