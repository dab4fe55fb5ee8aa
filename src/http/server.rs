//! The listening server: its limits and time-outs, and how it stops.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_cors::Cors;
use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::{Condition, from_fn};
use actix_web::web::Data;
use actix_web::{App, HttpServer};

use super::answer_budget::AnswerBudget;
use super::body_budget::BodyBudget;
use super::connections::Connections;
use super::edge::Edge;
use super::tls::Tls;
use super::traffic::Traffic;
use super::{edge, patterns, process, routes};
use crate::config::ServerConfig;
use crate::service::Service;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1_024;
/// A client that was told the connection ends has this long to end it.
pub(super) const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5);
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

/// A bound address, where connections wait for whoever serves next.
pub struct Listener {
    /// Where it listens; the real port when the configuration says 0.
    pub address: SocketAddr,
    socket: TcpListener,
}

/// A server that takes requests.
pub struct RunningServer {
    /// Where it listens; the real port when the configuration says 0.
    pub address: SocketAddr,
    handle: ServerHandle,
}

/// Starts serving, by TLS where there is a certificate.
///
/// # Errors
/// The operating system's.
pub fn start(service: Data<Service>, listener: &Listener, tls: Option<&Tls>) -> io::Result<RunningServer> {
    let config = service.config.server.clone();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = match config.workers {
        0 => cores,
        workers => workers,
    };
    let origins = config.cors_origins.clone();
    let bodies = Data::new(BodyBudget::new(
        service.config.storage.body_bytes_max() as usize,
        cores,
    ));
    let answers = AnswerBudget::new(config.answer_bytes_max);
    let traffic = Traffic::new(patterns(&service));
    process::note_start();
    let connections = Connections::new(&config);
    connections.sweep();
    let connected = connections.clone();
    let server = HttpServer::new(move || {
        let service = service.clone();
        // One for each worker, so that they do not share its count of references.
        let edge = Data::new(Edge {
            request_timeout: config.request_timeout,
            traffic: traffic.clone(),
            answers: answers.clone(),
            connections: connections.clone(),
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
        .max_connections(config.connections_max.div_ceil(workers))
        .client_request_timeout(config.head_timeout)
        .client_disconnect_timeout(DISCONNECT_TIMEOUT)
        .keep_alive(config.keep_alive)
        .shutdown_timeout(config.shutdown_timeout.as_secs())
        .disable_signals();
    let socket = listener.socket()?;
    let server = match tls {
        None => server.listen(socket)?,
        Some(tls) => server.listen_rustls_0_23(socket, tls.server_config().map_err(io::Error::other)?)?,
    };
    Ok(listener.served_by(server.run()))
}

impl Listener {
    /// The same socket under another name: the next server finds it open when one has closed its own.
    pub(super) fn socket(&self) -> io::Result<TcpListener> {
        self.socket.try_clone()
    }

    /// Has the server run.
    pub(super) fn served_by(&self, server: Server) -> RunningServer {
        let handle = server.handle();
        actix_web::rt::spawn(server);
        RunningServer {
            address: self.address,
            handle,
        }
    }
}

impl RunningServer {
    /// Stops accepting, and returns when the requests in flight are answered or out of time.
    pub async fn stop(self) {
        self.handle.stop(true).await;
    }
}

/// Binds the configured address. Connections inherit the time that their clients have to take what they were sent: a client that reads nothing would
/// otherwise keep its answer in memory for as long as it likes, for the HTTP library has no such time-out.
///
/// # Errors
/// The address cannot be bound.
pub fn listen(config: &ServerConfig) -> io::Result<Listener> {
    let socket = TcpListener::bind(config.listen)?;
    rustix::net::listen(&socket, BACKLOG)?;
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(
        &socket,
        u32::try_from(config.write_timeout.as_millis()).unwrap_or(u32::MAX),
    )?;
    Ok(Listener {
        address: socket.local_addr()?,
        socket,
    })
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
