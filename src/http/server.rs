//! The listening server: its limits and time-outs, and how it stops.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_cors::Cors;
use actix_web::dev::ServerHandle;
use actix_web::middleware::{Condition, from_fn};
use actix_web::web::Data;
use actix_web::{App, HttpServer};

use super::body_budget::BodyBudget;
use super::edge::Edge;
use super::traffic::Traffic;
use super::{edge, patterns, process, routes};
use crate::service::Service;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1_024;
/// A client that was told the connection ends has this long to end it.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// What a page of another origin may read of an answer beyond its body.
const EXPOSED_HEADERS: [&str; 6] = [
    "X-Request-Id",
    "Retry-After",
    "Idempotent-Replayed",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
];
/// Browsers may keep the answer to a preflight this long.
const PREFLIGHT_SECONDS: usize = 3_600;

/// A server that takes requests.
pub struct RunningServer {
    /// Where it listens; the real port when the configuration says 0.
    pub address: SocketAddr,
    handle: ServerHandle,
}

/// Binds and starts serving.
///
/// # Errors
/// The address cannot be bound.
pub fn start(service: Data<Service>) -> io::Result<RunningServer> {
    let config = service.config.server.clone();
    let workers = match config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    };
    let origins = config.cors_origins.clone();
    let bodies = Data::new(BodyBudget::of_memory(service.config.storage.memory_bytes_max));
    let traffic = Traffic::new(patterns(&service));
    process::note_start();
    let connected = traffic.clone();
    let server = HttpServer::new(move || {
        let service = service.clone();
        // One for each worker, so that they do not share its count of references.
        let edge = Data::new(Edge {
            request_timeout: config.request_timeout,
            traffic: traffic.clone(),
        });
        App::new()
            .app_data(service.clone())
            .app_data(bodies.clone())
            .app_data(edge)
            .wrap(Condition::new(!origins.is_empty(), cors(&origins)))
            .wrap(from_fn(edge::serve))
            .configure(|routing| routes(routing, &service))
    });
    let server = server
        .on_connect(move |connection, data| connected.connected(connection, data))
        .workers(workers)
        .backlog(BACKLOG)
        .max_connections(config.connections_max.div_ceil(workers))
        .client_request_timeout(config.head_timeout)
        .client_disconnect_timeout(DISCONNECT_TIMEOUT)
        .keep_alive(config.keep_alive)
        .shutdown_timeout(config.shutdown_timeout.as_secs())
        .disable_signals()
        .bind(config.listen)?;
    let address = server.addrs().first().copied().unwrap_or(config.listen);
    let running = server.run();
    let handle = running.handle();
    actix_web::rt::spawn(running);
    Ok(RunningServer { address, handle })
}

impl RunningServer {
    /// Stops accepting, and returns when the requests in flight are answered or out of time.
    pub async fn stop(self) {
        self.handle.stop(true).await;
    }
}

fn cors(origins: &[String]) -> Cors {
    let cors = origins
        .iter()
        .fold(Cors::default(), |cors, origin| cors.allowed_origin(origin));
    cors.allowed_methods(["GET", "POST", "PATCH", "DELETE"])
        .allow_any_header()
        .expose_headers(EXPOSED_HEADERS)
        .max_age(PREFLIGHT_SECONDS)
}
