//! The open connections: counted, and cut when they keep the server waiting.
//!
//! The HTTP library times the first head of a connection and an idle connection, but neither a later head that drips in
//! nor an answer that its client does not take. Here each connection notes when it last got on: when a request ended, and
//! whenever there was room for a further piece of an answer. One that has not got on for longer than an honest client ever
//! needs is shut down, and so is one with more untaken answers than an honest client ever has.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Extensions, ServiceResponse};
use actix_web::http::{ConnectionType, Method, StatusCode};
use actix_web::rt::net::TcpStream;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, rt};
use parking_lot::Mutex;
use rustix::net::{Shutdown, shutdown};
use slab::Slab;

use crate::config::ServerConfig;
use crate::metrics::Exposition;

/// How often they are looked at.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// Answers of one connection that may wait for their client to take them. Only HTTP/2 has more than one.
const UNTAKEN_MAX: u32 = 100;

/// Answers without a body on one connection; its client then makes a new one. The HTTP library holds them in memory,
/// however many a client asks for that reads nothing; those with a body wait until there is room.
const BODILESS_MAX: u32 = 10_000;

/// Open connections above which those that are refused for want of room are ended: the HTTP library keeps up to some
/// hundred kilobytes for each that has sent a large body.
const REFUSED_KEPT_MAX: usize = 512;

/// Answers are handed on in pieces of this size, so that it shows whether their client takes them.
const PIECE_BYTES: usize = 64 * 1_024;

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
    /// Those it is one of. Held once for a connection, not for each request: all workers count these references.
    all: Connections,
    /// Requests whose handler runs: their own deadline bounds that.
    running: AtomicU32,
    /// Answers that their client has not taken.
    untaken: AtomicU32,
    /// Answers without a body so far.
    bodiless: AtomicU32,
    /// When it last got on, in milliseconds from the beginning.
    got_on_ms: AtomicU64,
    /// Whether it may speak HTTP/2, which TLS agrees on.
    encrypted: bool,
    /// A second handle of its socket: the first is the HTTP library's. `None` of a kind of stream that is not known.
    socket: Option<OwnedFd>,
}

/// Stands in a connection's data, for as long as it is open.
struct Open {
    connection: Arc<Connection>,
    number: usize,
}

/// A request whose handler runs, until it is dropped.
pub(super) struct Running {
    connection: Arc<Connection>,
    /// Whether the body of its answer is not sent.
    is_head: bool,
}

/// An answer on its way to the client, in pieces.
struct Untaken {
    connection: Arc<Connection>,
    size: BodySize,
    body: BoxBody,
    /// What is left of a piece of the body that is larger than those handed on.
    rest: Bytes,
}

impl Connections {
    /// None yet. A connection may take as long to get on as it may be idle, a head may come in and an answer may be
    /// taken, all three together.
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
            all: self.clone(),
            running: AtomicU32::new(0),
            untaken: AtomicU32::new(0),
            bodiless: AtomicU32::new(0),
            got_on_ms: AtomicU64::new(self.0.now_ms()),
            encrypted: stream.downcast_ref::<TcpStream>().is_none(),
            socket: socket_of(stream).and_then(|socket| socket.try_clone_to_owned().ok()),
        });
        let number = self.0.open.lock().insert(Arc::clone(&connection));
        data.insert(Open { connection, number });
    }

    fn are_many(&self) -> bool {
        self.0.open.lock().len() > REFUSED_KEPT_MAX
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
            let waited_ms = now_ms.saturating_sub(connection.got_on_ms.load(Ordering::Relaxed));
            if connection.running.load(Ordering::Relaxed) == 0
                && u128::from(waited_ms) > self.quiet_max.as_millis()
            {
                connection.cut();
                // Not again at once, should the library take its time to notice.
                connection.got_on_ms.store(now_ms, Ordering::Relaxed);
            }
        }
    }
}

/// Notes that a request begins on its connection; `None` outside of a connection.
pub(super) fn begin(request: &HttpRequest) -> Option<Running> {
    let Open { connection, .. } = request.conn_data::<Open>()?;
    connection.running.fetch_add(1, Ordering::Relaxed);
    if connection.untaken.load(Ordering::Relaxed) >= UNTAKEN_MAX {
        connection.cut();
    }
    Some(Running {
        connection: Arc::clone(connection),
        is_head: request.method() == Method::HEAD,
    })
}

impl Running {
    /// Watches how the client takes the answer. Small ones of a connection that has one at a time are as good as taken.
    pub fn answered(&self, mut answer: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
        let connection = &self.connection;
        let size = answer.response().body().size();
        let is_bodiless = self.is_head || matches!(size, BodySize::None | BodySize::Sized(0));
        let is_last = is_bodiless && connection.bodiless.fetch_add(1, Ordering::Relaxed) + 1 >= BODILESS_MAX;
        if is_last || (answer.status() == StatusCode::SERVICE_UNAVAILABLE && connection.all.are_many()) {
            let head = answer.response_mut().head_mut();
            head.set_connection_type(ConnectionType::Close);
        }
        let is_small = match size {
            BodySize::None => true,
            BodySize::Sized(bytes) => bytes <= PIECE_BYTES as u64,
            BodySize::Stream => false,
        };
        if is_small && !connection.encrypted {
            return answer;
        }
        connection.untaken.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::clone(connection);
        answer.map_body(|_, body| {
            BoxBody::new(Untaken {
                connection,
                size,
                body,
                rest: Bytes::new(),
            })
        })
    }
}

impl Connection {
    fn got_on(&self) {
        self.got_on_ms.store(self.all.0.now_ms(), Ordering::Relaxed);
    }

    fn cut(&self) {
        if let Some(socket) = &self.socket
            && shutdown(socket, Shutdown::Both).is_ok()
        {
            self.all.0.cut.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.connection.got_on();
        self.connection.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MessageBody for Untaken {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        // Asked for when there is room: the client has taken what was before it.
        self.connection.got_on();
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => self.rest = piece,
                other => return other,
            }
        }
        let piece_bytes = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(self.rest.split_to(piece_bytes))))
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.connection.got_on();
        self.connection.untaken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.all.0.open.lock().remove(self.number);
    }
}

fn socket_of(stream: &dyn Any) -> Option<BorrowedFd<'_>> {
    if let Some(plain) = stream.downcast_ref::<TcpStream>() {
        return Some(plain.as_fd());
    }
    let encrypted = stream.downcast_ref::<TlsStream<TcpStream>>()?;
    Some(encrypted.get_ref().0.as_fd())
}
