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
    /// Blocks of points that queries or merges met and that do not read; the log says where they are. On `/ready`, and
    /// only when there are any: queries that need one answer 500.
    #[serde(rename = "damagedBlocks", skip_serializing_if = "Option::is_none")]
    #[schema(rename = "damagedBlocks", required = false, minimum = 1)]
    pub damaged_blocks: Option<u64>,
}

impl HealthAnswer {
    fn of(status: &'static str) -> Self {
        HealthAnswer {
            status,
            set_apart: Vec::new(),
            damaged_blocks: None,
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
            saturated), the memory of points, or a data directory that is gone.")))]
pub async fn ready(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    service
        .readiness()
        .map_err(|why| ServiceError::unavailable(format!("not ready: {why}"), RETRY_AFTER_SECONDS))?;
    let answer = HealthAnswer {
        set_apart: service.buckets_set_apart(),
        damaged_blocks: Some(service.buckets.damaged().count()).filter(|count| *count > 0),
        ..HealthAnswer::of("ready")
    };
    respond::json(&request, StatusCode::OK, &answer).await
}
