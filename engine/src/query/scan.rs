//! Pages of raw rows of many sources, in order of (timestamp, sequence) or its exact reverse.
//!
//! Sorted runs (blocks and chunks) are merged; a run is opened when the merge reaches its first row, and its fields
//! are decoded only if a row of it is on the page. An offset is passed over by the row counts of whole runs: what is
//! skipped is not read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::run::{Candidate, Open, Origin, directed};
use super::{MetadataFilter, Touched};
use crate::EngineError;
use crate::block::BlockReader;
use crate::columns::Columns;
use crate::snapshot::SeriesSnapshot;

/// Timestamp and sequence of a row: its place among all rows of a bucket.
pub type Position = (i64, u64);

/// A source to scan and the fields wanted of it.
pub struct Selection<'a> {
    /// The source.
    pub series: &'a SeriesSnapshot,
    /// Fields wanted, ascending; `None` for all. A row without any of them is not a row.
    pub fields: Option<Vec<u16>>,
}

/// A page of rows.
pub struct ScanQuery<'a> {
    /// First and last timestamp, both inclusive.
    pub range_ns: (i64, i64),
    /// Newest first.
    pub descending: bool,
    /// Begin behind this row, in the direction of the scan.
    pub after: Option<Position>,
    /// Rows to pass over.
    pub skip: u64,
    /// Most rows of the page.
    pub limit: usize,
    /// Which rows count, by their metadata.
    pub metadata: Option<MetadataFilter<'a>>,
    /// Asked before each run, and between metadata texts; `true` ends the scan with [`EngineError::Stopped`].
    pub stop: &'a dyn Fn() -> bool,
}

/// Rows found. `rows` are pairs of (index in `runs`, row in that run), in order.
#[derive(Default)]
pub struct Page {
    /// Runs that rows of the page come from.
    pub runs: Vec<PageRun>,
    /// The rows.
    pub rows: Vec<(u32, u32)>,
    /// Whether at least one more row follows.
    pub more: bool,
    /// What was read.
    pub touched: Touched,
}

/// Rows of one source: at least the fields wanted.
pub struct PageRun {
    /// The source's ordinal.
    pub source: u32,
    /// The rows.
    pub columns: Arc<Columns>,
}

/// Answers a page.
///
/// # Errors
/// [`EngineError::Corrupt`] for a damaged block, [`EngineError::Stopped`] when `stop` says so.
pub fn scan(selections: &[Selection<'_>], query: &ScanQuery<'_>) -> Result<Page, EngineError> {
    if query.range_ns.0 > query.range_ns.1 {
        return Ok(Page::default());
    }
    let mut scan = Scan::new(selections, query)?;
    scan.skip_whole_runs()?;
    scan.merge()?;
    scan.finish()
}

struct Scan<'a> {
    selections: &'a [Selection<'a>],
    query: &'a ScanQuery<'a>,
    /// Directed bounds of what is still to be scanned, inclusive.
    range: (i64, i64),
    after: Option<Position>,
    /// Descending by `first`, so that the next one is popped from the end.
    candidates: Vec<Candidate<'a>>,
    open: Vec<Open<'a>>,
    heap: BinaryHeap<Reverse<(Position, usize)>>,
    skip: u64,
    rows: Vec<(u32, u32)>,
    touched: Touched,
}

