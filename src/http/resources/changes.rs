//! `GET /api/changes`: what an open page asks again and again, so that it need not ask for anything else until it changed.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Answered, Bearer, Call, Endpoint, Written, get};

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
