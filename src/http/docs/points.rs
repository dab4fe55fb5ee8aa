//! Bodies and answers of the ingest routes, as they are described: `ingest` reads the ones, `service::data` writes the others.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::DetailDoc;
use super::MeasurementDoc;
use crate::ids::ObjectId;
use crate::timestamp::Timestamp;

/// Body of a single ingest.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = PointBody)]
pub struct PointBodyDoc {
    /// The bucket of the source.
    pub bucket_id: ObjectId,
    /// The source.
    pub data_source_id: ObjectId,
    /// ISO 8601; the current time when absent.
    pub timestamp: Option<Timestamp>,
    /// One measurement for each field; null is none.
    #[schema(value_type = BTreeMap<String, MeasurementDoc>)]
    pub values: Map<String, Value>,
    /// Free-form context, at most 16,384 bytes, kept as sent.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
}

/// An entry of a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = BatchEntry)]
pub struct BatchEntryDoc {
    /// The source.
    pub data_source_id: ObjectId,
    /// ISO 8601, at most 30 days old; the current time when absent.
    pub timestamp: Option<Timestamp>,
    /// One measurement for each field; null is none.
    #[schema(value_type = BTreeMap<String, MeasurementDoc>)]
    pub values: Map<String, Value>,
    /// Free-form context, at most 16,384 bytes, kept as sent.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
}

/// Body of a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = BatchBody)]
pub struct BatchBodyDoc {
    /// The bucket of all entries.
    pub bucket_id: ObjectId,
    /// 1 to 1000 entries.
    #[schema(min_items = 1, max_items = 1000)]
    pub data_points: Vec<BatchEntryDoc>,
}

/// A stored point.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = Point)]
pub struct PointDoc {
    /// Its id.
    #[schema(rename = "_id")]
    pub id: ObjectId,
    /// Its bucket.
    pub bucket_id: ObjectId,
    /// Its source.
    pub data_source_id: ObjectId,
    /// UTC.
    pub timestamp: Timestamp,
    /// Measurements.
    #[schema(value_type = BTreeMap<String, MeasurementDoc>)]
    pub values: Map<String, Value>,
    /// As sent; absent when none was.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Map<String, Value>>,
    /// When the service took it, UTC.
    pub created_at: Timestamp,
}

/// Answer to a single ingest.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = PointAnswer)]
pub struct PointAnswerDoc {
    /// What was done.
    pub message: String,
    /// As stored.
    pub data_point: PointDoc,
}

/// A batch entry that was not stored.
#[derive(ToSchema)]
#[schema(as = EntryError)]
pub struct EntryErrorDoc {
    /// Its place in the batch, from 0.
    pub index: u32,
    /// All its faults.
    pub error: String,
}

/// Answer to a batch that was stored whole.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = BatchAnswer)]
pub struct BatchAnswerDoc {
    /// What was done.
    pub message: String,
    /// Entries stored.
    pub inserted_count: u32,
}

/// Answer to a batch that was stored in part.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = PartialBatchAnswer)]
pub struct PartialBatchAnswerDoc {
    /// What was done.
    pub message: String,
    /// Entries stored.
    pub inserted_count: u32,
    /// Entries not stored.
    pub failed_count: u32,
    /// Why, by ascending index.
    pub errors: Vec<EntryErrorDoc>,
}

/// Body of the error of a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[schema(as = BatchError)]
pub struct BatchErrorDoc {
    /// The type, such as `Validation Error`.
    pub error: String,
    /// What happened and what to change.
    pub message: String,
    /// Faults of the body itself, each at its place.
    #[schema(nullable = false)]
    pub details: Option<Vec<DetailDoc>>,
    /// 0, when every entry failed.
    #[schema(nullable = false)]
    pub inserted_count: Option<u32>,
    /// All entries, when every one failed.
    #[schema(nullable = false)]
    pub failed_count: Option<u32>,
    /// Why, by ascending index.
    #[schema(nullable = false)]
    pub errors: Option<Vec<EntryErrorDoc>>,
}