impl<'a> Scan<'a> {
    fn new(selections: &'a [Selection<'a>], query: &'a ScanQuery<'a>) -> Result<Self, EngineError> {
        let descending = query.descending;
        let (start, end) = query.range_ns;
        let range = if descending { (!end, !start) } else { (start, end) };
        let after = query.after.map(|(timestamp, sequence)| match descending {
            true => (!timestamp, !sequence),
            false => (timestamp, sequence),
        });
        let range = (
            after.map_or(range.0, |(timestamp, _)| range.0.max(timestamp)),
            range.1,
        );
        let mut candidates = Vec::new();
        for (selection, Selection { series, .. }) in selections.iter().enumerate() {
            let mut push = |first_ns: i64, last_ns: i64, rows: u64, origin: Origin<'a>| {
                let (first, last) = (directed(first_ns, descending), directed(last_ns, descending));
                let (first, last) = (first.min(last), first.max(last));
                if first <= range.1 && last >= range.0 {
                    candidates.push(Candidate {
                        first,
                        last,
                        rows,
                        selection,
                        origin,
                    });
                }
            };
            let live = series.live()?;
            for entry in live.blocks.iter() {
                let rows = u64::from(entry.block.summary.rows);
                push(entry.first_ns, entry.last_ns, rows, Origin::Block(&entry.block));
            }
            for chunk in &live.chunks {
                if let (Some(first), Some(last)) = (chunk.timestamps_ns.first(), chunk.timestamps_ns.last()) {
                    push(*first, *last, chunk.rows() as u64, Origin::Chunk(chunk));
                }
            }
        }
        candidates.sort_by_key(|candidate| Reverse(candidate.first));
        Ok(Scan {
            selections,
            query,
            range,
            after,
            candidates,
            open: Vec::new(),
            heap: BinaryHeap::new(),
            skip: query.skip,
            rows: Vec::with_capacity(query.limit.min(16_384)),
            touched: Touched::default(),
        })
    }

    /// Whether every row of the run within the range counts, by what is known without reading it.
    fn all_visible(&self, candidate: &Candidate<'_>) -> bool {
        if self.query.metadata.is_some() {
            return false;
        }
        let Some(fields) = &self.selections[candidate.selection].fields else {
            return true;
        };
        fields.iter().any(|field| match &candidate.origin {
            Origin::Block(block) => block
                .summary
                .field(*field)
                .is_some_and(|summary| summary.aggregate.count == candidate.rows),
            Origin::Chunk(chunk) => chunk.field(*field).is_some_and(|column| column.present.is_none()),
        })
    }

    /// Moves the beginning of the range to the latest run boundary before which there are certainly not more rows
    /// than are to be skipped, and takes those rows off the count.
    fn skip_whole_runs(&mut self) -> Result<(), EngineError> {
        if self.skip == 0
            || !self
                .candidates
                .iter()
                .all(|candidate| self.all_visible(candidate))
        {
            return Ok(());
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
            pending += candidate.rows;
        }
        if boundary == self.range.0 {
            return Ok(());
        }
        let mut before = 0u64;
        let mut kept = Vec::with_capacity(self.candidates.len());
        for candidate in std::mem::take(&mut self.candidates) {
            let inside = candidate.first >= self.range.0 && self.after.is_none();
            if candidate.first >= boundary {
                kept.push(candidate);
            } else if candidate.last < boundary && inside {
                before += candidate.rows;
            } else {
                self.check_stop()?;
                let timestamps = self.timestamps(&candidate)?;
                self.touched.rows += timestamps.len() as u64;
                let skipped = |timestamp: &&i64| {
                    (self.range.0..boundary).contains(&directed(**timestamp, self.query.descending))
                };
                before += timestamps.iter().filter(skipped).count() as u64;
                if candidate.last >= boundary {
                    kept.push(candidate);
                }
            }
        }
        self.candidates = kept;
        self.skip -= before;
        self.range.0 = boundary;
        Ok(())
    }

    fn check_stop(&self) -> Result<(), EngineError> {
        if (self.query.stop)() {
            Err(EngineError::Stopped)
        } else {
            Ok(())
        }
    }

    fn timestamps(&self, candidate: &Candidate<'_>) -> Result<Vec<i64>, EngineError> {
        match &candidate.origin {
            Origin::Block(block) => BlockReader::new(block)?.timestamps_ns(),
            Origin::Chunk(chunk) => Ok(chunk.timestamps_ns.clone()),
        }
    }

    fn merge(&mut self) -> Result<(), EngineError> {
        // One row more than the page tells whether more follow.
        let wanted = self.query.limit + 1;
        while self.rows.len() < wanted {
            while let Some(candidate) = self.candidates.last() {
                let reached = self
                    .heap
                    .peek()
                    .is_none_or(|Reverse(((first, _), _))| candidate.first <= *first);
                if !reached {
                    break;
                }
                if let Some(candidate) = self.candidates.pop() {
                    self.open_run(candidate)?;
                }
            }
            let Some(Reverse((_, index))) = self.heap.pop() else {
                break;
            };
            // This run alone goes on up to the next row of another one.
            let others = self.heap.peek().map(|Reverse((position, _))| *position);
            let unopened = self.candidates.last().map(|candidate| (candidate.first, 0));
            let until = [others, unopened].into_iter().flatten().min();
            self.take_rows(index, until, wanted);
            if let Some(position) = self.position(index) {
                self.heap.push(Reverse((position, index)));
            }
        }
        Ok(())
    }

    fn open_run(&mut self, candidate: Candidate<'a>) -> Result<(), EngineError> {
        self.check_stop()?;
        let total = candidate.rows as usize;
        let all_visible = self.all_visible(&candidate);
        let fields = self.selections[candidate.selection].fields.as_deref();
        let mut open = Open::new(
            candidate,
            all_visible,
            fields,
            self.query.metadata,
            self.query.stop,
        )?;
        self.touched.rows += total as u64;
        open.next = self.first_row(&open, total);
        self.open.push(open);
        let index = self.open.len() - 1;
        if let Some(position) = self.position(index) {
            self.heap.push(Reverse((position, index)));
        }
        Ok(())
    }

    /// The first row, in the direction of the scan, that lies in the range and behind the cursor.
    fn first_row(&self, open: &Open<'_>, total: usize) -> usize {
        let (mut low, mut high) = (0, total);
        while low < high {
            let middle = (low + high) / 2;
            let key = self.key(open, middle);
            let before = key.0 < self.range.0 || self.after.is_some_and(|after| key <= after);
            if before { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Directed key of the `index`-th row in the direction of the scan.
    fn key(&self, open: &Open<'_>, index: usize) -> Position {
        if self.query.descending {
            let row = open.sequences.len() - 1 - index;
            (!open.timestamps_ns[row], !open.sequences[row])
        } else {
            (open.timestamps_ns[index], open.sequences[index])
        }
    }

    /// Directed key of the run's next row that counts, if it has one within the range.
    fn position(&mut self, index: usize) -> Option<Position> {
        let total = self.open[index].sequences.len();
        while self.open[index].next < total {
            let open = &self.open[index];
            let key = self.key(open, open.next);
            if key.0 > self.range.1 {
                return None;
            }
            let row = if self.query.descending {
                total - 1 - open.next
            } else {
                open.next
            };
            if open.visible.as_ref().is_none_or(|visible| visible[row]) {
                return Some(key);
            }
            self.open[index].next += 1;
        }
        None
    }

    /// Takes rows of one run up to `until`, exclusive, or until the page is full.
    fn take_rows(&mut self, index: usize, until: Option<Position>, wanted: usize) {
        let total = self.open[index].sequences.len();
        while self.rows.len() < wanted {
            let Some(position) = self
                .position(index)
                .filter(|position| until.is_none_or(|until| *position < until))
            else {
                return;
            };
            debug_assert!(position.0 <= self.range.1, "within the range");
            let open = &mut self.open[index];
            let row = if self.query.descending {
                total - 1 - open.next
            } else {
                open.next
            };
            open.next += 1;
            if self.skip > 0 {
                self.skip -= 1;
            } else {
                // The row beyond the page is only counted.
                open.taken |= self.rows.len() + 1 < wanted;
                self.rows.push((index as u32, row as u32));
            }
        }
    }

    /// Decodes the fields of the runs that are on the page.
    fn finish(self) -> Result<Page, EngineError> {
        let mut page = Page {
            more: self.rows.len() > self.query.limit,
            touched: self.touched,
            ..Page::default()
        };
        let mut renumbered = vec![0u32; self.open.len()];
        for (index, open) in self.open.into_iter().enumerate() {
            if !open.taken {
                continue;
            }
            if (self.query.stop)() {
                return Err(EngineError::Stopped);
            }
            let selection = &self.selections[open.selection];
            let columns = open.into_columns(selection.fields.as_deref())?;
            renumbered[index] = page.runs.len() as u32;
            page.runs.push(PageRun {
                source: selection.series.source,
                columns,
            });
        }
        page.rows = self
            .rows
            .into_iter()
            .take(self.query.limit)
            .map(|(run, row)| (renumbered[run as usize], row))
            .collect();
        Ok(page)
    }
}
