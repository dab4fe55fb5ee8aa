//! `GET /api/changes`: what an open page asks again and again, so that it need not ask for anything else until it changed.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::{auth, respond};
use crate::error::ServiceError;
use crate::service::{Access, Service};

/// What of an organization has changed.
#[derive(Serialize, ToSchema)]
pub struct ChangesAnswer {
    /// A text for each kind.
    pub changes: ChangesView,
}

/// A text for each kind of things: another one than before when any of them is not as it was.
#[derive(Serialize, ToSchema)]
pub struct ChangesView {
    /// Its name and plan.
    pub organization: String,
    /// Buckets.
    pub buckets: String,
    /// Data sources and their schemas; points do not count.
    pub sources: String,
    /// Alert rules, their verdicts and states.
    pub rules: String,
    /// Webhooks and their deliveries.
    pub webhooks: String,
    /// API keys, their last use not counted.
    pub keys: String,
}

/// Tells what has changed.
///
/// Ask with `If-None-Match`: 304 as long as nothing has. Costs the same whatever there is, and counts no call. A rule that
/// is `clearing` becomes `armed` by time alone, at `conditionClearedAt` + `dwellSeconds`: that is no change here.
#[utoipa::path(get, path = "/api/changes", operation_id = "showChanges", tag = "organization",
    security(("bearer" = [])),
    params(("If-None-Match" = Option<String>, Header, description = "The `ETag` of the answer before.")),
    responses(
        (status = 200, body = ChangesAnswer, description = "A text for each kind of things, to be compared."),
        (status = 304, description = "Nothing has changed.")))]
pub async fn show(request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ServiceError> {
    let caller = auth::authenticate(&request, &service, Access::BEARER)?;
    let (run, revisions) = service.revisions(&caller)?;
    let text = |revision: u64| format!("{run:x}-{revision:x}");
    let changes = ChangesView {
        organization: text(revisions.organization),
        buckets: text(revisions.buckets),
        sources: text(revisions.sources),
        rules: text(revisions.rules),
        webhooks: text(revisions.webhooks),
        keys: text(revisions.keys),
    };
    let tag = format!("\"{}\"", text(revisions.total()));
    let tag = HeaderValue::try_from(tag).map_err(ServiceError::internal)?;
    let mut response = if is_known(&request, &tag) {
        HttpResponse::new(StatusCode::NOT_MODIFIED)
    } else {
        respond::json(&request, StatusCode::OK, &ChangesAnswer { changes }).await?
    };
    response.headers_mut().insert(ETAG, tag);
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// Whether the caller has the answer of this tag already (RFC 9110, 13.1.2; weak comparison).
fn is_known(request: &HttpRequest, tag: &HeaderValue) -> bool {
    let known = request.headers().get_all(IF_NONE_MATCH);
    let mut tags = known
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','));
    tags.any(|it| {
        let it = it.trim();
        it == "*" || it.trim_start_matches("W/").as_bytes() == tag.as_bytes()
    })
}
