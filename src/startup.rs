//! Starts and stops the server: lock, bind, recover, serve, wait for a signal, stop.

mod lock;
mod logging;
mod opener;
mod remote;
mod signals;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use listener::{Listener, RunningServer};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::checkpoint::{self, Publish};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::ServiceError;
use crate::http::{self, Tls, TlsError};
use crate::open_files;
use crate::remote::Publishing;
use crate::service::{Node, Service};

pub use lock::{DirectoryLock, LOCK_NAME, LockError};
pub use logging::start_logging;
pub use signals::StopSignals;

use opener::Opener;

/// During a recovery that takes no longer than this, clients wait in the socket's backlog and none is refused.
const QUICK_RECOVERY: Duration = Duration::from_millis(500);

/// How often uses of keys are made durable: `lastUsedAt` is exact to the minute.
const KEY_TOUCH_PERIOD: Duration = Duration::from_secs(60);

/// How often call counts are made durable: a crash may lose the last ones.
const CALLS_PERIOD: Duration = Duration::from_secs(1);

/// How long a stop waits for delivery attempts in flight. Later ones are repeated after the next start.
const DELIVERIES_STOP_WITHIN: Duration = Duration::from_secs(5);

/// Within this time the server notices that its data directory was removed or replaced.
const DIRECTORY_CHECK_PERIOD: Duration = Duration::from_secs(1);

/// A running server.
pub struct Running {
    server: RunningServer,
    tls: Option<Tls>,
    node: Data<Node>,
    /// The threads that the shards run on.
    _opener: Arc<Opener>,
    /// `None` if checkpoints are kept nowhere else.
    publishing: Option<Publishing>,
    /// Held to the end: no other process may open the directory before the last byte is written.
    _lock: Arc<DirectoryLock>,
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
    /// The address cannot be bound.
    #[error("cannot listen on {address} (server.listen): {source}")]
    Bind {
        address: std::net::SocketAddr,
        source: std::io::Error,
    },
    /// The object store's URL is invalid, or its thread does not start.
    #[error("storage.remote: {0}")]
    Remote(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
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
    let running = start(config, clock).await?;
    reload_at_signals(reloads, running.tls.clone());
    let received = signals.received().await;
    tracing::info!(signal = received, "stopping: finishing requests in flight");
    running.stop().await
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
    open_files::raise_limit();
    let lock = DirectoryLock::take(&config.storage.data_dir)?;
    let (publishing, publish) = remote::start(&config, &clock)?.unzip();
    let bind_error = |source| StartupError::Bind {
        address: config.server.listen,
        source,
    };
    let listener = Listener::bind(config.server.listen, config.server.write_timeout).map_err(bind_error)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let opener = Arc::new(Opener::start(Arc::clone(&config), clock, 1)?);
    let mut starting = pin!(start_rooms(Arc::clone(&opener), publish));
    let shard = match tokio::time::timeout(QUICK_RECOVERY, &mut starting).await {
        Ok(shard) => shard,
        Err(_) => {
            let recovering = http::start_recovering(&config.server, &listener, tls.as_ref());
            let recovering = recovering.map_err(bind_error)?;
            tracing::info!(
                data_dir = %config.storage.data_dir.display(),
                "recovering; /health answers on {scheme}://{}",
                listener.address
            );
            let shard = starting.await;
            recovering.stop().await;
            shard
        }
    };
    let node = Data::new(Node::of_one(shard?));
    let lock = Arc::new(lock);
    watch_directory(&lock, node.clone()).map_err(ServiceError::internal)?;
    let server = http::Server::new(node.clone())
        .start(&listener, tls.as_ref())
        .map_err(bind_error)?;
    repeat(KEY_TOUCH_PERIOD, node.clone(), flush_key_touches);
    repeat(CALLS_PERIOD, node.clone(), save_calls);
    tracing::info!(
        pid = std::process::id(),
        data_dir = %config.storage.data_dir.display(),
        "listening on {scheme}://{}",
        server.address
    );
    Ok(Running {
        server,
        tls,
        node,
        _opener: opener,
        publishing,
        _lock: lock,
    })
}

/// Recovers, and starts the service behind the API.
async fn start_rooms(
    opener: Arc<Opener>,
    publish: Option<Box<dyn Publish>>,
) -> Result<Service, StartupError> {
    let rooms = checkpoint::start(
        &opener.config,
        Arc::clone(&opener.pools),
        Arc::clone(&opener.clock),
        publish,
    )
    .await?;
    Ok(opener.serve(rooms, None).await?)
}

impl Running {
    /// The address that the server listens on.
    pub fn address(&self) -> std::net::SocketAddr {
        self.server.address
    }

    /// Stops accepting connections, finishes the requests in flight, and takes a checkpoint.
    ///
    /// # Errors
    /// The last checkpoint failed. What was acknowledged is in the log nevertheless.
    pub async fn stop(self) -> Result<(), StartupError> {
        self.server.stop().await;
        for shard in self.node.shards() {
            close(&shard).await.map_err(StartupError::Close)?;
        }
        if let Some(publishing) = self.publishing {
            remote::stop(publishing).await;
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Checks every second whether the locked directory is still the one at its path. If it were not, points would be
/// acknowledged that no restart finds, and a checkpoint would write into whatever replaced it. Runs on a thread of its
/// own, because a disk may be slow to respond.
fn watch_directory(lock: &Arc<DirectoryLock>, node: Data<Node>) -> std::io::Result<()> {
    let lock = Arc::downgrade(lock);
    let watch = move || {
        loop {
            std::thread::sleep(DIRECTORY_CHECK_PERIOD);
            // The server has stopped.
            let Some(lock) = lock.upgrade() else { return };
            if !lock.is_in_place() {
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

/// Reads the certificate again at every SIGHUP, which then does not end the process.
fn reload_at_signals(mut signals: Signal, tls: Option<Tls>) {
    actix_web::rt::spawn(async move {
        loop {
            signals.recv().await;
            match tls.as_ref().map(Tls::reload) {
                None => tracing::info!("SIGHUP: nothing to reload without TLS"),
                Some(Ok(())) => tracing::info!("SIGHUP: the certificate was reloaded"),
                Some(Err(error)) => {
                    tracing::error!(%error, "SIGHUP: reloading failed; the old certificate stays in use")
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
    flush_key_touches(shard).await;
    save_calls(shard).await;
    shard.checkpointer.close().await
}

async fn flush_key_touches(service: &Service) {
    if let Err(error) = service.flush_key_touches().await {
        tracing::warn!(%error, "uses of keys could not be stored yet");
    }
}

async fn save_calls(service: &Service) {
    if let Err(error) = service.save_calls().await {
        tracing::warn!(%error, "call counts could not be stored yet");
    }
}
