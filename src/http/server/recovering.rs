//! What is served while the data directory is recovered: the process is alive but not ready. Otherwise a supervisor
//! that restarts processes that do not answer would interrupt a long recovery, again and again.

use std::io;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::web;
use actix_web::{App, HttpRequest, HttpResponse, Route};

use listener::{Counts, Limits, Listener, Options, RunningServer};

use super::request_id::RequestId;
use super::tls::Tls;
use super::{limits, refusal, server_config};
use crate::config::ServerConfig;
use crate::error::{ErrorKind, ServiceError};
use crate::http::error::error_response;
use crate::http::resources::health::HealthAnswer;
use crate::http::respond;

/// `Retry-After` of a refused request.
const RETRY_AFTER_SECONDS: u32 = 5;

/// Time for requests in flight when recovery ends; a silent client may delay the start by this much.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// Serves until it is stopped. Later connections wait in the queue for [`super::Server::start`].
pub fn start_recovering(
    config: &ServerConfig,
    listener: &Listener,
    tls: Option<&Tls>,
) -> io::Result<RunningServer> {
    let limits = Limits {
        // The client's next request is for the full server.
        keep_alive: None,
        shutdown_timeout: STOP_WITHIN,
        ..limits(config, config.keep_alive, 1)
    };
    let router = |_| {
        let health = web::resource("/health")
            .route(web::get().to(alive))
            .route(web::head().to(alive))
            .default_service(web::to(wrong_method));
        App::new()
            .service(health)
            .route("/ready", unavailable("not ready: recovering the data directory"))
            .default_service(unavailable(
                "the server is starting: it is recovering its data directory; send it again in a moment",
            ))
    };
    let options = Options {
        limits,
        tls: server_config(tls)?,
        counts: Counts::default(),
        refuse: refusal::answer,
    };
    listener.serve(router, options)
}

async fn alive(request: HttpRequest) -> Result<HttpResponse, ServiceError> {
    let mut answer = respond::json(&request, StatusCode::OK, &HealthAnswer::of("ok")).await?;
    RequestId::next().write(answer.headers_mut());
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

/// Answers every request with this 503.
fn unavailable(message: &'static str) -> Route {
    web::to(move || async move {
        let error = ServiceError::unavailable(message, RETRY_AFTER_SECONDS);
        error_response(&error, RequestId::next())
    })
}
