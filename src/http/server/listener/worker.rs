//! A thread that serves connections: all of one connection happens on one worker.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_http::Request;
use actix_service::{IntoServiceFactory, ServiceFactory};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Response, Service};
use actix_web::rt::time::sleep;
use slab::Slab;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::task::JoinHandle;

use super::bounds::Limits;
use super::clock::{TICK, Ticks};
use super::connection::{Connection, Order};
use super::counts::{Counts, Open};
use super::exchange::Exchange;
use super::serving::{Acceptors, Room, Serving};

/// How often a worker that stops looks at what is left.
const STOP_TICK: Duration = Duration::from_millis(50);

/// An accepted socket, and what is held for as long as it is open.
pub(super) struct Accepted {
    pub socket: TcpStream,
    pub peer: SocketAddr,
    pub room: Room,
    pub held: Held,
}

/// Given back when the connection ends.
pub(super) struct Held {
    _open: Open,
    _place: OwnedSemaphorePermit,
    _load: Load,
}

/// A connection's part of its worker's load.
struct Load(Arc<AtomicUsize>);

impl Held {
    /// Its count, its place among all connections, and its part of its worker's load.
    pub fn new(open: Open, place: OwnedSemaphorePermit, load: &Arc<AtomicUsize>) -> Self {
        load.fetch_add(1, Ordering::Relaxed);
        Self {
            _open: open,
            _place: place,
            _load: Load(Arc::clone(load)),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a worker is told.
pub(super) enum Command {
    Serve(Accepted),
    /// To finish what is in flight, and to say so when that is done or out of time.
    Stop(oneshot::Sender<()>),
}

/// What all workers have in common.
#[derive(Clone)]
pub(super) struct Shared {
    pub limits: Limits,
    pub tls: Option<Acceptors>,
    pub counts: Counts,
    /// Requests of HTTP/2 that run.
    pub streams: Arc<AtomicUsize>,
}

/// The connections of a worker.
struct Connections {
    shared: Shared,
    ticks: Rc<Ticks>,
    open: RefCell<Slab<(Rc<Connection>, JoinHandle<()>)>>,
}

/// Makes the router and serves what comes, until it is told to stop or nobody is left to tell it.
pub(super) async fn work<I, S, B>(router: I, shared: Shared, mut commands: UnboundedReceiver<Command>)
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig>,
    S::Service: Service<Request, Error: Into<Error>, Response: Into<Response<B>>> + 'static,
    B: MessageBody + 'static,
{
    let made = router.into_factory().new_service(AppConfig::default()).await;
    let Ok(app) = made.map(Rc::new) else {
        tracing::error!("BUG: the router cannot be made");
        return;
    };
    let connections = Rc::new(Connections {
        shared,
        ticks: Rc::new(Ticks::new()),
        open: RefCell::default(),
    });
    let watching = actix_web::rt::spawn(watch(Rc::clone(&connections)));
    while let Some(command) = commands.recv().await {
        match command {
            Command::Serve(accepted) => connections.serve(accepted, &app),
            Command::Stop(done) => {
                connections.stop().await;
                // Whoever asked may have lost patience.
                let _ = done.send(());
                break;
            }
        }
    }
    watching.abort();
}

/// Looks after the times of the connections.
async fn watch(connections: Rc<Connections>) {
    loop {
        sleep(TICK).await;
        connections.ticks.tick();
        connections.order_overdue();
    }
}

impl Connections {
    fn serve<S, B>(self: &Rc<Self>, accepted: Accepted, app: &Rc<S>)
    where
        S: Service<Request, Error: Into<Error>, Response: Into<Response<B>>> + 'static,
        B: MessageBody + 'static,
    {
        let Accepted {
            socket,
            peer,
            room,
            held,
        } = accepted;
        let socket = match tokio::net::TcpStream::from_std(socket) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be served");
                return;
            }
        };
        let connection = Connection::new(Rc::clone(&self.ticks));
        let serving = Serving {
            exchange: Exchange::new(
                Rc::clone(app),
                Rc::clone(&connection),
                peer,
                Arc::clone(&self.shared.streams),
            ),
            room,
            is_kept_alive: self.shared.limits.keep_alive.is_some(),
        };
        let mut open = self.open.borrow_mut();
        let entry = open.vacant_entry();
        let listed = Listed {
            connections: Rc::clone(self),
            number: entry.key(),
            _held: held,
        };
        let task = actix_web::rt::spawn(async move {
            let listed = listed;
            let tls = listed.connections.shared.tls.as_ref();
            serving.run(socket, tls).await;
        });
        entry.insert((connection, task));
    }

    fn order_overdue(&self) {
        for (_, (connection, _)) in &*self.open.borrow() {
            if let Some(order) = connection.overdue(&self.shared.limits) {
                if order != Order::Close {
                    self.shared.counts.cut();
                }
                connection.order(order);
            }
        }
    }

    /// Ends what is idle, lets finish what is in flight, and gives up what does not get on.
    async fn stop(&self) {
        for (_, (connection, _)) in &*self.open.borrow() {
            connection.order(Order::Stop);
        }
        let deadline = Instant::now() + self.shared.limits.shutdown_timeout;
        loop {
            // Those that were told have their turn first.
            actix_web::rt::task::yield_now().await;
            if self.open.borrow().is_empty() {
                return;
            }
            self.ticks.tick();
            let is_late = Instant::now() >= deadline;
            for (_, (connection, task)) in &*self.open.borrow() {
                if is_late || connection.is_starving() {
                    self.shared.counts.cut();
                    task.abort();
                }
            }
            if is_late {
                tracing::warn!(
                    connections = self.open.borrow().len(),
                    "requests in flight were cut: the time for them is over (server.shutdown_timeout_seconds)"
                );
                return;
            }
            sleep(STOP_TICK).await;
        }
    }
}

/// A connection's place among those of its worker, given back when its task ends, however it ends.
struct Listed {
    connections: Rc<Connections>,
    number: usize,
    _held: Held,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let ended = self.connections.open.borrow_mut().try_remove(self.number);
        drop(ended);
    }
}
