//! A thread that serves connections. A connection stays on one worker.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use actix_http::Request;
use actix_service::ServiceFactory;
use actix_service::boxed::BoxServiceFactory;
use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{AppConfig, Response};
use actix_web::rt::time::sleep;
use slab::Slab;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::Options;
use crate::clock::{TICK, Ticks};
use crate::connection::{Connection, Order};
use crate::counts::Counted;
use crate::exchange::Exchange;
use crate::router::{Router, WorkerRouter};
use crate::serving::{Acceptors, Serving};

/// How often a stopping worker checks its remaining connections.
const STOP_TICK: Duration = Duration::from_millis(50);

/// Makes the router of a worker.
pub(crate) type RouterFactory = BoxServiceFactory<AppConfig, Request, Response<BoxBody>, Error, ()>;

/// An accepted socket and the resources that it holds while it is open.
pub(crate) struct Accepted {
    pub socket: TcpStream,
    pub peer: SocketAddr,
    /// See [`Serving::is_roomy`].
    pub is_roomy: bool,
    pub held: Held,
}

/// What is released when the connection ends: its place among all connections, in the load of its worker, and below
/// the limit of connections.
type Held = (Counted, Counted, OwnedSemaphorePermit);

/// State that all workers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub options: Options,
    pub tls: Option<Acceptors>,
    /// Open HTTP/2 requests.
    pub streams: Arc<AtomicUsize>,
}

struct Connections {
    shared: Shared,
    ticks: Rc<Ticks>,
    open: RefCell<Slab<(Rc<Connection>, JoinHandle<()>)>>,
}

/// Serves connections until the acceptor's end of the channel is dropped; then finishes what is in flight, unless it
/// runs out of time.
pub(crate) async fn work(
    router: RouterFactory,
    handle: &WorkerRouter,
    shared: Shared,
    mut accepted: UnboundedReceiver<Accepted>,
) {
    let Ok(router) = router.new_service(AppConfig::default()).await.map(Rc::new) else {
        tracing::error!("BUG: the router cannot be made");
        return;
    };
    handle.set(&router);
    let connections = Rc::new(Connections {
        shared,
        ticks: Rc::new(Ticks::new()),
        open: RefCell::default(),
    });
    let watched = Rc::clone(&connections);
    let watching = actix_web::rt::spawn(async move {
        loop {
            sleep(TICK).await;
            watched.ticks.tick();
            watched.order_overdue();
        }
    });
    while let Some(accepted) = accepted.recv().await {
        connections.serve(accepted, &router);
    }
    connections.stop().await;
    watching.abort();
}

impl Connections {
    fn serve(self: &Rc<Self>, accepted: Accepted, router: &Rc<Router>) {
        let socket = match tokio::net::TcpStream::from_std(accepted.socket) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot serve a connection");
                return;
            }
        };
        let connection = Connection::new(Rc::clone(&self.ticks));
        let serving = Serving {
            exchange: Exchange {
                router: Rc::clone(router),
                connection: Rc::clone(&connection),
                peer: accepted.peer,
                streams: Arc::clone(&self.shared.streams),
                refuse: self.shared.options.refuse,
            },
            is_roomy: accepted.is_roomy,
            is_kept_alive: self.shared.options.limits.keep_alive.is_some(),
        };
        let mut open = self.open.borrow_mut();
        let entry = open.vacant_entry();
        let listed = Listed {
            connections: Rc::clone(self),
            number: entry.key(),
            _held: accepted.held,
        };
        let task = actix_web::rt::spawn(async move {
            let listed = listed;
            let tls = listed.connections.shared.tls.as_ref();
            serving.run(socket, tls).await;
        });
        entry.insert((connection, task));
    }

    /// Checks the timeouts of the connections.
    fn order_overdue(&self) {
        for (_, (connection, _)) in &*self.open.borrow() {
            if let Some(order) = connection.overdue(&self.shared.options.limits) {
                if order != Order::Close {
                    self.shared.options.counts.cut();
                }
                connection.order(order);
            }
        }
    }

    /// Closes idle connections, lets requests in flight finish, and abandons those that make no progress.
    async fn stop(&self) {
        for (_, (connection, _)) in &*self.open.borrow() {
            connection.order(Order::Stop);
        }
        let deadline = Instant::now() + self.shared.options.limits.shutdown_timeout;
        loop {
            // Lets the tasks that got an order run first.
            actix_web::rt::task::yield_now().await;
            if self.open.borrow().is_empty() {
                return;
            }
            self.ticks.tick();
            let is_late = Instant::now() >= deadline;
            for (_, (connection, task)) in &*self.open.borrow() {
                if is_late || connection.lacks_body() {
                    self.shared.options.counts.cut();
                    task.abort();
                }
            }
            if is_late {
                tracing::warn!(
                    connections = self.open.borrow().len(),
                    "requests in flight were cut: shutdown timeout exceeded (server.shutdown_timeout_seconds)"
                );
                return;
            }
            sleep(STOP_TICK).await;
        }
    }
}

/// A connection's entry in its worker's list, removed when dropped, however the task ends.
struct Listed {
    connections: Rc<Connections>,
    number: usize,
    _held: Held,
}

impl Drop for Listed {
    fn drop(&mut self) {
        // Named, so that it is dropped after the borrow of the list.
        let _ended = self.connections.open.borrow_mut().try_remove(self.number);
    }
}
