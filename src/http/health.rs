//! Whether the process lives, and whether it takes writes.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::docs::HealthDoc;
use super::respond;
use crate::error::ServiceError;
use crate::service::Service;

/// What a prober should wait before it asks again.
const RETRY_AFTER_SECONDS: u32 = 5;

/// How the server is.
#[derive(Serialize, ToSchema)]
pub struct HealthAnswer {
    /// How it is.
    #[schema(value_type = HealthDoc)]
    pub status: &'static str,
    /// Ids of the buckets that answer 503 because their files or their state failed; the log says what it was. On
    /// `/ready`, and only when there are any: the others are served.
    #[serde(rename = "setApart", skip_serializing_if = "Vec::is_empty")]
    #[schema(rename = "setApart", required = false)]
    pub set_apart: Vec<String>,
}

impl HealthAnswer {
    fn of(status: &'static str) -> Self {
        HealthAnswer {
            status,
            set_apart: Vec::new(),
        }
    }
}

/// Says that the process answers.
///
/// For whatever restarts a process that hangs. Answers while the data directory is recovered, too.
#[utoipa::path(get, path = "/health", operation_id = "showHealth", tag = "operation",
    responses(
        (status = 200, body = HealthAnswer, description = "The process lives.")))]
pub async fn alive(request: HttpRequest) -> Result<HttpResponse, ServiceError> {
    respond::json(&request, StatusCode::OK, &HealthAnswer::of("ok")).await
}

/// Says whether writes are taken.
///
/// For load balancers: recovery is done, the log takes writes, and there is memory for points.
#[utoipa::path(get, path = "/ready", operation_id = "showReadiness", tag = "operation",
    responses(
        (status = 200, body = HealthAnswer, description = "Recovery is done, and writes are taken."),
        (status = 503, description = "Not ready; the message says why: recovering, the log (failed, full, waiting for a checkpoint, \
            saturated), or the memory of points.")))]
pub async fn ready(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    service
        .readiness()
        .map_err(|why| ServiceError::unavailable(format!("not ready: {why}"), RETRY_AFTER_SECONDS))?;
    let answer = HealthAnswer {
        set_apart: service.buckets_set_apart(),
        ..HealthAnswer::of("ready")
    };
    respond::json(&request, StatusCode::OK, &answer).await
}
