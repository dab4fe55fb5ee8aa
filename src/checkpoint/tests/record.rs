//! Converts a request of the test world to the record that a bucket applies.

use engine::rows::RowsWriter;

use super::model::{ID_AT, Row, answer, body_digest};
use crate::bucket::{Digest, Ingest};
use crate::journal::{AnswerView, IdempotencyView, IngestRecord};

/// The ingest of some rows.
pub(super) fn ingest(bucket: u32, rows: &[Row], key: Option<Digest>, at_ns: i64) -> Ingest {
    let mut writer = RowsWriter::new();
    for row in rows {
        writer.begin(row.source);
        writer.number(0, f64::from(row.value), 0);
        if row.value % 3 == 0 {
            writer.string(1, "on");
        }
        writer.commit(row.timestamp_ns);
    }
    let body = answer(0, 0);
    let entry = key.map(|key| {
        let answer = AnswerView {
            status: 201,
            body: &body,
        };
        (
            IdempotencyView {
                key,
                body: body_digest(key),
                answer,
            },
            Some(ID_AT),
        )
    });
    let count = rows.len() as u32;
    let record = IngestRecord::new(bucket, at_ns, count, entry, &[], |out| writer.encode(out));
    let mut sources: Vec<u32> = rows.iter().map(|row| row.source).collect();
    sources.sort_unstable();
    sources.dedup();
    Ingest {
        record,
        rows: count,
        memory_bytes: writer.memory_bytes(),
        sources,
        series: Vec::new(),
        repeats: Vec::new(),
        releases: 0,
        alone: None,
        idempotency: key.map(|key| (key, body_digest(key))),
        now_ns: at_ns,
    }
}
