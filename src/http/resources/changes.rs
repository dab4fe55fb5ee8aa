//! `GET /api/changes`: revisions that an open page polls, so that it reloads only what has changed.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Bearer, Call, Endpoint, HandlerAnswer, Written, get};

/// The current revisions of an organization's objects.
#[derive(Serialize, ToSchema)]
pub struct ChangesAnswer {
    /// Revision tokens, one for each type of object.
    pub changes: ChangesView,
}

/// Opaque revision tokens, one for each type of object. A token differs from an earlier one when any object of the type
/// has changed.
#[derive(Serialize, ToSchema)]
pub struct ChangesView {
    /// The organization's name and plan.
    pub organization: String,
    /// Buckets.
    pub buckets: String,
    /// Data sources and their schemas; new points do not count as a change.
    pub sources: String,
    /// Alert rules, their verdicts and states.
    pub rules: String,
    /// Webhooks and their deliveries.
    pub webhooks: String,
    /// API keys; use of a key does not count as a change.
    pub keys: String,
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/api/changes", "showChanges", show).reads_header(json!({
        "name": "If-None-Match", "in": "header", "required": false, "schema": {"type": "string"},
        "description": "The `ETag` of the answer before.",
    }))]
}

async fn show(call: Call<Bearer>) -> Result<Written<ChangesAnswer>, ServiceError> {
    let (run, revisions) = call.service.revisions(&call.caller)?;
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
    let mut response = if is_known(&call.request, &tag) {
        HttpResponse::new(StatusCode::NOT_MODIFIED)
    } else {
        let answer = Answer::of(&ChangesAnswer { changes })?;
        answer.respond(&call.request, StatusCode::OK).await?
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response.into())
}

/// Whether `If-None-Match` contains this tag (RFC 9110, 13.1.2; weak comparison).
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
