//! Answers to ingestion requests, serialized directly to bytes: the same bytes are stored for a repeated idempotency
//! key.

use crate::bucket::point_id;
use crate::catalog::{Bucket, Source};
use crate::error::EntryError;
use crate::ingest::json::{write_number, write_string};
use crate::ingest::{BatchOutcome, PointBody};
use crate::journal::Answer;
use crate::timestamp::format_timestamp_ns;

/// Placeholder for a point's id, which is known only when the record has its position in the log.
const ID_PLACE: &[u8; 24] = b"000000000000000000000000";

/// An answer to an ingestion request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestAnswer {
    /// 201 or 207.
    pub status: u16,
    /// The JSON body.
    pub body: Vec<u8>,
    /// Whether this repeats an earlier answer to the same key and body.
    pub replayed: bool,
    /// Position of the placeholder for the id of a single point.
    pub(super) id_at: Option<usize>,
}

impl IngestAnswer {
    pub(super) fn replayed(answer: Answer) -> Self {
        IngestAnswer {
            status: answer.status,
            body: answer.body.into_vec(),
            replayed: true,
            id_at: None,
        }
    }

    /// Replaces the placeholder with the point's id.
    pub(super) fn numbered(mut self, bucket: u32, sequence: u64) -> Self {
        if let Some(at) = self.id_at {
            self.body[at..at + ID_PLACE.len()].copy_from_slice(&point_id(bucket, sequence));
        }
        self
    }

    /// 201 for one point.
    pub(super) fn of_point(
        bucket: &Bucket,
        source: &Source,
        point: &PointBody<'_>,
        timestamp_ns: i64,
        created_at_ns: i64,
    ) -> Self {
        let mut body = Vec::with_capacity(384);
        body.extend_from_slice(br#"{"message":"data point stored","dataPoint":{"_id":""#);
        let id_at = body.len();
        body.extend_from_slice(ID_PLACE);
        body.extend_from_slice(br#"","bucketId":""#);
        body.extend_from_slice(&bucket.id.to_hex());
        body.extend_from_slice(br#"","dataSourceId":""#);
        body.extend_from_slice(&source.id.to_hex());
        body.extend_from_slice(br#"","timestamp":""#);
        body.extend_from_slice(format_timestamp_ns(timestamp_ns).as_bytes());
        body.extend_from_slice(br#"","values":"#);
        point.write_values(&mut body);
        if let Some(metadata) = point.metadata {
            body.extend_from_slice(br#","metadata":"#);
            body.extend_from_slice(metadata.as_bytes());
        }
        body.extend_from_slice(br#","createdAt":""#);
        body.extend_from_slice(format_timestamp_ns(created_at_ns).as_bytes());
        body.extend_from_slice(br#""}}"#);
        IngestAnswer {
            status: 201,
            body,
            replayed: false,
            id_at: Some(id_at),
        }
    }

    /// 201 when all entries are stored, 207 when some are.
    pub(super) fn of_batch(outcome: &BatchOutcome, inserted: u32) -> Self {
        let mut body = Vec::with_capacity(64);
        if outcome.errors.is_empty() {
            body.extend_from_slice(br#"{"message":"batch stored","insertedCount":"#);
            write_number(f64::from(inserted), &mut body);
            body.push(b'}');
            return IngestAnswer {
                status: 201,
                body,
                replayed: false,
                id_at: None,
            };
        }
        body.extend_from_slice(br#"{"message":"batch stored in part; see errors","insertedCount":"#);
        write_number(f64::from(inserted), &mut body);
        body.extend_from_slice(br#","failedCount":"#);
        write_number(outcome.errors.len() as f64, &mut body);
        body.extend_from_slice(br#","errors":["#);
        for (place, EntryError { index, error }) in outcome.errors.iter().enumerate() {
            if place > 0 {
                body.push(b',');
            }
            body.extend_from_slice(br#"{"index":"#);
            write_number(f64::from(*index), &mut body);
            body.extend_from_slice(br#","error":"#);
            write_string(error, &mut body);
            body.push(b'}');
        }
        body.extend_from_slice(b"]}");
        IngestAnswer {
            status: 207,
            body,
            replayed: false,
            id_at: None,
        }
    }
}
