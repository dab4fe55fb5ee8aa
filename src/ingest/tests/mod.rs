//! Parsing of both bodies through the public functions: the written rows and the reported faults.

mod accepted;
mod batch_faults;
mod point_faults;
mod random;

use std::collections::HashMap;
use std::sync::Arc;

use engine::rows::RowsWriter;

use super::*;
use crate::catalog::{Field, FieldType, SchemaMode, Source, SourceStatus};
use crate::error::Detail;
use crate::ids::ObjectId;

const NOW_NS: i64 = 1_767_225_600_000_000_000; // 2026-01-01T00:00:00Z
const OLDEST_NS: i64 = 1_764_633_600_000_000_000; // 2025-12-02T00:00:00Z

pub(super) const BUCKET: &str = "0000000000000000000000b1";
const ELSEWHERE: &str = "0000000000000000000000b2";
/// Strict: number, number, boolean, string, and a name that JSON has to escape.
pub(super) const STRICT: &str = "000000000000000000000001";
/// Extend: one number.
const EXTEND: &str = "000000000000000000000002";
/// Strict, one number, inactive.
const INACTIVE: &str = "000000000000000000000003";
/// Strict, one number, in the other bucket.
const FOREIGN: &str = "000000000000000000000004";
const UNKNOWN: &str = "0000000000000000000000ff";

fn id(text: &str) -> ObjectId {
    text.parse().unwrap()
}

fn field((name, kind): &(&str, FieldType)) -> Field {
    Field {
        name: (*name).into(),
        kind: *kind,
        unit: None,
        description: None,
    }
}

pub(super) fn source(text: &str, bucket: &str, mode: SchemaMode, fields: &[(&str, FieldType)]) -> Source {
    let id = id(text);
    Source {
        id,
        ordinal: u32::from(id.as_bytes()[11]),
        bucket_id: bucket.parse().unwrap(),
        name: text.into(),
        kind: "sensor".into(),
        description: None,
        schema: Arc::new(fields.iter().map(field).collect::<Vec<_>>().into()),
        schema_mode: mode,
        downsampling: true,
        status: if text == INACTIVE {
            SourceStatus::Inactive
        } else {
            SourceStatus::Active
        },
        dimensions: None,
        duplicates: Default::default(),
        expected_interval_seconds: None,
        stale_since_ns: None,
        metric_type: None,
        created_at_ns: 0,
        updated_at_ns: 0,
    }
}

/// The existing data sources, and the number of look-ups.
struct Sources {
    known: HashMap<ObjectId, SourceView>,
    looked_up: usize,
}

impl Sources {
    fn new() -> Self {
        use FieldType::{Boolean, Number, String};
        let one = [("t", Number)];
        let all = [
            source(
                STRICT,
                BUCKET,
                SchemaMode::Strict,
                &[
                    ("t", Number),
                    ("p", Number),
                    ("on", Boolean),
                    ("state", String),
                    ("a\":1,\"t", Number),
                ],
            ),
            source(EXTEND, BUCKET, SchemaMode::Extend, &one),
            source(INACTIVE, BUCKET, SchemaMode::Strict, &one),
            source(FOREIGN, ELSEWHERE, SchemaMode::Strict, &one),
        ];
        let view = |source: Source| {
            (
                source.id,
                SourceView {
                    source: Arc::new(source),
                    oldest_ns: OLDEST_NS,
                    series: None,
                },
            )
        };
        Self {
            known: all.into_iter().map(view).collect(),
            looked_up: 0,
        }
    }

    fn view(&self, text: &str) -> &SourceView {
        &self.known[&id(text)]
    }

    fn lookup(&mut self) -> impl FnMut(ObjectId) -> Option<SourceView> {
        |id| {
            self.looked_up += 1;
            self.known.get(&id).cloned()
        }
    }

    /// Extends the schema, as the caller does durably.
    fn add(&mut self, fields: &[NewField]) {
        for new in fields {
            let view = self.known.get_mut(&new.source_id).unwrap();
            let mut source = (*view.source).clone();
            let added = [field(&(&new.name, new.kind))];
            source.schema = Arc::new(source.schema.extended(&added).unwrap());
            view.source = Arc::new(source);
        }
    }
}

/// Parses a batch with new buffers; returns the result, and the rows as the log stores them.
fn batch(body: &str, sources: &mut Sources) -> (Result<Batch, ServiceError>, RowsWriter) {
    let mut rows = RowsWriter::new();
    let result = parse_into(body, sources, &mut Scratch::default(), &mut rows);
    (result, rows)
}

/// Parses a batch with these buffers.
fn parse_into(
    body: &str,
    sources: &mut Sources,
    scratch: &mut Scratch,
    rows: &mut RowsWriter,
) -> Result<Batch, ServiceError> {
    parse_batch(body.as_bytes(), NOW_NS, &mut sources.lookup(), scratch, rows)
}

fn ready(result: Result<Batch, ServiceError>) -> Batch {
    match result {
        Ok(batch) if batch.new_fields.is_empty() => batch,
        other => panic!("{other:?}"),
    }
}

/// Whether the body is refused because it is not JSON.
fn is_malformed<T>(result: &Result<T, ServiceError>) -> bool {
    matches!(result, Err(error) if error.message.starts_with("malformed json at byte "))
}

/// The faults of a refused body.
fn faults<T: std::fmt::Debug>(result: Result<T, ServiceError>) -> Vec<String> {
    match result {
        Err(error) if !error.details.is_empty() => lines(&error.details),
        other => panic!("{other:?}"),
    }
}

fn entries(entries: &[&str]) -> String {
    format!(
        r#"{{"bucketId":"{BUCKET}","dataPoints":[{}]}}"#,
        entries.join(",")
    )
}

fn encoded(rows: &RowsWriter) -> Vec<u8> {
    let mut out = Vec::new();
    rows.encode(&mut out);
    out
}

/// Rows written by hand.
fn expected(write: impl FnOnce(&mut RowsWriter)) -> Vec<u8> {
    let mut rows = RowsWriter::new();
    write(&mut rows);
    encoded(&rows)
}

/// Path and message of each fault, as one line.
fn lines(details: &[Detail]) -> Vec<String> {
    details
        .iter()
        .map(|detail| format!("{}: {}", detail.path.join("."), detail.message))
        .collect()
}
