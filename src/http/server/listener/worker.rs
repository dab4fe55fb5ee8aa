//! A thread that serves connections. A connection stays on one worker.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
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
use super::counts::{Counted, Counts};
use super::exchange::Exchange;
use super::serving::{Acceptors, Room, Serving};

/// How often a stopping worker checks its remaining connections.
const STOP_TICK: Duration = Duration::from_millis(50);

/// An accepted socket and the resources that it holds while it is open.
pub(super) struct Accepted {
    pub socket: TcpStream,
    pub peer: SocketAddr,
    pub room: Room,
    pub held: Held,
}

/// What is released when the connection ends: its place among all connections, in the load of its worker, and below
/// the limit of connections.
type Held = (Counted, Counted, OwnedSemaphorePermit);

/// A command to a worker.
pub(super) enum Command {
    Serve(Accepted),
    /// Finish what is in flight, and notify the sender when that is done or out of time.
    Stop(oneshot::Sender<()>),
}

/// State that all workers share.
#[derive(Clone)]
pub(super) struct Shared {
    pub limits: Limits,
    pub tls: Option<Acceptors>,
    pub counts: Counts,
    /// Running HTTP/2 requests.
    pub streams: Arc<AtomicUsize>,
}

struct Connections {
    shared: Shared,
    ticks: Rc<Ticks>,
    open: RefCell<Slab<(Rc<Connection>, JoinHandle<()>)>>,
}

/// Makes the router and serves connections until it is asked to stop or all command senders are dropped.
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
                // The receiver may have given up waiting.
                let _ = done.send(());
                break;
            }
        }
    }
    watching.abort();
}

/// Checks the timeouts of the connections periodically.
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
                tracing::warn!(%error, "cannot serve a connection");
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

    /// Closes idle connections, lets requests in flight finish, and abandons those that make no progress.
    async fn stop(&self) {
        for (_, (connection, _)) in &*self.open.borrow() {
            connection.order(Order::Stop);
        }
        let deadline = Instant::now() + self.shared.limits.shutdown_timeout;
        loop {
            // Lets the tasks that got an order run first.
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
        let ended = self.connections.open.borrow_mut().try_remove(self.number);
        drop(ended);
    }
}
