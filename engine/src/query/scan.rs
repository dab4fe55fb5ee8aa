//! Pages of raw rows of many sources, in order of (timestamp, sequence) or its exact reverse.
//!
//! Sorted runs (blocks and chunks) are merged. A run is opened when the merge reaches its first row, and its fields are
//! decoded only if one of its rows is on the page. An offset is skipped by the row counts of whole runs, without
//! reading them. An open run keeps only rows that the page may still take, and a processed run keeps none. If very many
//! runs are open, each keeps few rows and is read again for more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::budget::{Budget, Held};
use super::filter::{MetadataFilter, ValueFilter};
use super::page::Page;
use super::run::{Candidate, Open, Part, directed, directed_position};
use super::{Touched, check_stop};
use crate::EngineError;
use crate::snapshot::SeriesSnapshot;

/// Timestamp and sequence of a row: its position among all rows of a bucket.
pub type Position = (i64, u64);

/// A source to scan, and the requested fields.
pub struct Selection<'a> {
    /// The source.
    pub series: &'a SeriesSnapshot,
    /// Requested fields, ascending; `None` for all. Rows that have none of them are skipped.
    pub fields: Option<Arc<[u16]>>,
    /// Select rows by their values.
    pub values: &'a [ValueFilter<'a>],
    /// Decides which rows are included, if not all that have one of the fields.
    pub rows: Option<RowTest<'a>>,
}

impl<'a> Selection<'a> {
    /// All rows of a source that have one of these fields; all rows for `None`.
    pub fn new(series: &'a SeriesSnapshot, fields: Option<Arc<[u16]>>) -> Self {
        Selection {
            series,
            fields,
            values: &[],
            rows: None,
        }
    }
}

/// Returns the number of a field of a row, if the row has it.
pub type RowNumbers<'a> = dyn Fn(u16) -> Option<f64> + 'a;

/// Includes rows that have some of a selection's fields, and others by their numbers.
#[derive(Clone, Copy)]
pub struct RowTest<'a> {
    /// A row with a value of one of these is included.
    pub fields: &'a [u16],
    /// Whether another row is included, by its numbers.
    pub includes: &'a dyn Fn(&RowNumbers<'_>) -> bool,
}

/// A query for a page of rows.
pub struct ScanQuery<'a> {
    /// First and last timestamp, both inclusive.
    pub range_ns: (i64, i64),
    /// Newest first.
    pub descending: bool,
    /// Start after this row, in scan direction.
    pub after: Option<Position>,
    /// Number of rows to skip.
    pub skip: u64,
    /// Maximum number of rows of the page.
    pub limit: usize,
    /// Selects rows by their metadata.
    pub metadata: Option<MetadataFilter<'a>>,
    /// Called before each run, and between metadata texts; if it returns true, the scan ends with
    /// [`EngineError::Stopped`].
    pub stop: &'a dyn Fn() -> bool,
}

/// Maximum number of runs that are open with all their rows.
const OPEN_WHOLE_MAX: usize = 64;
/// Number of rows first read of each further run; four times as many whenever they are used up.
const BATCH_ROWS: usize = 256;

/// Reads a page without a memory limit: for pages known to be small.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true.
pub fn scan(selections: &[Selection<'_>], query: &ScanQuery<'_>) -> Result<Page, EngineError> {
    scan_within(selections, query, &Budget::unlimited()).map(|(page, _)| page)
}

/// Reads a page; also returns its memory reservation.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true,
/// [`EngineError::OverBudget`].
pub fn scan_within<'b>(
    selections: &[Selection<'_>],
    query: &ScanQuery<'_>,
    budget: &'b Budget,
) -> Result<(Page, Held<'b>), EngineError> {
    scan_some(selections, query, u64::MAX, budget)
}

/// Reads a page, or fewer rows: stops before the next run when so many rows were read and none of them can follow any
/// more. The page then has [`Page::reached`]. So a filter that selects few rows does not keep the thread for long.
///
/// # Errors
/// [`EngineError::Damaged`] for a damaged block, [`EngineError::Stopped`] if `stop` returns true,
/// [`EngineError::OverBudget`].
pub fn scan_some<'b>(
    selections: &[Selection<'_>],
    query: &ScanQuery<'_>,
    passed_max: u64,
    budget: &'b Budget,
) -> Result<(Page, Held<'b>), EngineError> {
    if query.range_ns.0 > query.range_ns.1 {
        return Ok((Page::default(), budget.hold()));
    }
    let mut scan = Scan::new(selections, query, budget)?;
    // Rows to be skipped are counted over the whole scan.
    scan.passed_max = if query.skip == 0 { passed_max } else { u64::MAX };
    scan.skip_whole_runs()?;
    scan.merge()?;
    scan.finish()
}

struct Scan<'a, 'b> {
    selections: &'a [Selection<'a>],
    query: &'a ScanQuery<'a>,
    budget: &'b Budget,
    /// Bounds of what is still to be scanned, in scan direction, inclusive.
    range: (i64, i64),
    after: Option<Position>,
    /// Descending by `first`, so that the next one is popped from the end.
    candidates: Vec<Candidate<'a>>,
    /// Opened runs; processed ones are kept only if the page has rows of them.
    open: Vec<Option<Open<'a, 'b>>>,
    /// Free slots in `open`.
    free: Vec<usize>,
    heap: BinaryHeap<Reverse<(Position, usize)>>,
    skip: u64,
    rows: Vec<(u32, u32)>,
    /// Number of rows of processed runs, and when it ends the scan.
    passed: u64,
    passed_max: u64,
    /// All rows up to this position, in scan direction, are processed, if the scan ended early.
    reached: Option<Position>,
    touched: Touched,
    /// For the candidates, the slots, and the rows.
    held: Held<'b>,
}

