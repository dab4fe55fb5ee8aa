//! Starts and stops the server: lock, bind, recover, serve, wait for a signal, stop.

pub mod cluster;
mod lock;
mod logging;
mod opener;
mod remote;
mod signals;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use futures_util::future::{Either, select};
use listener::{Listener, RunningServer};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::checkpoint;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::ServiceError;
use crate::http::{self, NodeAccess, Tls, TlsError};
use crate::open_files;
use crate::remote::Publishing;
use crate::service::{Node, Service};

pub use lock::{DirectoryLock, LOCK_NAME, LockError};
pub use logging::start_logging;
pub use signals::StopSignals;

use cluster::Member;
use opener::Opener;

/// During a recovery that takes no longer than this, clients wait in the socket's backlog and none is refused.
const QUICK_RECOVERY: Duration = Duration::from_millis(500);

/// How often uses of keys are made durable: `lastUsedAt` is exact to the minute.
const KEY_TOUCH_PERIOD: Duration = Duration::from_secs(60);

/// How often call counts are made durable: a crash may lose the last ones.
const CALLS_PERIOD: Duration = Duration::from_secs(1);

/// How often the server looks which sources have become stale or fresh.
const FRESHNESS_PERIOD: Duration = Duration::from_secs(1);

/// How long a stop waits for delivery attempts in flight. Later ones are repeated after the next start.
const DELIVERIES_STOP_WITHIN: Duration = Duration::from_secs(5);

/// Checkpoints and recoveries at the same time in a node of a cluster: they wait for the object store most of the time.
const CLUSTER_CHECKPOINTS: usize = 4;

/// Within this time the server notices that its data directory was removed or replaced.
const DIRECTORY_CHECK_PERIOD: Duration = Duration::from_secs(1);

/// A running server.
pub struct Running {
    /// What serves clients.
    server: RunningServer,
    /// What serves the other nodes of a cluster.
    inside: Option<RunningServer>,
    /// The certificates in use.
    tls: Vec<Tls>,
    node: Data<Node>,
    kind: Kind,
    /// Notified when a node of a cluster has lost its data directory and must stop.
    directory_gone: Arc<Notify>,
    /// The threads that the shards run on.
    _opener: Arc<Opener>,
    /// Held to the end: no other process may open the directory before the last byte is written.
    _lock: Arc<DirectoryLock>,
}

/// What a node is part of.
enum Kind {
    /// Nothing: a server on one machine, whose checkpoints may be kept elsewhere, too.
    One(Option<Publishing>),
    Cluster(Member),
}

