//! Raw rows. They are read and written in pieces, so that memory is limited to what the client is about to read, however
//! large the rows are.

use std::sync::Arc;

use engine::EngineError;
use engine::query::{Estimate, Held, Page, Position, RowNumbers, RowTest, ScanQuery, Selection, scan_within};

use super::answer::PIECE_BYTES;
use super::piece::Written;
use super::plan::{Plan, Reached, ReachedSeries, Resolved, SchemaFilters, Tests};
use super::result::{PageInfo, Points, QueryResult, WriteResult};
use super::{Answer, Cursor, Layout};
use crate::error::ServiceError;
use crate::query_pool::Stop;

/// Rows read first; most answers have fewer. Afterwards, as many as are expected to fill a piece.
const ROWS_FIRST: usize = 4_096;
/// Divisor for the number of rows to read if they exceed the memory limit.
const FEWER_ROWS: usize = 8;

/// Whether a row has a result of an expression, by the numbers of its fields.
pub(super) type HasResult<'p> = Box<dyn Fn(&RowNumbers<'_>) -> bool + 'p>;

/// How much of a raw answer is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    rows: usize,
    /// Position of the last row written.
    last: Option<Position>,
    /// Number of rows to read next.
    next_rows: usize,
}

impl Progress {
    /// At the beginning.
    pub(super) fn new() -> Self {
        Progress {
            rows: 0,
            last: None,
            next_rows: ROWS_FIRST,
        }
    }

    /// Whether no row is written yet.
    pub(super) fn is_at_beginning(&self) -> bool {
        self.rows == 0
    }

    /// Sets the number of rows to read next, assuming that they are as large as those just written.
    fn expect(&mut self, rows: usize, bytes: usize) {
        let fitting = rows.saturating_mul(PIECE_BYTES) / bytes.max(1);
        self.next_rows = fitting.clamp(1, self.next_rows.saturating_mul(2));
    }
}

