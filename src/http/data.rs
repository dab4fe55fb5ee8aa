//! `/api/data` and `/api/data/batch`.

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::docs::ErrorDoc;
use super::{auth, body, respond};
use crate::error::ServiceError;
use crate::limits::{BATCH_BODY_BYTES_MAX, INGEST_BODY_BYTES_MAX};
use crate::service::data::{IdempotencyKey, IngestAnswer};
use crate::service::{Access, Service};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const ACCESS: Access = Access::ADMIN.or(Access::WRITE);

/// Body of a single ingest.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct PointBodyDoc {
    /// The bucket of the source.
    pub bucket_id: String,
    /// The source.
    pub data_source_id: String,
    /// ISO 8601; the current time when absent.
    pub timestamp: Option<String>,
    /// One measurement for each field; null is none.
    pub values: Map<String, Value>,
    /// Free-form context, at most 16,384 bytes, kept as sent.
    pub metadata: Option<Map<String, Value>>,
}

/// An entry of a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BatchEntryDoc {
    /// The source.
    pub data_source_id: String,
    /// ISO 8601, at most 30 days old; the current time when absent.
    pub timestamp: Option<String>,
    /// One measurement for each field; null is none.
    pub values: Map<String, Value>,
    /// Free-form context, at most 16,384 bytes, kept as sent.
    pub metadata: Option<Map<String, Value>>,
}

/// Body of a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BatchBodyDoc {
    /// The bucket of all entries.
    pub bucket_id: String,
    /// 1 to 1000 entries.
    #[schema(min_items = 1, max_items = 1000)]
    pub data_points: Vec<BatchEntryDoc>,
}

/// A stored point.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct PointDoc {
    /// Its id.
    #[schema(rename = "_id")]
    pub id: String,
    /// Its bucket.
    pub bucket_id: String,
    /// Its source.
    pub data_source_id: String,
    /// UTC.
    pub timestamp: String,
    /// Measurements.
    pub values: Map<String, Value>,
    /// As sent.
    pub metadata: Option<Map<String, Value>>,
    /// When the service took it, UTC.
    pub created_at: String,
}

/// Answer to a single ingest.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct PointAnswerDoc {
    /// What was done.
    pub message: String,
    /// As stored.
    pub data_point: PointDoc,
}

/// A batch entry that was not stored.
#[derive(ToSchema)]
pub struct EntryErrorDoc {
    /// Its place in the batch, from 0.
    pub index: u32,
    /// All its faults.
    pub error: String,
}

/// Answer to a batch.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BatchAnswerDoc {
    /// What was done.
    pub message: String,
    /// Entries stored.
    pub inserted_count: u32,
    /// Entries not stored; absent when there are none.
    pub failed_count: Option<u32>,
    /// Why, by ascending index; absent when there are none.
    pub errors: Option<Vec<EntryErrorDoc>>,
}

/// Stores one point.
#[utoipa::path(post, path = "/api/data", tag = "data", security(("apiKey" = []), ("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 printable characters; the same key with the same body is answered once for 24 hours")),
    request_body = PointBodyDoc, responses((status = 201, body = PointAnswerDoc, description = "durable"),
    (status = 409, body = ErrorDoc, description = "the source is inactive, or the key was used with another body"),
    (status = "default", body = ErrorDoc)))]
pub async fn ingest(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let admitted = service.admit_points();
    let body = body::read_if(admitted, &request, payload, INGEST_BODY_BYTES_MAX).await?;
    let key = idempotency_key(&request)?;
    let answer = service.ingest_point(&caller, &body, key.as_ref()).await?;
    answered(&request, answer).await
}

/// Stores up to 1000 points; the fault of one does not stop the others.
#[utoipa::path(post, path = "/api/data/batch", tag = "data", security(("apiKey" = []), ("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 printable characters; the same key with the same body is answered once for 24 hours")),
    request_body = BatchBodyDoc, responses((status = 201, body = BatchAnswerDoc, description = "all stored, durable"),
    (status = 207, body = BatchAnswerDoc, description = "some stored, durable"),
    (status = 409, body = ErrorDoc, description = "the key was used with another body"),
    (status = "default", body = ErrorDoc)))]
pub async fn ingest_batch(
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, ACCESS)?;
    let admitted = service.admit_points();
    let body = body::read_if(admitted, &request, payload, BATCH_BODY_BYTES_MAX).await?;
    let key = idempotency_key(&request)?;
    let answer = service.ingest_batch(&caller, &body, key.as_ref()).await?;
    answered(&request, answer).await
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