/// Why the server does not start, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The data directory cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The data on disk cannot be opened.
    #[error(transparent)]
    Rooms(#[from] checkpoint::OpenError),
    /// The last checkpoint failed, or the log could not be closed. What was acknowledged is in the log nevertheless.
    #[error(transparent)]
    Close(checkpoint::CheckpointError),
    /// The process may open too few files for its threads.
    #[error(
        "the process may open only {0} files at a time and needs at least {min}: raise the limit (ulimit -n, or LimitNOFILE of \
         a systemd unit)",
        min = open_files::FILES_MIN
    )]
    FewFiles(u64),
    /// The address cannot be bound.
    #[error("cannot listen on {address} (server.listen): {source}")]
    Bind {
        address: SocketAddr,
        source: std::io::Error,
    },
    /// The log store cannot be used, or has no tables.
    #[error("cluster.log: {0}")]
    LogStore(log_store::StoreError),
    /// The URL of the object store of a cluster is invalid.
    #[error("cluster.objects: {0}")]
    Objects(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The address for other nodes cannot be bound.
    #[error("cannot listen on {address} (cluster.listen): {source}")]
    BindInside {
        address: SocketAddr,
        source: std::io::Error,
    },
    /// The object store's URL is invalid, or its thread does not start.
    #[error("storage.remote: {0}")]
    Remote(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A node of a cluster has lost its data directory while it ran.
    #[error("the data directory was removed or replaced; the next start fetches what it needs")]
    DirectoryGone,
    /// The operating system cannot deliver signals.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    /// The rooms cannot be started.
    #[error("cannot start: {}", with_cause(.0))]
    Service(#[from] ServiceError),
}

fn with_cause(error: &ServiceError) -> String {
    let cause = error.cause();
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Serves until SIGTERM or SIGINT, then stops cleanly.
///
/// # Errors
/// As [`start`], or the last checkpoint failed.
pub async fn serve(config: Config, clock: Arc<dyn Clock>) -> Result<(), StartupError> {
    let signals = StopSignals::listen().map_err(StartupError::Signals)?;
    let reloads = signal(SignalKind::hangup()).map_err(StartupError::Signals)?;
    let mut received = pin!(signals.received());
    // A start may wait for the log store of a cluster for as long as that does not answer.
    let running = match select(&mut received, pin!(start(config, clock))).await {
        Either::Left((received, _)) => {
            tracing::info!(signal = received, "stopped before the start was complete");
            return Ok(());
        }
        Either::Right((started, _)) => started?,
    };
    reload_at_signals(reloads, running.tls.clone());
    let gone = Arc::clone(&running.directory_gone);
    match select(received, pin!(gone.notified())).await {
        Either::Left((received, _)) => {
            tracing::info!(signal = received, "stopping: finishing requests in flight");
            running.stop().await
        }
        Either::Right(_) => {
            running.stop().await?;
            Err(StartupError::DirectoryGone)
        }
    }
}

/// Locks the directory, binds, recovers, and only then serves. If recovery takes more than a moment, the server
/// meanwhile answers only that it is alive and not ready.
///
/// # Errors
/// The directory is in use, the log is damaged, or the address is in use.
pub async fn start(config: Config, clock: Arc<dyn Clock>) -> Result<Running, StartupError> {
    let config = Arc::new(config);
    let tls = config.server.tls().map(|files| Tls::read(&files));
    let tls = tls.transpose()?;
    let access = NodeAccess::read(&config.cluster)?;
    open_files::raise_limit();
    open_files::check_limit().map_err(StartupError::FewFiles)?;
    let lock = DirectoryLock::take(&config.storage.data_dir)?;
    let bind_error = |source| StartupError::Bind {
        address: config.server.listen,
        source,
    };
    let listener = Listener::bind(config.server.listen, config.server.write_timeout).map_err(bind_error)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let checkpoints = if config.cluster.log.is_some() {
        CLUSTER_CHECKPOINTS
    } else {
        1
    };
    let opener = Arc::new(Opener::start(Arc::clone(&config), clock, checkpoints)?);
    let inside = bind_inside(&config)?;
    let place = inside.as_ref().map(|inside| (inside.address, access.clone()));
    let mut starting = pin!(start_node(Arc::clone(&opener), place));
    let started = match tokio::time::timeout(QUICK_RECOVERY, &mut starting).await {
        Ok(started) => started,
        Err(_) => {
            let recovering = http::start_recovering(&config.server, &listener, tls.as_ref());
            let recovering = recovering.map_err(bind_error)?;
            tracing::info!(
                data_dir = %config.storage.data_dir.display(),
                "recovering; /health answers on {scheme}://{}",
                listener.address
            );
            let started = starting.await;
            recovering.stop().await;
            started
        }
    };
    let (node, kind) = started?;
    let node = Data::new(node);
    let lock = Arc::new(lock);
    let directory_gone = Arc::new(Notify::new());
    let gone = Arc::clone(&directory_gone);
    watch_directory(&lock, node.clone(), gone).map_err(ServiceError::internal)?;
    let certificates = tls.iter().chain(access.tls()).cloned().collect();
    let http = http::Server::new(node.clone(), access);
    let server = http.start(&listener, tls.as_ref()).map_err(bind_error)?;
    let inside = inside.map(|listener| http.start_inside(&listener)).transpose();
    let inside = inside.map_err(ServiceError::internal)?;
    repeat(KEY_TOUCH_PERIOD, node.clone(), flush_uses);
    repeat(CALLS_PERIOD, node.clone(), save_calls);
    repeat(FRESHNESS_PERIOD, node.clone(), tell_freshness);
    tracing::info!(
        pid = std::process::id(),
        data_dir = %config.storage.data_dir.display(),
        "listening on {scheme}://{}",
        server.address
    );
    Ok(Running {
        server,
        inside,
        tls: certificates,
        node,
        kind,
        directory_gone,
        _opener: opener,
        _lock: lock,
    })
}

/// Binds the address for the other nodes of a cluster, if there is one.
fn bind_inside(config: &Config) -> Result<Option<Listener>, StartupError> {
    if config.cluster.log.is_none() {
        return Ok(None);
    }
    let address = config.cluster.listen;
    let bound = Listener::bind(address, config.server.write_timeout);
    bound
        .map(Some)
        .map_err(|source| StartupError::BindInside { address, source })
}

/// Starts what serves requests: recovers the one shard of a server on one machine, or joins the cluster. `place`: the address
/// of the listener for other nodes, and what connections with them need.
async fn start_node(
    opener: Arc<Opener>,
    place: Option<(SocketAddr, NodeAccess)>,
) -> Result<(Node, Kind), StartupError> {
    if let Some((inside, access)) = place {
        let configured = opener.config.cluster.address.clone();
        let address = configured.unwrap_or_else(|| inside.to_string());
        let (node, member) = cluster::join(&opener, address, access).await?;
        return Ok((node, Kind::Cluster(member)));
    }
    let (publishing, publish) = remote::start(&opener.config, &opener.clock)?.unzip();
    let (pools, clock) = (Arc::clone(&opener.pools), Arc::clone(&opener.clock));
    let rooms = checkpoint::start(&opener.config, pools, clock, publish).await?;
    let shard = opener.serve(rooms, None).await?;
    Ok((Node::of_one(shard), Kind::One(publishing)))
}

impl Running {
    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Stops accepting connections, finishes the requests in flight, and takes a checkpoint. A node of a cluster hands over
    /// its shards before, and passes requests on meanwhile.
    ///
    /// # Errors
    /// The last checkpoint failed. What was acknowledged is in the log nevertheless.
    pub async fn stop(self) -> Result<(), StartupError> {
        if let Kind::Cluster(member) = &self.kind {
            member.leave().await;
        }
        self.server.stop().await;
        if let Some(inside) = self.inside {
            inside.stop().await;
        }
        match self.kind {
            Kind::One(publishing) => {
                for shard in self.node.shards() {
                    close(&shard).await.map_err(StartupError::Close)?;
                }
                if let Some(publishing) = publishing {
                    remote::stop(publishing).await;
                }
            }
            // What could not be handed over is in the log store, and others should have it soon.
            Kind::Cluster(member) => member.end().await,
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Checks every second whether the locked directory is still the one at its path. If it were not, points would be
/// acknowledged that no restart finds, and a checkpoint would write into whatever replaced it. A node of a cluster has
/// only copies there, so it stops, and other nodes take its shards. Runs on a thread of its own, because a disk may be
/// slow to respond.
fn watch_directory(lock: &Arc<DirectoryLock>, node: Data<Node>, gone: Arc<Notify>) -> std::io::Result<()> {
    let lock = Arc::downgrade(lock);
    let watch = move || {
        loop {
            std::thread::sleep(DIRECTORY_CHECK_PERIOD);
            // The server has stopped.
            let Some(lock) = lock.upgrade() else { return };
            if !lock.is_in_place() {
                if node.cluster().is_some() {
                    tracing::error!(
                        data_dir = %node.config.storage.data_dir.display(),
                        "the data directory was removed or replaced: this node hands its shards over and stops"
                    );
                    gone.notify_one();
                    return;
                }
                tracing::error!(
                    data_dir = %node.config.storage.data_dir.display(),
                    "the data directory was removed or replaced: nothing is stored any more; put it back and restart"
                );
                node.shards().iter().for_each(|shard| shard.directory_is_gone());
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("directory".to_owned());
    thread.spawn(watch).map(drop)
}

/// Reads the certificates again at every SIGHUP, which then does not end the process.
fn reload_at_signals(mut signals: Signal, certificates: Vec<Tls>) {
    actix_web::rt::spawn(async move {
        loop {
            signals.recv().await;
            if certificates.is_empty() {
                tracing::info!("SIGHUP: nothing to reload without TLS");
            }
            for tls in &certificates {
                match tls.reload() {
                    Ok(()) => tracing::info!("SIGHUP: the certificate was reloaded"),
                    Err(error) => {
                        tracing::error!(%error, "SIGHUP: reloading failed; the old certificate stays in use");
                    }
                }
            }
        }
    });
}

/// Runs a task on each shard after every `period`.
fn repeat(period: Duration, node: Data<Node>, task: impl AsyncFn(&Service) + 'static) {
    actix_web::rt::spawn(async move {
        loop {
            actix_web::rt::time::sleep(period).await;
            for shard in node.shards() {
                task(&shard).await;
            }
        }
    });
}

/// Ends the work of a shard that gets no more requests, and takes a checkpoint.
async fn close(shard: &Service) -> Result<(), checkpoint::CheckpointError> {
    shard.deliveries.stop(DELIVERIES_STOP_WITHIN).await;
    flush_uses(shard).await;
    save_calls(shard).await;
    shard.checkpointer.close().await
}

/// Makes the last uses of keys and sessions durable.
async fn flush_uses(service: &Service) {
    if let Err(error) = service.flush_key_touches().await {
        tracing::warn!(%error, "uses of keys could not be stored yet");
    }
    if let Err(error) = service.flush_session_uses().await {
        tracing::warn!(%error, "uses of sessions could not be stored yet");
    }
}

async fn tell_freshness(service: &Service) {
    if let Err(error) = service.tell_freshness().await {
        tracing::warn!(%error, "the freshness of sources could not be recorded yet");
    }
}

async fn save_calls(service: &Service) {
    let saved = match service.save_calls().await {
        Ok(()) => service.save_key_calls().await,
        failed => failed,
    };
    if let Err(error) = saved {
        tracing::warn!(%error, "call counts could not be stored yet");
    }
}