impl Plan {
    /// Writes the next piece. Returns where the following piece starts, if there is one.
    pub(super) fn raw<'b>(
        &self,
        reached: &Reached<'_>,
        mut progress: Progress,
        write: WriteResult,
        stop: &'b Stop,
    ) -> Result<Written<'b>, ServiceError> {
        let mut selections_held = stop.budget().hold();
        let mut selections = Vec::new();
        selections_held.reserve(&mut selections, reached.series.len())?;
        let tests = Tests::of(self);
        let (filters, results) = (tests.filters(self), self.results());
        let sources = reached.series.iter();
        selections.extend(sources.map(|source| self.points(source, &filters, &results)));
        if !self.is_in_pieces() {
            progress.next_rows = self.raw_limit();
        }
        let mut answer = Answer::new(stop.budget());
        let is_at_end = loop {
            let (page, _held) = self.page(&selections, &mut progress, stop)?;
            let (rows_before, bytes_before) = (progress.rows, answer.len());
            let rows = rows_before + page.rows.len();
            let is_last = !page.more || rows == self.raw_limit();
            let points = Points {
                plan: self,
                page: &page,
                series: &reached.series,
                skipped: 0,
                rows_before,
                end: is_last.then(|| self.end_of_points(&page, rows)),
            };
            let written = write(&QueryResult::Points(points), &mut answer)?;
            progress.rows += written;
            progress.last = position(&page, written).or(progress.last);
            if is_last && written == page.rows.len() {
                break true;
            }
            progress.expect(written, answer.len() - bytes_before);
            if answer.is_full() {
                break false;
            }
        };
        let (bytes, held) = answer.finish()?;
        Ok((bytes, (!is_at_end).then_some(progress), held))
    }

    /// An answer in columns is written at once, because each array has a value of every row.
    fn is_in_pieces(&self) -> bool {
        self.input.layout == Layout::Rows
    }

    /// The end of an answer of this many rows, whose last page is `page`.
    fn end_of_points(&self, page: &Page, rows: usize) -> PageInfo {
        let last = position(page, page.rows.len()).filter(|_| page.more);
        PageInfo {
            count: rows,
            limit: self.raw_limit(),
            offset: self.input.offset,
            has_more: page.more,
            next: last.map(|position| Cursor {
                position,
                fingerprint: self.input.fingerprint(),
            }),
        }
    }

    /// What to read of a source.
    fn selection<'r>(
        &self,
        reached: &'r ReachedSeries,
        filters: &'r SchemaFilters<'r>,
        fields: Option<Arc<[u16]>>,
    ) -> Selection<'r> {
        let values = filters[reached.schema].as_deref();
        Selection {
            series: &reached.series,
            fields: match values {
                Some(_) => fields,
                // No row has one of no fields.
                None => Some(Arc::default()),
            },
            values: values.unwrap_or_default(),
            rows: None,
        }
    }

    /// The same for rows of points. `results` says by schema whether a row has a result of an expression.
    pub(super) fn points<'r>(
        &'r self,
        reached: &'r ReachedSeries,
        filters: &'r SchemaFilters<'r>,
        results: &'r [HasResult<'r>],
    ) -> Selection<'r> {
        let resolved = &self.schemas[reached.schema];
        let selection = self.selection(reached, filters, resolved.read.clone());
        let rows = resolved.fields.as_deref().zip(resolved.read.as_deref());
        let rows = rows.filter(|(fields, read)| fields.len() < read.len());
        Selection {
            rows: rows.map(|(fields, _)| RowTest {
                fields,
                includes: &*results[reached.schema],
            }),
            ..selection
        }
    }

    /// Decides for each schema whether a row has a result of an expression.
    pub(super) fn results(&self) -> Vec<HasResult<'_>> {
        let of_schema = |resolved: &Resolved| -> HasResult<'_> {
            let schema = Arc::clone(&resolved.schema);
            Box::new(move |number| {
                self.input.expressions.iter().any(|named| {
                    let operands = named.expression.operands();
                    let operand = |index: usize| number(schema.field(&operands[index])?);
                    named.expression.evaluate(operand).is_some()
                })
            })
        };
        self.schemas.iter().map(of_schema).collect()
    }

    /// Reads the next rows; fewer if they would exceed the memory limit.
    fn page<'b>(
        &self,
        selections: &[Selection<'_>],
        progress: &mut Progress,
        stop: &'b Stop,
    ) -> Result<(Page, Held<'b>), ServiceError> {
        let filter = |text: Option<&str>| self.passes(text);
        let stop_now = || stop.now();
        loop {
            let query = self.scan_query(&filter, progress, &stop_now);
            match scan_within(selections, &query, stop.budget()) {
                Err(EngineError::OverBudget { .. }) if self.is_in_pieces() && query.limit > 1 => {
                    progress.next_rows = (query.limit / FEWER_ROWS).max(1);
                }
                scanned => {
                    let (page, held) = scanned?;
                    stop.touched(page.touched);
                    return Ok((page, held));
                }
            }
        }
    }

    /// The time of the first or, descending, the last row that has one of its source's covered fields; the same end of
    /// the range if there is none.
    pub(super) fn edge_ns(
        &self,
        reached: &[ReachedSeries],
        covered: impl Fn(&ReachedSeries) -> Arc<[u16]>,
        descending: bool,
        stop: &Stop,
    ) -> Result<i64, ServiceError> {
        let (start_ns, end_ns) = self.range_ns;
        let edge_ns = if descending { end_ns } else { start_ns };
        let bounded = reached
            .iter()
            .filter_map(|source| Some((source.series.bounds_ns()?, source)));
        let nearest = match descending {
            true => bounded.max_by_key(|((_, last_ns), _)| *last_ns),
            false => bounded.min_by_key(|((first_ns, _), _)| *first_ns),
        };
        let Some(((first_ns, last_ns), nearest)) = nearest else {
            return Ok(edge_ns);
        };
        // Many series begin at the same time. If one has a row there, no row is nearer, and the others are not read.
        let nearest_ns = if descending {
            last_ns.min(end_ns)
        } else {
            first_ns.max(start_ns)
        };
        let tests = Tests::of(self);
        let filters = tests.filters(self);
        let selection = |source| self.selection(source, &filters, Some(covered(source)));
        let found = self.first_ns(&[selection(nearest)], (nearest_ns, nearest_ns), descending, stop)?;
        if let Some(found_ns) = found {
            return Ok(found_ns);
        }
        let mut held = stop.budget().hold();
        let mut selections = Vec::new();
        held.reserve(&mut selections, reached.len())?;
        selections.extend(reached.iter().map(selection));
        let found = self.first_ns(&selections, self.range_ns, descending, stop)?;
        Ok(found.unwrap_or(edge_ns))
    }

    /// The time of the first row within a range; descending, that of the last.
    fn first_ns(
        &self,
        selections: &[Selection<'_>],
        range_ns: (i64, i64),
        descending: bool,
        stop: &Stop,
    ) -> Result<Option<i64>, ServiceError> {
        let filter = |text: Option<&str>| self.passes(text);
        let query = ScanQuery {
            range_ns,
            descending,
            after: None,
            skip: 0,
            limit: 1,
            metadata: self.filter.as_ref().map(|_| &filter as _),
            stop: &|| stop.now(),
        };
        let (page, _held) = scan_within(selections, &query, stop.budget())?;
        stop.touched(page.touched);
        Ok(position(&page, 1).map(|(at_ns, _)| at_ns))
    }

    fn scan_query<'a>(
        &self,
        filter: &'a dyn Fn(Option<&str>) -> bool,
        progress: &Progress,
        stop: &'a dyn Fn() -> bool,
    ) -> ScanQuery<'a> {
        let cursor = self.input.cursor.map(|cursor| cursor.position);
        let limit = (self.raw_limit() - progress.rows).min(progress.next_rows);
        ScanQuery {
            skip: progress.last.map_or(self.input.offset, |_| 0),
            ..self.scan_from(progress.last.or(cursor), limit, filter, stop)
        }
    }

    /// A query for at most `limit` points behind a position.
    pub(super) fn scan_from<'a>(
        &self,
        after: Option<Position>,
        limit: usize,
        filter: &'a dyn Fn(Option<&str>) -> bool,
        stop: &'a dyn Fn() -> bool,
    ) -> ScanQuery<'a> {
        ScanQuery {
            range_ns: self.range_ns,
            descending: self.input.descending,
            after,
            skip: 0,
            limit,
            metadata: self.filter.as_ref().map(|_| filter),
            stop,
        }
    }

    pub(super) fn estimate_raw(
        &self,
        reached: &Reached<'_>,
        progress: &Progress,
        estimate: &mut Estimate,
    ) -> Result<(), ServiceError> {
        let query = self.scan_query(&|_| true, progress, &|| false);
        let tests = Tests::of(self);
        let (filters, results) = (tests.filters(self), self.results());
        for source in &reached.series {
            estimate.add_scanned(&self.points(source, &filters, &results), &query)?;
            if estimate.is_over() {
                break;
            }
        }
        Ok(())
    }
}

/// The position of the last of the first `count` rows.
pub(super) fn position(page: &Page, count: usize) -> Option<Position> {
    let (run, row) = page.rows.get(count.checked_sub(1)?)?;
    Some(page.runs[*run as usize].columns.key(*row as usize))
}
