//! Accepts connections and hands each to the worker with the fewest.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::rt::time::sleep;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use crate::bounds::ROOMY_CONNECTIONS_MAX;
use crate::counts::{Counted, Counts};
use crate::worker::Accepted;

/// How long accepting pauses when the operating system cannot open more connections.
const PAUSE: Duration = Duration::from_millis(500);

/// The acceptor's handle of a worker.
pub(crate) struct Worker {
    pub connections: UnboundedSender<Accepted>,
    /// The worker's open connections.
    pub load: Arc<AtomicUsize>,
}

/// Accepts connections. When the connection limit is reached, new connections wait in the socket's queue.
pub(crate) async fn accept(socket: TcpListener, workers: &[Worker], connections_max: usize, counts: &Counts) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "cannot accept connections");
            return;
        }
    };
    let places = Arc::new(Semaphore::new(connections_max));
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let (socket, peer) = match accept_one(&socket).await {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection, pausing");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Some(worker) = workers
            .iter()
            .min_by_key(|worker| worker.load.load(Ordering::Relaxed))
        else {
            return;
        };
        let (open, before) = counts.open();
        let (load, _) = Counted::new(&worker.load);
        let accepted = Accepted {
            socket,
            peer,
            is_roomy: before < ROOMY_CONNECTIONS_MAX,
            held: (open, load, place),
        };
        if worker.connections.send(accepted).is_err() {
            tracing::error!("a worker has ended: no longer accepting connections");
            return;
        }
    }
}

async fn accept_one(listener: &tokio::net::TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (socket, peer) = listener.accept().await?;
    // Without Nagle's algorithm: an answer's last piece must not wait until the client has acknowledged the one before
    // it.
    socket.set_nodelay(true)?;
    // Detached from this thread's event loop: the worker registers the socket with its own.
    Ok((socket.into_std()?, peer))
}

/// Whether the error concerns only the connection that was to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::InvalidInput
    )
}
