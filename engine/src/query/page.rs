//! The rows of a scan with their values: runs are read again, and only the rows on the page are kept.

use std::sync::Arc;

use super::budget::{Budget, Held};
use super::run::Open;
use super::scan::{Position, Selection};
use super::{Touched, check_stop};
use crate::EngineError;
use crate::columns::Columns;

/// A page of rows. `rows` are pairs of (index in `runs`, row in that run), in order.
#[derive(Default)]
pub struct Page {
    /// The runs that contain the page's rows.
    pub runs: Vec<PageRun>,
    /// The rows.
    pub rows: Vec<(u32, u32)>,
    /// Whether at least one more row follows; if the scan ended early, whether one may.
    pub more: bool,
    /// If the scan ended early, a position up to which all rows are processed.
    pub reached: Option<Position>,
    /// What was read.
    pub touched: Touched,
}

/// Rows of one source: at least those on the page, with at least the requested fields that they have.
pub struct PageRun {
    /// The source's ordinal.
    pub source: u32,
    /// Index of its selection.
    pub selection: usize,
    /// The rows.
    pub columns: Arc<Columns>,
}

impl Page {
    /// Reads the given rows, as pairs of run index and row, in page order; returns their memory reservation.
    pub(super) fn fill<'b>(
        &mut self,
        mut rows: Vec<(u32, u32)>,
        open: Vec<Option<Open<'_, 'b>>>,
        selections: &[Selection<'_>],
        stop: &dyn Fn() -> bool,
        budget: &'b Budget,
    ) -> Result<Held<'b>, EngineError> {
        let mut held = budget.hold();
        // For the rows of each run, and for the page.
        held.grow(rows.len() * 2 * size_of::<(u32, u32)>())?;
        let mut picks: Vec<Vec<(u32, u32)>> = Vec::new();
        held.reserve(&mut picks, open.len())?;
        picks.resize_with(open.len(), Vec::new);
        for (picks, open) in picks.iter_mut().zip(&open) {
            picks.reserve_exact(open.as_ref().map_or(0, |open| open.taken));
        }
        for (run, row) in &mut rows {
            let picks = &mut picks[*run as usize];
            picks.push((0, *row));
            // From here on, the row's index among the run's rows on the page.
            *row = picks.len() as u32 - 1;
        }
        let mut places = vec![0u32; open.len()];
        let mut whole = vec![false; open.len()];
        for (index, open) in open.into_iter().enumerate() {
            let Some(open) = open.filter(|open| open.taken > 0) else {
                continue;
            };
            check_stop(stop)?;
            let candidate = &open.candidate;
            let selection = &selections[candidate.selection as usize];
            let (columns, all) = candidate.columns(selection, &picks[index], &mut held, budget)?;
            whole[index] = all;
            places[index] = self.runs.len() as u32;
            held.reserve(&mut self.runs, 1)?;
            self.runs.push(PageRun {
                source: selection.series.source,
                selection: candidate.selection as usize,
                columns,
            });
        }
        self.rows = rows
            .into_iter()
            .map(|(run, pick)| {
                let run = run as usize;
                let row = match whole[run] {
                    true => picks[run][pick as usize].1,
                    false => pick,
                };
                (places[run], row)
            })
            .collect();
        Ok(held)
    }
}