impl<'a, 'b> Scan<'a, 'b> {
    fn new(
        selections: &'a [Selection<'a>],
        query: &'a ScanQuery<'a>,
        budget: &'b Budget,
    ) -> Result<Self, EngineError> {
        let descending = query.descending;
        let (start, end) = query.range_ns;
        let range = if descending { (!end, !start) } else { (start, end) };
        let after = query.after.map(|after| directed_position(after, descending));
        let range = (
            after.map_or(range.0, |(timestamp, _)| range.0.max(timestamp)),
            range.1,
        );
        let mut held = budget.hold();
        let mut candidates = Vec::new();
        for (selection, Selection { series, fields, .. }) in (0..).zip(selections) {
            let has_no_fields = fields.as_ref().is_some_and(|fields| fields.is_empty());
            if has_no_fields || !series.overlaps(query.range_ns) {
                continue;
            }
            for run in series.live(query.range_ns)?.runs(query.range_ns) {
                let (first_ns, last_ns) = run.bounds_ns();
                let (first, last) = (directed(first_ns, descending), directed(last_ns, descending));
                let (first, last) = (first.min(last), first.max(last));
                if first <= range.1 && last >= range.0 {
                    held.reserve(&mut candidates, 1)?;
                    candidates.push(Candidate {
                        first,
                        last,
                        selection,
                        run,
                    });
                }
            }
        }
        candidates.sort_unstable_by_key(|candidate| Reverse((candidate.first, candidate.selection)));
        Ok(Scan {
            selections,
            query,
            budget,
            range,
            after,
            candidates,
            open: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            skip: query.skip,
            rows: Vec::new(),
            passed: 0,
            passed_max: u64::MAX,
            reached: None,
            touched: Touched::default(),
            held,
        })
    }

    fn selection(&self, candidate: &Candidate<'a>) -> &'a Selection<'a> {
        &self.selections[candidate.selection as usize]
    }

    /// Whether every row of the run within the range is included, as far as is known without reading it.
    fn all_visible(&self, candidate: &Candidate<'a>) -> Result<bool, EngineError> {
        candidate.all_visible(self.selection(candidate), self.query.metadata.is_some())
    }

    /// Moves the start of the range to the latest run boundary that certainly has no more rows before it than are to be
    /// skipped, and subtracts those rows from the count.
    fn skip_whole_runs(&mut self) -> Result<(), EngineError> {
        if self.skip == 0 {
            return Ok(());
        }
        for candidate in &self.candidates {
            if !self.all_visible(candidate)? {
                return Ok(());
            }
        }
        let mut upper_bound = 0u64;
        let mut boundary = self.range.0;
        let mut pending = 0u64;
        for candidate in self.candidates.iter().rev() {
            if candidate.first > boundary {
                upper_bound += std::mem::take(&mut pending);
                if upper_bound > self.skip {
                    break;
                }
                boundary = candidate.first;
            }
            pending += candidate.rows();
        }
        if boundary == self.range.0 {
            return Ok(());
        }
        let mut before = 0u64;
        let mut candidates = std::mem::take(&mut self.candidates);
        let mut failed = None;
        candidates.retain(|candidate| {
            let inside = candidate.first >= self.range.0 && self.after.is_none();
            if candidate.first >= boundary || failed.is_some() {
                return true;
            }
            if candidate.last < boundary && inside {
                before += candidate.rows();
                return false;
            }
            match self.rows_before(candidate, boundary) {
                Ok(rows) => before += rows,
                Err(error) => failed = Some(error),
            }
            candidate.last >= boundary
        });
        self.candidates = candidates;
        if let Some(error) = failed {
            return Err(error);
        }
        self.skip -= before;
        self.range.0 = boundary;
        Ok(())
    }

    /// Number of rows of a run within the range and before `boundary`.
    fn rows_before(&mut self, candidate: &Candidate<'a>, boundary: i64) -> Result<u64, EngineError> {
        check_stop(self.query.stop)?;
        let cache = self.selection(candidate).series.cache();
        let timestamps = candidate
            .run
            .open(cache, &mut self.budget.hold())?
            .timestamps_ns()?;
        self.touched.rows += timestamps.len() as u64;
        self.touched.blocks += candidate.is_block();
        let skipped = |timestamp: &&i64| {
            (self.range.0..boundary).contains(&directed(**timestamp, self.query.descending))
        };
        Ok(timestamps.iter().filter(skipped).count() as u64)
    }

    /// One row more than the page shows whether more follow.
    fn wanted(&self) -> usize {
        self.query.limit.saturating_add(1)
    }

    fn merge(&mut self) -> Result<(), EngineError> {
        while self.rows.len() < self.wanted() {
            while let Some(candidate) = self.candidates.last() {
                let reached = self
                    .heap
                    .peek()
                    .is_none_or(|Reverse(((first, _), _))| candidate.first <= *first);
                if !reached {
                    break;
                }
                if self.passed >= self.passed_max {
                    self.reached = Some((candidate.first.saturating_sub(1), u64::MAX));
                    return Ok(());
                }
                if let Some(candidate) = self.candidates.pop() {
                    self.open_run(candidate)?;
                }
            }
            let Some(Reverse((_, index))) = self.heap.pop() else {
                break;
            };
            // Only this run is read up to the next row of another one.
            let others = self.heap.peek().map(|Reverse((position, _))| *position);
            let unopened = self.candidates.last().map(|candidate| (candidate.first, 0));
            let until = [others, unopened].into_iter().flatten().min();
            self.take_rows(index, until)?;
        }
        Ok(())
    }

    /// The part to read of a run that was read `reads` times and processed up to `after`.
    fn part(&self, reads: u32, after: Option<Position>) -> Part<'a> {
        // No run contributes more rows to the page than are still missing.
        let missing = (self.wanted() - self.rows.len()) as u64;
        let needed = usize::try_from(self.skip.saturating_add(missing)).unwrap_or(usize::MAX);
        let rows_max = match self.open.len() - self.free.len() <= OPEN_WHOLE_MAX {
            true => needed,
            false => needed.min(BATCH_ROWS.saturating_mul(4usize.saturating_pow(reads))),
        };
        Part {
            descending: self.query.descending,
            range: self.range,
            after,
            rows_max,
            filter: self.query.metadata,
            stop: self.query.stop,
        }
    }

    fn open_run(&mut self, candidate: Candidate<'a>) -> Result<(), EngineError> {
        check_stop(self.query.stop)?;
        self.touched.rows += candidate.rows();
        self.touched.blocks += candidate.is_block();
        let part = self.part(0, self.after);
        let open = candidate.open(self.selection(&candidate), &part, self.budget)?;
        let Some(position) = open.position() else {
            self.passed += candidate.rows();
            return Ok(());
        };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                // Reserves a slot in the heap as well, and possibly one in the free list.
                if self.open.len() == self.open.capacity() {
                    let places = (self.open.len() / 2).max(4);
                    self.held
                        .grow(places * (size_of::<Reverse<(Position, usize)>>() + size_of::<usize>()))?;
                }
                self.held.reserve(&mut self.open, 1)?;
                self.open.push(None);
                self.open.len() - 1
            }
        };
        self.open[index] = Some(open);
        self.heap.push(Reverse((position, index)));
        Ok(())
    }

    /// Takes the next row of a run, which precedes those of all others, and further ones up to `until`, exclusive, or
    /// until the page is full. The next row is taken even if another run has one with the same time and sequence: only
    /// damage causes that, and otherwise two such runs would wait for each other forever.
    fn take_rows(&mut self, index: usize, until: Option<Position>) -> Result<(), EngineError> {
        let Some(mut open) = self.open[index].take() else {
            return Ok(());
        };
        let wanted = self.wanted();
        let mut is_next = true;
        while self.rows.len() < wanted {
            let Some(found) = open.rows.get(open.next).copied() else {
                let last = open.rows.last().map(|found| found.position);
                if !open.more {
                    break;
                }
                check_stop(self.query.stop)?;
                self.touched.rows += open.candidate.rows();
                let part = self.part(open.reads, last.or(self.after));
                open.read(self.selection(&open.candidate), &part, self.budget)?;
                continue;
            };
            if !is_next && until.is_some_and(|until| found.position >= until) {
                self.heap.push(Reverse((found.position, index)));
                self.open[index] = Some(open);
                return Ok(());
            }
            is_next = false;
            open.next += 1;
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            // The row beyond the page is only counted.
            open.taken += usize::from(self.rows.len() + 1 < wanted);
            if self.rows.len() == self.rows.capacity() {
                self.held.reserve(&mut self.rows, 64)?;
            }
            self.rows.push((index as u32, found.row));
        }
        // Processed, or no longer needed.
        self.passed += open.candidate.rows();
        open.close();
        if open.taken > 0 {
            self.open[index] = Some(open);
        } else {
            self.free.push(index);
        }
        Ok(())
    }

    /// Decodes the fields of the runs that are on the page.
    fn finish(mut self) -> Result<(Page, Held<'b>), EngineError> {
        let descending = self.query.descending;
        let mut page = Page {
            more: self.rows.len() > self.query.limit || self.reached.is_some(),
            reached: self.reached.map(|reached| directed_position(reached, descending)),
            touched: self.touched,
            ..Page::default()
        };
        self.rows.truncate(self.query.limit);
        self.candidates = Vec::new();
        let held = page.fill(
            self.rows,
            self.open,
            self.selections,
            self.query.stop,
            self.budget,
        )?;
        drop(self.held);
        Ok((page, held))
    }
}
