//! Writes answers to ingests.

use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{EntryError, ServiceError};
use crate::ingest::PointBody;
use crate::service::data::{Accepted, IngestAnswer};
use crate::timestamp::format_timestamp_ns;

/// Placeholder for a point's id, which is known only when the record has its position in the log.
const ID_PLACE: &[u8; 24] = b"000000000000000000000000";

/// The response to a batch whose entries were all stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchAnswer {
    /// Result in words.
    pub message: &'static str,
    /// Number of entries stored.
    pub inserted_count: u32,
    /// Number of entries that are stored already, by a source that does not take points twice; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_count: Option<u32>,
}

/// The response to a batch of which only some entries were stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartialBatchAnswer<'a> {
    /// Result in words.
    pub message: &'static str,
    /// Number of entries stored.
    pub inserted_count: u32,
    /// Number of entries that are stored already; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_count: Option<u32>,
    /// Number of entries not stored.
    #[schema(value_type = u32)]
    pub failed_count: usize,
    /// Entries not stored, by ascending index.
    pub errors: &'a [EntryError],
}

/// Writes the answer to an ingest: 201 when everything is stored, 207 when only some entries of a batch are.
///
/// # Errors
/// Serializing these types does not fail, but the encoder returns a `Result`.
pub fn write_ingest(accepted: &Accepted<'_>) -> Result<IngestAnswer, ServiceError> {
    let mut id_at = None;
    let (status, body) = match *accepted {
        Accepted::Point { point, created_at_ns } => {
            let (body, at) = write_point(point, created_at_ns);
            id_at = Some(at);
            (StatusCode::CREATED, Ok(body))
        }
        Accepted::Repeated => {
            let answer = BatchAnswer {
                message: "data point is stored already",
                inserted_count: 0,
                duplicate_count: Some(1),
            };
            (StatusCode::OK, serde_json::to_vec(&answer))
        }
        Accepted::Entries => return Err(ServiceError::internal("BUG: the answer of another protocol")),
        Accepted::Batch {
            inserted,
            duplicates,
            errors: [],
        } => {
            let answer = BatchAnswer {
                message: "batch stored",
                inserted_count: inserted,
                duplicate_count: shown(duplicates),
            };
            (StatusCode::CREATED, serde_json::to_vec(&answer))
        }
        Accepted::Batch {
            inserted,
            duplicates,
            errors,
        } => {
            let answer = PartialBatchAnswer {
                message: "batch stored in part; see errors",
                inserted_count: inserted,
                duplicate_count: shown(duplicates),
                failed_count: errors.len(),
                errors,
            };
            (StatusCode::MULTI_STATUS, serde_json::to_vec(&answer))
        }
    };
    Ok(IngestAnswer {
        status: status.as_u16(),
        body: body.map_err(ServiceError::internal)?,
        id_at,
        replayed: false,
    })
}

/// A count that is absent when it is 0.
fn shown(count: u32) -> Option<u32> {
    (count > 0).then_some(count)
}

/// Writes the answer to a single point. Returns it with the position of the placeholder for the point's id.
fn write_point(point: &PointBody<'_>, created_at_ns: i64) -> (Vec<u8>, usize) {
    let mut body = Vec::with_capacity(384);
    body.extend_from_slice(br#"{"message":"data point stored","dataPoint":{"_id":""#);
    let id_at = body.len();
    body.extend_from_slice(ID_PLACE);
    body.extend_from_slice(br#"","bucketId":""#);
    body.extend_from_slice(&point.bucket_id.to_hex());
    body.extend_from_slice(br#"","dataSourceId":""#);
    body.extend_from_slice(&point.source_id.to_hex());
    body.extend_from_slice(br#"","timestamp":""#);
    let timestamp_ns = point.timestamp_ns.unwrap_or(created_at_ns);
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
    (body, id_at)
}
