//! What is served while the data directory is recovered: that the process lives, and that it is not ready. Whoever
//! restarts processes that do not answer would otherwise end a long recovery, each time anew.

use std::io;
use std::time::Duration;

use actix_web::http::{KeepAlive, Method};
use actix_web::web::{self, method};
use actix_web::{App, HttpResponse, HttpServer};

use super::error::error_response;
use super::health;
use super::request_id::RequestId;
use super::server::{DISCONNECT_TIMEOUT, Listener, RunningServer};
use super::tls::Tls;
use crate::config::ServerConfig;
use crate::error::ServiceError;

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
    let server = HttpServer::new(|| {
        App::new()
            .route("/health", method(Method::GET).to(health::alive))
            .route("/ready", web::to(not_ready))
            .default_service(web::to(refused))
    });
    let server = server
        .workers(1)
        .max_connections(config.connections_max)
        .client_request_timeout(config.head_timeout)
        .client_disconnect_timeout(DISCONNECT_TIMEOUT)
        // The next request of whoever asks now is for the whole server.
        .keep_alive(KeepAlive::Disabled)
        .shutdown_timeout(STOP_WITHIN.as_secs())
        .disable_signals();
    let socket = listener.socket()?;
    let server = match tls {
        None => server.listen(socket)?,
        Some(tls) => server.listen_rustls_0_23(socket, tls.server_config().map_err(io::Error::other)?)?,
    };
    Ok(listener.served_by(server.run()))
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
