//! Schemas of the ingest requests and responses: `ingest` parses the requests, `write` writes the responses.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::MeasurementDoc;
use crate::error::{Detail, EntryError};
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// Body of a request that ingests one point.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct PointBody {
    /// Bucket of the data source.
    pub bucket_id: ObjectId,
    /// Data source of the point.
    pub data_source_id: ObjectId,
    /// Time of the measurements, ISO 8601; the current time when absent.
    pub timestamp: Option<Timestamp>,
    /// One measurement per field; null means no measurement.
    pub values: BTreeMap<String, MeasurementDoc>,
    /// Free-form context, at most 16,384 bytes, stored as sent.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
}

/// A point of a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BatchEntry {
    /// Data source of the point.
    pub data_source_id: ObjectId,
    /// Time of the measurements, ISO 8601, at most 30 days old; the current time when absent.
    pub timestamp: Option<Timestamp>,
    /// One measurement per field; null means no measurement.
    pub values: BTreeMap<String, MeasurementDoc>,
    /// Free-form context, at most 16,384 bytes, stored as sent.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
}

/// Body of a request that ingests a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BatchBody {
    /// Bucket of all entries.
    pub bucket_id: ObjectId,
    /// Points to store, 1 to 1000.
    #[schema(min_items = 1, max_items = 1000)]
    pub data_points: Vec<BatchEntry>,
}

/// A stored point.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct Point {
    /// ID of the point.
    #[schema(rename = "_id")]
    pub id: ObjectId,
    /// ID of the bucket.
    pub bucket_id: ObjectId,
    /// ID of the data source.
    pub data_source_id: ObjectId,
    /// Time of the measurements, in UTC.
    pub timestamp: Timestamp,
    /// Measurements by field.
    pub values: BTreeMap<String, MeasurementDoc>,
    /// Metadata as sent; absent when none was sent.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Value>,
    /// When the server received the point, in UTC.
    pub created_at: Timestamp,
}

/// The response to a request that ingests one point.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct PointAnswer {
    /// Result in words.
    pub message: String,
    /// The point as stored.
    pub data_point: Point,
}

/// Body of an error response to a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BatchError {
    /// Error type, such as `Validation Error`.
    pub error: String,
    /// What went wrong and how to fix the request.
    pub message: String,
    /// Faults of the body itself, each with its path.
    #[schema(nullable = false)]
    pub details: Option<Vec<Detail>>,
    /// Always 0; present when every entry failed.
    #[schema(nullable = false)]
    pub inserted_count: Option<u32>,
    /// Number of entries; present when every entry failed.
    #[schema(nullable = false)]
    pub failed_count: Option<u32>,
    /// Entries not stored, by ascending index.
    #[schema(nullable = false)]
    pub errors: Option<Vec<EntryError>>,
}
