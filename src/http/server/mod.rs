//! What happens around the handlers: TLS, the limits of the listener, and the middleware of every request.

pub mod answer_budget;
pub mod body_budget;
mod deadlines;
pub mod middleware;
pub mod process;
pub mod rate_limit;
mod recovering;
mod refusal;
pub mod request_context;
pub mod request_id;
mod request_metrics;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_cors::Cors;
use actix_web::App;
use actix_web::middleware::from_fn;
use actix_web::web::{Data, get, post};

use crate::config::ServerConfig;
use crate::http::bundle;
use crate::http::inside;
use crate::http::node_client::{IDLE_MAX, NodeAccess, NodeClient};
use crate::http::table;
use crate::open_files;
use crate::service::Node;
use answer_budget::AnswerBudget;
use body_budget::BodyBudget;
use deadlines::Deadlines;
use listener::{CONNECTIONS_MAX, Counts, Limits, Listener, Options, RunningServer, WorkerRouter};
use middleware::Shared;
use request_metrics::RequestMetrics;

pub use recovering::start_recovering;
pub(super) use tls::PemFile;
pub use tls::{Tls, TlsError};

/// Headers of an answer that a page of another origin may read.
const EXPOSED_HEADERS: [&str; 9] = [
    "X-Request-Id",
    "ETag",
    "Content-Disposition",
    "Retry-After",
    "Idempotent-Replayed",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Session-Token",
];
/// How long another node's connection may be idle. The other node ends it long before: what became of a request that meets
/// the end of its connection would not be known.
const INSIDE_KEEP_ALIVE: Duration = Duration::from_secs(75);
const _: () = assert!(INSIDE_KEEP_ALIVE.as_secs() > 2 * IDLE_MAX.as_secs());
/// How long the client of a download may take nothing of it.
pub(super) const DOWNLOAD_QUIET_MAX: Duration = Duration::from_secs(300);
/// How long browsers may cache the answer to a preflight request.
const PREFLIGHT_SECONDS: usize = 3_600;

/// What the listeners of a process have in common.
pub struct Server {
    node: Data<Node>,
    workers: usize,
    bodies: Data<BodyBudget>,
    answers: AnswerBudget,
    metrics: Arc<RequestMetrics>,
    /// For connections with the other nodes of a cluster.
    access: NodeAccess,
}

impl Server {
    /// A server of this node, which serves nobody yet.
    pub fn new(node: Data<Node>, access: NodeAccess) -> Self {
        process::note_start();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let config = &node.config;
        Server {
            workers: match config.server.workers {
                0 => cores,
                workers => workers,
            },
            bodies: Data::new(BodyBudget::new(config.storage.body_bytes_max() as usize, cores)),
            answers: AnswerBudget::new(config.server.answer_bytes_max),
            metrics: Arc::new(RequestMetrics::new(table::patterns(&node))),
            node,
            access,
        }
    }

    /// Starts serving clients, with TLS if there is a certificate.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn start(&self, listener: &Listener, tls: Option<&Tls>) -> io::Result<RunningServer> {
        let options = self.options(server_config(tls)?, self.node.config.server.keep_alive);
        let origins = self.node.config.server.cors_origins.clone();
        let (node, bodies, answers) = (self.node.clone(), self.bodies.clone(), self.answers.clone());
        let (shared, access) = (self.shared(&options.counts), self.access.clone());
        let router = move || {
            App::new()
                .app_data(node.clone())
                .app_data(bodies.clone())
                .app_data(Data::new(answers.clone()))
                // One instance for each worker, so that workers do not share a reference count.
                .app_data(Data::new(shared()))
                .app_data(Data::new(NodeClient::new(access.clone())))
                .configure(|routing| table::register(routing, &node))
        };
        if origins.is_empty() {
            return listener.serve(move |_| router().wrap(from_fn(middleware::serve)), options);
        }
        let router = move |_| router().wrap(cors(&origins)).wrap(from_fn(middleware::serve));
        listener.serve(router, options)
    }

    /// Starts serving the other nodes of a cluster.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn start_inside(&self, listener: &Listener) -> io::Result<RunningServer> {
        let options = self.options(server_config(self.access.tls())?, INSIDE_KEEP_ALIVE);
        let (node, bodies, answers) = (self.node.clone(), self.bodies.clone(), self.answers.clone());
        let shared = self.shared(&options.counts);
        let router = move |router: WorkerRouter| {
            App::new()
                .app_data(node.clone())
                .app_data(bodies.clone())
                .app_data(Data::new(answers.clone()))
                .app_data(Data::new(shared()))
                // For the requests in bundles.
                .app_data(router)
                .wrap(from_fn(middleware::serve))
                .wrap(from_fn(inside::admit))
                .route(inside::NEWS_PATH, post().to(inside::news))
                .route(inside::CREDENTIAL_PATH, get().to(inside::credential))
                .route(bundle::PATH, post().to(bundle::receive))
                .configure(|routing| table::register(routing, &node))
        };
        listener.serve(router, options)
    }

    fn options(&self, tls: Option<rustls::ServerConfig>, keep_alive: Duration) -> Options {
        let config = &self.node.config.server;
        let limits = limits(config, keep_alive, self.workers);
        if limits.connections_max < config.connections_max {
            tracing::warn!(
                configured = config.connections_max,
                connections_max = limits.connections_max,
                "server.connections_max is lowered to fit the available file descriptors and memory"
            );
        }
        Options {
            limits,
            tls,
            counts: Counts::default(),
            refuse: refusal::answer,
        }
    }

    /// Makes what the requests of a worker share.
    fn shared(&self, counts: &Counts) -> impl Fn() -> Shared + Clone + Send + use<> {
        let timeout = self.node.config.server.request_timeout;
        let (metrics, answers) = (Arc::clone(&self.metrics), self.answers.clone());
        let connections = counts.clone();
        move || Shared {
            deadlines: Deadlines::new(timeout),
            metrics: Arc::clone(&metrics),
            answers: answers.clone(),
            connections: connections.clone(),
        }
    }
}

fn server_config(tls: Option<&Tls>) -> io::Result<Option<rustls::ServerConfig>> {
    let config = tls.map(Tls::server_config).transpose();
    config.map_err(io::Error::other)
}

/// The listener's limits, from the configuration and the limits of the operating system.
fn limits(config: &ServerConfig, keep_alive: Duration, workers: usize) -> Limits {
    let allowed = open_files::connections_allowed().min(CONNECTIONS_MAX);
    Limits {
        workers,
        connections_max: config.connections_max.min(allowed),
        head_timeout: config.head_timeout,
        keep_alive: Some(keep_alive),
        // A client may be idle, send a head and take an answer in sequence, each for its full time.
        quiet_max: keep_alive + config.head_timeout + config.write_timeout,
        download_quiet_max: DOWNLOAD_QUIET_MAX,
        shutdown_timeout: config.shutdown_timeout,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_default_number_of_connections_fits_into_their_memory() {
        let configured = Config::defaults().unwrap().server.connections_max;
        assert!(configured <= CONNECTIONS_MAX, "{CONNECTIONS_MAX}");
    }

    #[test]
    fn more_connections_than_memory_allows_are_refused() {
        let mut config = Config::defaults().unwrap().server;
        config.connections_max = 1_000_000;
        assert!(limits(&config, config.keep_alive, 1).connections_max <= CONNECTIONS_MAX);
        config.connections_max = 1;
        assert_eq!(limits(&config, config.keep_alive, 1).connections_max, 1);
    }
}
