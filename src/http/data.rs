//! `/api/data` and `/api/data/batch`.

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::body::{self, Body};
use super::docs::{DetailDoc, MeasurementDoc};
use super::{auth, respond};
use crate::error::{ErrorKind, ServiceError};
use crate::ids::ObjectId;
use crate::limits::{BATCH_BODY_BYTES_MAX, INGEST_BODY_BYTES_MAX};
use crate::service::data::{IdempotencyKey, IngestAnswer};
use crate::service::{Access, Service};
use crate::timestamp::Timestamp;

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const ACCESS: Access = Access::ADMIN.or(Access::WRITE).counting_bearer();

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

/// Stores one point.
///
/// The answer comes when the point is on disk. An answer other than 201 means unknown: send the point again, with an
/// `Idempotency-Key` so that it is never stored twice. The body is at most 102,400 bytes, decompressed. The future and any
/// order are allowed; a point older than the bucket's retention is refused.
#[utoipa::path(post, path = "/api/data", operation_id = "ingestPoint", tag = "data",
    security(("apiKey" = ["admin", "write"]), ("bearer" = [])),
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$",
        description = "Printable ASCII of your choice, new for each new body. Sent again with the same bytes within 24 \
        hours, it gives the first answer again and stores nothing.")),
    request_body = PointBodyDoc,
    responses(
        (status = 201, body = PointAnswerDoc, description = "Stored on disk.", headers(("Idempotent-Replayed" = String, description = "`true` when the answer is that of an earlier request with the same key."))),
        (status = 409, description = "The source is inactive, or the idempotency key was used with another body.")))]
pub async fn ingest(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let body = points_of(&request, payload, &service, INGEST_BODY_BYTES_MAX).await?;
    let key = idempotency_key(&request)?;
    let answer = service.ingest_point(&caller, &body, key.as_ref()).await?;
    answered(&request, answer).await
}

/// Stores up to 1,000 points.
///
/// The points may be of several sources of one bucket. The fault of an entry does not stop the others: those are stored,
/// appear in queries together, and `errors` lists the rest by place. Entries older than 30 days or than the bucket's
/// retention are faults. The body is at most 10,485,760 bytes, decompressed; gzip and zstd are taken
/// (`Content-Encoding`).
#[utoipa::path(post, path = "/api/data/batch", operation_id = "ingestBatch", tag = "data",
    security(("apiKey" = ["admin", "write"]), ("bearer" = [])),
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$",
        description = "Printable ASCII of your choice, new for each new body. Sent again with the same bytes within 24 \
        hours, it gives the first answer again and stores nothing.")),
    request_body = BatchBodyDoc,
    responses(
        (status = 201, body = BatchAnswerDoc, description = "All stored on disk.", headers(("Idempotent-Replayed" = String, description = "`true` when the answer is that of an earlier request with the same key."))),
        (status = 207, body = PartialBatchAnswerDoc, description = "Some stored on disk; `errors` says which were not, and why.", headers(("Idempotent-Replayed" = String, description = "`true` when the answer is that of an earlier request with the same key."))),
        (status = 400, body = BatchErrorDoc, description = "The request is at fault, or every entry is; then `errors` says why."),
        (status = 409, description = "The idempotency key was used with another body.")))]
pub async fn ingest_batch(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let body = points_of(&request, payload, &service, BATCH_BODY_BYTES_MAX).await?;
    let key = idempotency_key(&request)?;
    let answer = service.ingest_batch(&caller, &body, key.as_ref()).await?;
    answered(&request, answer).await
}

async fn points_of(
    request: &HttpRequest,
    payload: Payload,
    service: &Service,
    body_bytes_max: usize,
) -> Result<Body, ServiceError> {
    let body = body::read_if(service.admit_points(), request, payload, body_bytes_max).await;
    if matches!(&body, Err(error) if error.kind == ErrorKind::Unavailable) {
        service.points_refused();
    }
    body
}

fn idempotency_key(request: &HttpRequest) -> Result<Option<IdempotencyKey>, ServiceError> {
    request
        .headers()
        .get(&IDEMPOTENCY_KEY)
        .map(|value| IdempotencyKey::parse(value.as_bytes()))
        .transpose()
}

async fn answered(request: &HttpRequest, answer: IngestAnswer) -> Result<HttpResponse, ServiceError> {
    let status = StatusCode::from_u16(answer.status).map_err(ServiceError::internal)?;
    let mut response = respond::respond(request, status, answer.body).await?;
    if answer.replayed {
        let yes = actix_web::http::header::HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENT_REPLAYED.clone(), yes);
    }
    Ok(response)
}
