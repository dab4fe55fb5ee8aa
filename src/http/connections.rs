//! The open connections: counted, and cut when they keep the server waiting.
//!
//! The HTTP library times the first head of a connection and an idle connection, but neither a later head that drips in
//! nor an answer that its client takes a byte at a time. Here each connection notes when its last request was answered;
//! one that has been without a request for longer than an honest client ever needs is shut down.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use actix_web::{HttpRequest, rt};
use parking_lot::Mutex;
use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use crate::config::ServerConfig;
use crate::metrics::Exposition;

/// How often they are looked at.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// Stands for "a request runs": its own deadline bounds that.
const BUSY: u64 = u64::MAX;

/// All open connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Connections(Arc<Inner>);

struct Inner {
    open: Mutex<Slab<Arc<Connection>>>,
    cut: AtomicU64,
    began: Instant,
    quiet_max: Duration,
}

struct Connection {
    /// Milliseconds from the beginning to the end of its last request, or [`BUSY`].
    quiet_since_ms: AtomicU64,
    /// A second handle of its socket: the first is the HTTP library's. `None` of a kind of stream that is not known.
    socket: Option<OwnedFd>,
}

/// Stands in a connection's data, for as long as it is open.
struct Open {
    connections: Connections,
    connection: Arc<Connection>,
    number: usize,
}

/// A request in flight, until it is dropped.
pub(super) struct InFlight {
    connections: Connections,
    connection: Arc<Connection>,
}

impl Connections {
    /// None yet. A connection may be without a request for as long as it may be idle, a head may come in and an answer
    /// may be taken, all three together.
    pub fn new(config: &ServerConfig) -> Self {
        Self(Arc::new(Inner {
            open: Mutex::default(),
            cut: AtomicU64::new(0),
            began: Instant::now(),
            quiet_max: config.keep_alive + config.head_timeout + config.write_timeout,
        }))
    }

    /// Cuts what waits too long, until nobody holds the connections any more.
    pub fn sweep(&self) {
        let inner = Arc::downgrade(&self.0);
        rt::spawn(async move {
            loop {
                rt::time::sleep(SWEEP_PERIOD).await;
                match inner.upgrade() {
                    Some(inner) => inner.cut_overdue(inner.now_ms()),
                    None => return,
                }
            }
        });
    }

    /// Takes in a new connection, whose data live as long as it does.
    pub fn connected(&self, stream: &dyn Any, data: &mut Extensions) {
        let connection = Arc::new(Connection {
            quiet_since_ms: AtomicU64::new(self.0.now_ms()),
            socket: socket_of(stream).and_then(|socket| socket.try_clone_to_owned().ok()),
        });
        let number = self.0.open.lock().insert(Arc::clone(&connection));
        data.insert(Open {
            connections: self.clone(),
            connection,
            number,
        });
    }

    /// Writes what was counted.
    pub fn write(&self, text: &mut Exposition) {
        text.gauge(
            "tidewatch_http_connections",
            "Open connections.",
            self.0.open.lock().len(),
        );
        text.counter(
            "tidewatch_http_connections_cut_total",
            "Connections that were cut for keeping the server waiting.",
            self.0.cut.load(Ordering::Relaxed),
        );
    }
}

impl Inner {
    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn cut_overdue(&self, now_ms: u64) {
        for (_, connection) in self.open.lock().iter() {
            let since_ms = connection.quiet_since_ms.load(Ordering::Relaxed);
            // Busy ones are in the future.
            if u128::from(now_ms.saturating_sub(since_ms)) <= self.quiet_max.as_millis() {
                continue;
            }
            if let Some(socket) = &connection.socket
                && shutdown(socket, Shutdown::Both).is_ok()
            {
                self.cut.fetch_add(1, Ordering::Relaxed);
                // Not again, should the library take its time to notice.
                connection.quiet_since_ms.store(BUSY, Ordering::Relaxed);
            }
        }
    }
}

/// Notes that a request begins on its connection; `None` outside of a connection.
pub(super) fn begin(request: &HttpRequest) -> Option<InFlight> {
    let open = request.conn_data::<Open>()?;
    open.connection.quiet_since_ms.store(BUSY, Ordering::Relaxed);
    Some(InFlight {
        connections: open.connections.clone(),
        connection: Arc::clone(&open.connection),
    })
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let now_ms = self.connections.0.now_ms();
        self.connection.quiet_since_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.0.open.lock().remove(self.number);
    }
}

fn socket_of(stream: &dyn Any) -> Option<BorrowedFd<'_>> {
    if let Some(plain) = stream.downcast_ref::<TcpStream>() {
        return Some(plain.as_fd());
    }
    let encrypted = stream.downcast_ref::<TlsStream<TcpStream>>()?;
    Some(encrypted.get_ref().0.as_fd())
}
