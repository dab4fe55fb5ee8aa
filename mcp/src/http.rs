//! The transport over HTTP: one path, without sessions, so that every request brings its own key.
//!
//! As the MCP specification demands of servers on this transport, `Origin` and `Host` are checked, which keeps pages in a
//! browser from reaching a server on the same machine by a name of their own (DNS rebinding).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::HttpOptions;
use crate::keys::Keys;
use crate::server::Server;

/// The only path.
pub const PATH: &str = "/mcp";
/// Connections at a time; further ones wait.
const CONNECTIONS_MAX: usize = 256;
/// A request has a query at most.
const BODY_BYTES_MAX: usize = 1 << 20;
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a stop waits for requests under way.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Names of this machine for itself.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

type Service = StreamableHttpService<Server, NeverSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Serves connections until `stop` is cancelled, then waits a while for requests under way.
pub async fn serve(
    listener: TcpListener,
    server: Server,
    keys: &Keys,
    options: &HttpOptions,
    stop: CancellationToken,
) {
    let hosts = LOOPBACK_HOSTS.map(str::to_owned).into_iter();
    let own = [options.listen.ip().to_string()];
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_allowed_hosts(hosts.chain(own).chain(options.hosts.iter().cloned()))
        .with_allowed_origins(options.origins.iter().cloned())
        .enforce_origin_validation()
        .with_cancellation_token(stop.child_token());
    let service = Service::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = TaskTracker::new();
    loop {
        let accepting = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        let (place, stream) = match stop.run_until_cancelled(accepting).await {
            Some(Some((place, Ok((stream, _))))) => (place, stream),
            Some(Some((_, Err(error)))) => {
                tracing::warn!(%error, "a connection was not accepted");
                // Out of files, mostly: others have to end first.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            Some(None) | None => break,
        };
        let (service, keys, stop) = (service.clone(), keys.clone(), stop.clone());
        connections.spawn(async move {
            connection(stream, service, keys, stop).await;
            drop(place);
        });
    }
    connections.close();
    // What is still under way then ends with the process.
    let _ = tokio::time::timeout(STOP_GRACE, connections.wait()).await;
}

async fn connection(stream: TcpStream, service: Service, keys: Keys, stop: CancellationToken) {
    let answering = service_fn(|request| {
        let (service, keys) = (service.clone(), keys.clone());
        async move { Ok::<_, Infallible>(answer(&service, &keys, request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), answering);
    let mut serving = std::pin::pin!(serving);
    let outcome = match stop.run_until_cancelled(serving.as_mut()).await {
        Some(outcome) => outcome,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection broke");
    }
}

async fn answer(service: &Service, keys: &Keys, request: Request<Incoming>) -> Answer {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "MCP is served at /mcp");
    }
    if keys.of_call(Some(request.headers())).is_none() {
        let mut refusal = plain(
            StatusCode::UNAUTHORIZED,
            "send a key as Authorization: Bearer svc_…",
        );
        refusal
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refusal;
    }
    service.handle(request).await
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer
}
