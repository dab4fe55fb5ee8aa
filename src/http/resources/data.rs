//! `/api/data` and `/api/data/batch`.

use std::marker::PhantomData;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::Payload;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::error::{Detail, ErrorKind, ServiceError};
use crate::http::body::{self, Body};
use crate::http::docs::points::{BatchBody, BatchError, PointAnswer, PointBody};
use crate::http::endpoint::{Call, Components, Endpoint, RequestBody, Sender, Written, post};
use crate::http::respond;
use crate::http::shape::Faults;
use crate::http::write::{BatchAnswer, PartialBatchAnswer, write_ingest};
use crate::limits::{BATCH_BODY_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, INGEST_BODY_BYTES_MAX};
use crate::service::ShardService;
use crate::service::data::{BodyKind, IngestAnswer};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const REPLAYED: &str = "`true` when the answer is that of an earlier request with the same key.";

const REPLAYED_REQUEST: &str = "Printable ASCII of your choice, new for each new body. Sent again with the same bytes \
    within 24 hours, it gives the first answer again and stores nothing.";
/// The same of an import.
pub const REPLAYED_ROWS: &str = "Printable ASCII of your choice, new for each new file. Sent again with the same file \
    and parameters within 24 hours, rows that were stored are not stored again, also if the first request broke off.";

/// The description of the header.
pub fn idempotency_key_header(about: &str) -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "required": false, "description": about,
        "schema": {
            "type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES_MAX,
            "pattern": "^[!-~]([ -~]*[!-~])?$",
        },
    })
}

pub fn endpoints() -> Vec<Endpoint> {
    let idempotency_key = idempotency_key_header(REPLAYED_REQUEST);
    vec![
        post("/api/data", "ingestPoint", ingest)
            .forwarded(|route| {
                route.keeps_answers = true;
                route.is_bundled = true;
            })
            .reads_header(idempotency_key.clone())
            .status(StatusCode::CREATED)
            .answers::<BatchAnswer>(StatusCode::OK)
            .writes_header("Idempotent-Replayed", REPLAYED),
        post("/api/data/batch", "ingestBatch", ingest_batch)
            .forwarded(|route| route.keeps_answers = true)
            .reads_header(idempotency_key)
            .status(StatusCode::CREATED)
            .answers::<PartialBatchAnswer>(StatusCode::MULTI_STATUS)
            .answers::<BatchError>(StatusCode::BAD_REQUEST)
            .writes_header("Idempotent-Replayed", REPLAYED),
    ]
}

/// A body of points, which the service reads itself, straight into columns.
struct Points<Doc, const BYTES_MAX: usize> {
    body: Body,
    of: PhantomData<Doc>,
}

impl<Doc: ToSchema, const BYTES_MAX: usize> RequestBody<ShardService> for Points<Doc, BYTES_MAX> {
    /// Where points would be refused, their body is discarded as it arrives.
    async fn receive(
        request: &HttpRequest,
        payload: Payload,
        service: &ShardService,
        _: &Faults,
    ) -> Result<Option<Self>, ServiceError> {
        let body = body::read(service.buckets.admit(), request, payload, BYTES_MAX).await;
        if matches!(&body, Err(error) if error.kind == ErrorKind::Unavailable) {
            service.buckets.note_overload();
        }
        let of = PhantomData;
        body.map(|body| Some(Self { body, of }))
    }

    fn describe(components: &mut Components) -> Option<Value> {
        let schema = components.add::<Doc>();
        Some(components.request_body(schema, true))
    }
}

async fn ingest(
    call: Call<Sender, (), Points<PointBody, INGEST_BODY_BYTES_MAX>>,
) -> Result<Written<PointAnswer>, ServiceError> {
    let (key, body) = (idempotency_key(&call.request)?, &call.body.body);
    let answer = call
        .service
        .ingest(&call.caller, BodyKind::Point, body, key, write_ingest);
    answered(&call.request, answer.await?).await
}

async fn ingest_batch(
    call: Call<Sender, (), Points<BatchBody, BATCH_BODY_BYTES_MAX>>,
) -> Result<Written<BatchAnswer>, ServiceError> {
    let (key, body) = (idempotency_key(&call.request)?, &call.body.body);
    let answer = call
        .service
        .ingest(&call.caller, BodyKind::Batch, body, key, write_ingest);
    answered(&call.request, answer.await?).await
}

/// The request's idempotency key.
pub fn idempotency_key(request: &HttpRequest) -> Result<Option<&[u8]>, ServiceError> {
    let key = request.headers().get(&IDEMPOTENCY_KEY).map(HeaderValue::as_bytes);
    match key {
        Some(key) if !is_idempotency_key(key) => Err(ServiceError::faults(vec![Detail {
            path: vec!["Idempotency-Key".to_owned()],
            message: format!("must be 1 to {IDEMPOTENCY_KEY_BYTES_MAX} printable ASCII characters"),
        }])),
        key => Ok(key),
    }
}

fn is_idempotency_key(value: &[u8]) -> bool {
    let is_printable = value.iter().all(|byte| (b' '..=b'~').contains(byte));
    is_printable && (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&value.len())
}

async fn answered<T>(request: &HttpRequest, answer: IngestAnswer) -> Result<Written<T>, ServiceError> {
    let status = StatusCode::from_u16(answer.status).map_err(ServiceError::internal)?;
    let mut response = respond::respond(request, status, answer.body).await?;
    if answer.replayed {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENT_REPLAYED.clone(), yes);
    }
    Ok(response.into())
}

#[cfg(test)]
mod tests {
    use super::is_idempotency_key;

    #[test]
    fn keys_are_printable_and_bounded() {
        for good in [&b"a"[..], b"a b~", &[b'x'; 255]] {
            assert!(is_idempotency_key(good));
        }
        for bad in [&b""[..], b"tab\t", "\u{e9}".as_bytes(), &[b'x'; 256], b"\x7f"] {
            assert!(!is_idempotency_key(bad));
        }
    }
}
