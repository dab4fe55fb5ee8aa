//! Whether the process lives, and whether it takes writes.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::docs::ErrorDoc;
use super::respond;
use crate::error::ServiceError;
use crate::service::Service;

/// What a prober should wait before it asks again.
const RETRY_AFTER_SECONDS: u32 = 5;

/// How the server is.
#[derive(Serialize, ToSchema)]
pub struct HealthAnswer {
    /// `ok` or `ready`.
    pub status: &'static str,
}

/// The process answers.
#[utoipa::path(get, path = "/health", tag = "operation", responses((status = 200, body = HealthAnswer)))]
pub async fn alive(request: HttpRequest) -> Result<HttpResponse, ServiceError> {
    respond::json(&request, StatusCode::OK, &HealthAnswer { status: "ok" }).await
}

/// Recovery is done and the disk takes writes.
#[utoipa::path(get, path = "/ready", tag = "operation",
    responses((status = 200, body = HealthAnswer), (status = 503, body = ErrorDoc, description = "why not")))]
pub async fn ready(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    service
        .journal
        .readiness()
        .map_err(|why| ServiceError::unavailable(format!("not ready: {why}"), RETRY_AFTER_SECONDS))?;
    respond::json(&request, StatusCode::OK, &HealthAnswer { status: "ready" }).await
}
