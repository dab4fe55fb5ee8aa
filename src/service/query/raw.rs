//! Raw rows, written straight from columns to the answer.

use std::collections::HashMap;

use engine::query::{Page, ScanQuery, Selection, scan};
use engine::{Snapshot, Values};

use super::plan::{Plan, Selected};
use super::{AnswerBytes, Cursor, engine_error, member_names};
use crate::bucket::point_id;
use crate::error::ServiceError;
use crate::ingest::json::{write_number, write_string};
use crate::query_pool::Stop;
use crate::timestamp::format_timestamp_ns;

/// About what a row takes in the answer.
const ROW_BYTES: usize = 160;

impl Plan {
    pub(super) fn raw(&self, snapshot: &Snapshot, stop: &Stop) -> Result<AnswerBytes, ServiceError> {
        let by_ordinal: HashMap<u32, &Selected> = self
            .sources
            .iter()
            .map(|selected| (selected.source.ordinal, selected))
            .collect();
        let selections: Vec<Selection<'_>> = snapshot
            .series
            .iter()
            .map(|series| Selection {
                series,
                fields: by_ordinal[&series.source].fields.clone(),
            })
            .collect();
        let limit = self.raw_limit();
        let filter = |text: Option<&str>| self.filter.as_ref().is_none_or(|filter| filter.passes(text));
        let query = ScanQuery {
            range_ns: self.range_ns,
            descending: self.input.descending,
            after: self.input.cursor.map(|cursor| cursor.position),
            skip: self.input.offset,
            limit,
            metadata: self.filter.as_ref().map(|_| &filter as _),
            stop: &|| stop.now(),
        };
        let page = scan(&selections, &query).map_err(engine_error)?;
        stop.touched(page.touched.rows + page.touched.cells);
        Ok(self.write(&page, &by_ordinal, limit))
    }

    fn write(&self, page: &Page, by_ordinal: &HashMap<u32, &Selected>, limit: usize) -> AnswerBytes {
        let writers: Vec<RunWriter<'_>> = page
            .runs
            .iter()
            .map(|run| RunWriter::new(run, by_ordinal[&run.source]))
            .collect();
        let mut out = Vec::with_capacity(256 + ROW_BYTES * page.rows.len());
        out.extend_from_slice(br#"{"data":["#);
        for (index, (run, row)) in page.rows.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            writers[*run as usize].write(*row as usize, self.bucket.ordinal, &mut out);
        }
        out.extend_from_slice(br#"],"metadata":{"count":"#);
        write_number(page.rows.len() as f64, &mut out);
        out.extend_from_slice(br#","limit":"#);
        write_number(limit as f64, &mut out);
        out.extend_from_slice(br#","offset":"#);
        write_number(self.input.offset as f64, &mut out);
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
        out
    }
}

/// Writes rows of one run.
struct RunWriter<'a> {
    run: &'a engine::query::PageRun,
    source_id: [u8; 24],
    /// The columns wanted, with their names as JSON members.
    columns: Vec<(Vec<u8>, &'a engine::Column)>,
}

impl<'a> RunWriter<'a> {
    fn new(run: &'a engine::query::PageRun, selected: &Selected) -> Self {
        let schema = &selected.source.schema;
        let ordinals = selected.ordinals();
        let names = member_names(
            ordinals
                .iter()
                .map(|field| schema.fields[usize::from(*field)].name.clone()),
        );
        let columns = names
            .into_iter()
            .zip(ordinals)
            .filter_map(|(name, field)| Some((name, run.columns.field(field)?)));
        RunWriter {
            run,
            source_id: selected.source.id.to_hex(),
            columns: columns.collect(),
        }
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
        for (name, column) in &self.columns {
            if !column.has(row) {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            out.extend_from_slice(name);
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
