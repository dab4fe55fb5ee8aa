//! Raw rows, written from columns directly to the answer. The answer is produced in pieces, so that memory is limited
//! to what the client is about to read, however large the rows are.

use std::sync::Arc;

use engine::query::{Estimate, Held, Page, PageRun, Position, ScanQuery, Selection, scan_within};
use engine::{EngineError, Values};

use super::answer::Answer;
use super::plan::{MemberNames, Plan, Reached, Selected};
use super::{AnswerBytes, Cursor, engine_error, member_name};
use crate::bucket::point_id;
use crate::error::ServiceError;
use crate::ingest::json::{write_number, write_string};
use crate::query_pool::Stop;
use crate::timestamp::TimestampFormatter;

/// Estimated size of a row in the answer.
const ROW_BYTES: usize = 160;
/// A piece ends after the row that reaches this size.
const PIECE_BYTES: usize = 512 * 1_024;
/// Rows read first; most answers have fewer. Afterwards, as many as are expected to fill a piece.
const ROWS_FIRST: usize = 4_096;
/// Divisor for the number of rows to read if they exceed the memory limit.
const FEWER_ROWS: usize = 8;

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

    /// After `rows` rows, of which `last` is the last.
    pub(super) fn through(rows: usize, last: Option<Position>) -> Self {
        Progress {
            rows,
            last,
            next_rows: ROWS_FIRST,
        }
    }

    /// Everything in one piece, from the beginning.
    pub(super) fn whole(rows_max: usize) -> Self {
        Progress {
            next_rows: rows_max,
            ..Self::new()
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
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Option<Progress>, Held<'b>), ServiceError> {
        let (selections, _selected) = self.selections(reached, stop)?;
        let rows = (self.raw_limit() - progress.rows).min(progress.next_rows);
        let mut out =
            Answer::new((256 + ROW_BYTES * rows).min(PIECE_BYTES), stop.budget()).map_err(engine_error)?;
        if progress.rows == 0 {
            out.write(|out| out.extend_from_slice(br#"{"data":["#))
                .map_err(engine_error)?;
        }
        let is_at_end = loop {
            let (page, _held) = self.page(&selections, &mut progress, stop)?;
            let (rows_before, bytes_before) = (progress.rows, out.bytes.len());
            let is_whole = self.write_rows(&page, &reached.sources, &mut progress, &mut out, stop)?;
            if is_whole && (!page.more || progress.rows == self.raw_limit()) {
                out.write(|out| {
                    out.push(b']');
                    self.write_end(&progress, page.more, out);
                })
                .map_err(engine_error)?;
                break true;
            }
            progress.expect(progress.rows - rows_before, out.bytes.len() - bytes_before);
            if out.bytes.len() >= PIECE_BYTES {
                break false;
            }
        };
        let (bytes, held) = out.finish().map_err(engine_error)?;
        Ok((bytes, (!is_at_end).then_some(progress), held))
    }

    /// The series and fields to read of each source.
    pub(super) fn selections<'r, 'b>(
        &self,
        reached: &'r Reached<'_>,
        stop: &'b Stop,
    ) -> Result<(Vec<Selection<'r>>, Held<'b>), ServiceError> {
        let mut held = stop.budget().hold();
        let mut selections = Vec::new();
        held.reserve(&mut selections, reached.series.len())
            .map_err(engine_error)?;
        selections.extend(reached.iter().map(|(selected, series)| Selection {
            series,
            fields: self.resolved(selected).fields.clone(),
        }));
        Ok((selections, held))
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
                Err(EngineError::OverBudget { .. }) if query.limit > 1 => {
                    progress.next_rows = (query.limit / FEWER_ROWS).max(1);
                }
                scanned => {
                    let (page, held) = scanned.map_err(engine_error)?;
                    stop.touched(page.touched);
                    return Ok((page, held));
                }
            }
        }
    }

    pub(super) fn scan_query<'a>(
        &self,
        filter: &'a dyn Fn(Option<&str>) -> bool,
        progress: &Progress,
        stop: &'a dyn Fn() -> bool,
    ) -> ScanQuery<'a> {
        let cursor = self.input.cursor.map(|cursor| cursor.position);
        ScanQuery {
            range_ns: self.range_ns,
            descending: self.input.descending,
            after: progress.last.or(cursor),
            skip: if progress.last.is_none() {
                self.input.offset
            } else {
                0
            },
            limit: (self.raw_limit() - progress.rows).min(progress.next_rows),
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
        for (selected, series) in reached.iter() {
            let selection = Selection {
                series,
                fields: self.resolved(selected).fields.clone(),
            };
            estimate.add_scanned(&selection, &query).map_err(engine_error)?;
            if estimate.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Writes rows until the piece is full. Returns whether the whole page was written.
    fn write_rows(
        &self,
        page: &Page,
        sources: &[Selected],
        progress: &mut Progress,
        out: &mut Answer<'_>,
        stop: &Stop,
    ) -> Result<bool, ServiceError> {
        let mut held = stop.budget().hold();
        let (mut names, mut timestamps) = (MemberNames::new(), TimestampFormatter::default());
        let mut writers = Vec::new();
        for run in &page.runs {
            held.reserve(&mut writers, 1).map_err(engine_error)?;
            let selected = &sources[run.selection];
            writers.push(RunWriter::new(self, run, selected, &mut names, &mut held)?);
        }
        for (run, row) in &page.rows {
            if out.bytes.len() >= PIECE_BYTES {
                return Ok(false);
            }
            let (writer, row) = (&writers[*run as usize], *row as usize);
            let is_first = progress.rows == 0;
            out.write(|out| {
                if !is_first {
                    out.push(b',');
                }
                writer.write(row, self.bucket.ordinal, &mut timestamps, out);
            })
            .map_err(engine_error)?;
            progress.rows += 1;
            progress.last = Some(writer.run.columns.key(row));
        }
        Ok(true)
    }

    pub(super) fn write_end(&self, progress: &Progress, more: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","metadata":{"count":"#);
        write_number(progress.rows as f64, out);
        out.extend_from_slice(br#","limit":"#);
        write_number(self.raw_limit() as f64, out);
        out.extend_from_slice(br#","offset":"#);
        write_number(self.input.offset as f64, out);
        out.extend_from_slice(if more {
            br#","hasMore":true"#
        } else {
            br#","hasMore":false"#
        });
        if let (true, Some(position)) = (more, progress.last) {
            let cursor = Cursor {
                position,
                fingerprint: self.input.fingerprint(),
            };
            out.extend_from_slice(br#","nextCursor":""#);
            out.extend_from_slice(cursor.encode().as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(b"}}");
    }
}

/// A requested field: its ordinal, and its name as a JSON member.
type Member = (u16, Vec<u8>);

/// Writes rows of one run.
struct RunWriter<'a> {
    run: &'a PageRun,
    /// The text between a row's timestamp and its values, which contains the source.
    source: Vec<u8>,
    /// The requested fields.
    members: Arc<Vec<Member>>,
    /// The columns that the run has, with their indexes in `members`.
    columns: Vec<(usize, &'a engine::Column)>,
}

impl<'a> RunWriter<'a> {
    fn new(
        plan: &Plan,
        run: &'a PageRun,
        selected: &Selected,
        names: &mut MemberNames<Member>,
        held: &mut Held<'_>,
    ) -> Result<Self, ServiceError> {
        let resolved = plan.resolved(selected);
        let members = names.of(selected.schema, held, || {
            let named = |ordinal| (ordinal, member_name(resolved.name(ordinal)));
            let members: Vec<Member> = resolved.ordinals().into_iter().map(named).collect();
            let bytes = |(_, name): &Member| size_of::<Member>() + name.capacity();
            let bytes = members.iter().map(bytes).sum();
            (members, bytes)
        })?;
        let there = |(place, (field, _)): (usize, &Member)| Some((place, run.columns.field(*field)?));
        held.grow(run.columns.fields.len() * size_of::<(usize, &engine::Column)>())
            .map_err(engine_error)?;
        let source_id = selected.source.id.to_hex();
        let source = [
            br#"","dataSourceId":""#.as_slice(),
            &source_id,
            br#"","values":{"#,
        ]
        .concat();
        held.grow(source.capacity()).map_err(engine_error)?;
        Ok(RunWriter {
            run,
            source,
            columns: members.iter().enumerate().filter_map(there).collect(),
            members,
        })
    }

    fn write(&self, row: usize, bucket: u32, timestamps: &mut TimestampFormatter, out: &mut Vec<u8>) {
        let (timestamp_ns, sequence) = self.run.columns.key(row);
        out.extend_from_slice(br#"{"_id":""#);
        out.extend_from_slice(&point_id(bucket, sequence));
        out.extend_from_slice(br#"","timestamp":""#);
        out.extend_from_slice(timestamps.format(timestamp_ns).as_bytes());
        out.extend_from_slice(&self.source);
        let mut first = true;
        for (place, column) in &self.columns {
            if !column.has(row) {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            out.extend_from_slice(&self.members[*place].1);
            match &column.values {
                Values::Numbers { values, .. } => write_number(values[row], out),
                Values::Booleans(values) => {
                    out.extend_from_slice(if values[row] { b"true" } else { b"false" })
                }
                Values::Texts(texts) => write_string(texts.get(row), out),
            }
        }
        out.push(b'}');
        if let Some(metadata) = self
            .run
            .columns
            .metadata
            .as_ref()
            .filter(|metadata| metadata.has(row))
            && let Values::Texts(texts) = &metadata.values
        {
            out.extend_from_slice(br#","metadata":"#);
            out.extend_from_slice(texts.get(row).as_bytes());
        }
        out.push(b'}');
    }
}
