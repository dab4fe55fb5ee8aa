//! Raw rows, written straight from columns to the answer.

use std::sync::Arc;

use engine::Values;
use engine::query::{Estimate, Held, Page, PageRun, ScanQuery, Selection, scan_within};

use super::answer::Answer;
use super::plan::{MemberNames, Plan, Reached, Selected};
use super::{AnswerBytes, Cursor, engine_error, member_name};
use crate::bucket::point_id;
use crate::error::ServiceError;
use crate::ingest::json::{write_number, write_string};
use crate::query_pool::Stop;
use crate::timestamp::format_timestamp_ns;

/// About what a row takes in the answer.
const ROW_BYTES: usize = 160;

impl Plan {
    pub(super) fn raw<'b>(
        &self,
        reached: &Reached<'_>,
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Held<'b>), ServiceError> {
        let mut held = stop.budget().hold();
        let mut selections = Vec::new();
        held.reserve(&mut selections, reached.series.len())
            .map_err(engine_error)?;
        selections.extend(reached.iter().map(|(selected, series)| Selection {
            series,
            fields: self.resolved(selected).fields.clone(),
        }));
        let filter = |text: Option<&str>| self.filter.as_ref().is_none_or(|filter| filter.passes(text));
        let stop_now = || stop.now();
        let query = self.scan_query(&filter, &stop_now);
        let (page, _held) = scan_within(&selections, &query, stop.budget()).map_err(engine_error)?;
        stop.touched(page.touched);
        self.write(&page, &reached.sources, query.limit, stop)
    }

    fn scan_query<'a>(
        &self,
        filter: &'a dyn Fn(Option<&str>) -> bool,
        stop: &'a dyn Fn() -> bool,
    ) -> ScanQuery<'a> {
        ScanQuery {
            range_ns: self.range_ns,
            descending: self.input.descending,
            after: self.input.cursor.map(|cursor| cursor.position),
            skip: self.input.offset,
            limit: self.raw_limit(),
            metadata: self.filter.as_ref().map(|_| filter),
            stop,
        }
    }

    pub(super) fn estimate_raw(
        &self,
        reached: &Reached<'_>,
        estimate: &mut Estimate,
    ) -> Result<(), ServiceError> {
        let query = self.scan_query(&|_| true, &|| false);
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

    fn write<'b>(
        &self,
        page: &Page,
        sources: &[Selected],
        limit: usize,
        stop: &'b Stop,
    ) -> Result<(AnswerBytes, Held<'b>), ServiceError> {
        let mut held = stop.budget().hold();
        let mut names = MemberNames::new();
        let mut writers = Vec::new();
        for run in &page.runs {
            held.reserve(&mut writers, 1).map_err(engine_error)?;
            let selected = &sources[run.selection];
            writers.push(RunWriter::new(self, run, selected, &mut names, &mut held)?);
        }
        let mut out = Answer::new(256 + ROW_BYTES * page.rows.len(), stop.budget()).map_err(engine_error)?;
        out.write(|out| out.extend_from_slice(br#"{"data":["#))
            .map_err(engine_error)?;
        for (index, (run, row)) in page.rows.iter().enumerate() {
            let row = |out: &mut Vec<u8>| {
                if index > 0 {
                    out.push(b',');
                }
                writers[*run as usize].write(*row as usize, self.bucket.ordinal, out);
            };
            out.write(row).map_err(engine_error)?;
        }
        out.write(|out| self.write_end(page, limit, out))
            .map_err(engine_error)?;
        out.finish().map_err(engine_error)
    }

    fn write_end(&self, page: &Page, limit: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"],"metadata":{"count":"#);
        write_number(page.rows.len() as f64, out);
        out.extend_from_slice(br#","limit":"#);
        write_number(limit as f64, out);
        out.extend_from_slice(br#","offset":"#);
        write_number(self.input.offset as f64, out);
        out.extend_from_slice(if page.more {
            br#","hasMore":true"#
        } else {
            br#","hasMore":false"#
        });
        if let (true, Some((run, row))) = (page.more, page.rows.last()) {
            let position = page.runs[*run as usize].columns.key(*row as usize);
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

/// A wanted field: its ordinal, and its name as a JSON member.
type Member = (u16, Vec<u8>);

/// Writes rows of one run.
struct RunWriter<'a> {
    run: &'a PageRun,
    source_id: [u8; 24],
    /// The fields wanted, by the place of their schema.
    members: Arc<Vec<Member>>,
    /// The columns of those that the run has, by their places in `members`.
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
        Ok(RunWriter {
            run,
            source_id: selected.source.id.to_hex(),
            columns: members.iter().enumerate().filter_map(there).collect(),
            members,
        })
    }

    fn write(&self, row: usize, bucket: u32, out: &mut Vec<u8>) {
        let (timestamp_ns, sequence) = self.run.columns.key(row);
        out.extend_from_slice(br#"{"_id":""#);
        out.extend_from_slice(&point_id(bucket, sequence));
        out.extend_from_slice(br#"","timestamp":""#);
        out.extend_from_slice(format_timestamp_ns(timestamp_ns).as_bytes());
        out.extend_from_slice(br#"","dataSourceId":""#);
        out.extend_from_slice(&self.source_id);
        out.extend_from_slice(br#"","values":{"#);
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
