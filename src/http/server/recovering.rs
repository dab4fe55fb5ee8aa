//! What is served while the data directory is recovered: that the process lives, and that it is not ready. Whoever
//! restarts processes that do not answer would otherwise end a long recovery, each time anew.

use std::io;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::ALLOW;
use actix_web::http::header::HeaderValue;
use actix_web::web;
use actix_web::{App, HttpRequest, HttpResponse};

use super::listener::{Counts, Limits, Listener, RunningServer};
use super::request_id::{REQUEST_ID_HEADER, RequestId};
use super::tls::Tls;
use crate::config::ServerConfig;
use crate::error::{ErrorKind, ServiceError};
use crate::http::error::error_response;
use crate::http::resources::health::HealthAnswer;
use crate::http::respond;

/// What a refused request should wait.
const RETRY_AFTER_SECONDS: u32 = 5;

/// Requests that are being answered when recovery ends have this long; it is what a silent client may cost a start.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// Serves this until it is stopped. What connects from then on waits for [`super::start`].
///
/// # Errors
/// The operating system's.
pub fn start_recovering(
    config: &ServerConfig,
    listener: &Listener,
    tls: Option<&Tls>,
) -> io::Result<RunningServer> {
    let limits = Limits {
        // The next request of whoever asks now is for the whole server.
        keep_alive: None,
        shutdown_timeout: STOP_WITHIN,
        ..Limits::of(config, 1)
    };
    let router = || {
        let health = web::resource("/health")
            .route(web::get().to(alive))
            .route(web::head().to(alive))
            .default_service(web::to(wrong_method));
        App::new()
            .service(health)
            .route("/ready", web::to(not_ready))
            .default_service(web::to(refused))
    };
    listener.serve(router, tls, limits, Counts::default())
}

async fn alive(request: HttpRequest) -> Result<HttpResponse, ServiceError> {
    let mut answer = respond::json(&request, StatusCode::OK, &HealthAnswer::of("ok")).await?;
    if let Some(id) = RequestId::next().header_value() {
        answer.headers_mut().insert(REQUEST_ID_HEADER.clone(), id);
    }
    Ok(answer)
}

async fn wrong_method() -> HttpResponse {
    let error = ServiceError::new(ErrorKind::MethodNotAllowed, "this route takes GET");
    let mut answer = error_response(&error, RequestId::next());
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    answer
}

async fn not_ready() -> HttpResponse {
    unavailable("not ready: recovering the data directory")
}

async fn refused() -> HttpResponse {
    unavailable("the server is starting: it is recovering its data directory; send it again in a moment")
}

fn unavailable(message: &str) -> HttpResponse {
    error_response(
        &ServiceError::unavailable(message, RETRY_AFTER_SECONDS),
        RequestId::next(),
    )
}
