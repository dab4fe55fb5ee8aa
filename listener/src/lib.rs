//! Accepts sockets, passes requests to a router and sends its answers. hyper implements HTTP, actix-web routes; this crate
//! connects the two.
//!
//! Clients cannot exhaust its resources. A connection has one head at a time and a bounded buffer (`bounds`). A body is
//! read only as the handler asks for it (`request_body`), and the next request only after the previous answer is sent.
//! Everything that may keep the server waiting has a timeout (`connection`). The crate knows nothing of an API: the caller
//! writes the answers to requests that never reach the router ([`Refusal`]).
//!
//! `accepting` takes connections and a `worker` serves them. `serving` handles one connection from beginning to end,
//! `exchange` one request of it.

mod accepting;
mod answer;
mod bounds;
mod clock;
mod connection;
mod convert;
mod counts;
mod exchange;
mod names;
mod refusal;
mod request_body;
mod router;
mod serving;
mod stream;
mod wakes;
mod worker;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use actix::Arbiter;
use actix_http::Request;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, boxed};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Response, ServiceResponse};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{self, UnboundedSender};

use accepting::Worker;
use serving::Acceptors;
use worker::{Accepted, Shared};

pub use answer::{Download, Kept};
pub use bounds::{CONNECTIONS_MAX, Limits};
pub use counts::Counts;
pub use refusal::{Refusal, Refuse};
pub use router::WorkerRouter;

/// Length of the socket's queue of connections that are not accepted yet.
const BACKLOG: i32 = 1_024;

/// Threads for blocking work, all workers together.
const BLOCKING_THREADS_MAX: usize = 512;

/// A bound address. Connections wait in its queue until a server accepts them.
pub struct Listener {
    /// The address it listens on, with the real port when the configuration says 0.
    pub address: SocketAddr,
    socket: TcpListener,
}

/// How a server serves.
#[derive(Clone)]
pub struct Options {
    /// Limits of the whole server.
    pub limits: Limits,
    /// Speaks TLS with this certificate; its ALPN protocols are set by the listener.
    pub tls: Option<rustls::ServerConfig>,
    /// Counts connections.
    pub counts: Counts,
    /// Makes the answers to requests that never reach the router.
    pub refuse: Refuse,
}

/// A running server.
pub struct RunningServer {
    /// The address it listens on, with the real port when the configuration says 0.
    pub address: SocketAddr,
    accepting: Arbiter,
    /// Each with the end of its channel that keeps it running when the acceptor has ended by itself.
    workers: Vec<(Arbiter, UnboundedSender<Accepted>)>,
}

impl Listener {
    /// Binds an address. Connections inherit the socket's timeout for unacknowledged data: without it, a client that
    /// reads nothing could keep its answer in memory indefinitely.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr, write_timeout: Duration) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        #[cfg(target_os = "linux")]
        rustix::net::sockopt::set_tcp_user_timeout(
            &socket,
            u32::try_from(write_timeout.as_millis()).unwrap_or(u32::MAX),
        )?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
        })
    }

    /// Serves with routers made by `router`, one for each worker; it gets a handle with which its handlers can call it.
    ///
    /// # Errors
    /// A thread cannot be started, or the socket cannot be duplicated.
    pub fn serve<F, I, S, B>(&self, router: F, options: Options) -> io::Result<RunningServer>
    where
        F: Fn(WorkerRouter) -> I + Send + Clone + 'static,
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<
                Request,
                Config = AppConfig,
                Response = ServiceResponse<B>,
                Error = Error,
                InitError = (),
            > + 'static,
        B: MessageBody + 'static,
    {
        // A duplicate of the same socket: it stays open for the next server when this one closes its own.
        let socket = self.socket.try_clone()?;
        let counts = options.counts.clone();
        let shared = Shared {
            tls: options.tls.as_ref().map(Acceptors::new),
            streams: Arc::new(AtomicUsize::new(0)),
            options,
        };
        let limits = &shared.options.limits;
        let blocking_threads = (BLOCKING_THREADS_MAX / limits.workers).max(1);
        let mut workers = Vec::with_capacity(limits.workers);
        let mut handles = Vec::with_capacity(limits.workers);
        for _ in 0..limits.workers {
            let arbiter = thread(blocking_threads)?;
            let (connections, accepted) = mpsc::unbounded_channel();
            let (router, shared) = (router.clone(), shared.clone());
            arbiter.spawn(async move {
                let working = actix_web::rt::spawn(async move {
                    let in_box =
                        |response: ServiceResponse<B>| Response::from(response).map_into_boxed_body();
                    let handle = WorkerRouter::default();
                    let router = boxed::factory(router(handle.clone()).into_factory().map(in_box));
                    worker::work(router, &handle, shared, accepted).await;
                });
                // A worker that panicked has ended as well.
                let _ = working.await;
                Arbiter::current().stop();
            });
            workers.push((arbiter, connections.clone()));
            handles.push(Worker {
                connections,
                load: Arc::default(),
            });
        }
        let accepting = thread(1)?;
        let connections_max = limits.connections_max;
        accepting.spawn(async move { accepting::accept(socket, &handles, connections_max, &counts).await });
        Ok(RunningServer {
            address: self.address,
            accepting,
            workers,
        })
    }
}

fn thread(blocking_threads: usize) -> io::Result<Arbiter> {
    Arbiter::try_with_tokio_rt(move || {
        Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(blocking_threads)
            .build()
    })
}

impl RunningServer {
    /// Stops accepting. Returns when the requests in flight are answered or the shutdown timeout is over.
    pub async fn stop(self) {
        self.accepting.stop();
        joined(self.accepting).await;
        // Workers stop when nobody can hand them a connection.
        let workers: Vec<_> = self.workers.into_iter().map(|(arbiter, _)| arbiter).collect();
        for worker in workers {
            joined(worker).await;
        }
    }
}

/// Waits for the end of a thread that was asked to stop.
async fn joined(arbiter: Arbiter) {
    // A thread that panicked has ended as well.
    let _ = actix_web::rt::task::spawn_blocking(move || arbiter.join()).await;
}
