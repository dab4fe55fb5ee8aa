//! `GET /api/changes`: revisions that an open page polls, so that it reloads only what has changed.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;

use super::views::view;
use crate::catalog::Revisions;
use crate::error::ServiceError;
use crate::http::endpoint::{Answer, Bearer, Call, Endpoint, HandlerAnswer, Written, get};

view! {
    /// The current revisions of an organization's objects.
    pub struct ChangesAnswer of(run: u64, revisions: &Revisions) {
        /// Revision tokens, one for each type of object.
        changes: ChangesView = ChangesView::of(run, revisions),
    }
}

view! {
    /// Opaque revision tokens, one for each type of object. A token differs from an earlier one when any object of the type
    /// has changed.
    pub struct ChangesView of(run: u64, revisions: &Revisions) {
        /// The organization's name and plan.
        organization: String = token(run, revisions.organization),
        /// Buckets.
        buckets: String = token(run, revisions.buckets),
        /// Data sources and their schemas; new points do not count as a change.
        sources: String = token(run, revisions.sources),
        /// Alert rules, their verdicts and states.
        rules: String = token(run, revisions.rules),
        /// Webhooks and their deliveries.
        webhooks: String = token(run, revisions.webhooks),
        /// API keys; use of a key does not count as a change.
        keys: String = token(run, revisions.keys),
        /// Silences; that one ends by itself does not count as a change.
        silences: String = token(run, revisions.silences),
        /// Annotations.
        annotations: String = token(run, revisions.annotations),
        /// Boards and their links.
        boards: String = token(run, revisions.boards),
        /// Members and invitations.
        members: String = token(run, revisions.members),
    }
}

fn token(run: u64, revision: u64) -> String {
    format!("{run:x}-{revision:x}")
}

pub fn endpoints() -> Vec<Endpoint> {
    vec![get("/api/changes", "showChanges", show).reads_header(json!({
        "name": "If-None-Match", "in": "header", "required": false, "schema": {"type": "string"},
        "description": "The `ETag` of the answer before.",
    }))]
}

async fn show(call: Call<Bearer>) -> Result<Written<ChangesAnswer>, ServiceError> {
    let (run, revisions) = call.service.revisions(&call.caller)?;
    let tag = format!("\"{}\"", token(run, revisions.total()));
    let tag = HeaderValue::try_from(tag).map_err(ServiceError::internal)?;
    let mut response = if is_known(&call.request, &tag) {
        HttpResponse::new(StatusCode::NOT_MODIFIED)
    } else {
        let answer = Answer::of(&ChangesAnswer::of(run, &revisions))?;
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
