//! The state of one connection: its phase, since when, and the order it was given.
//!
//! All of it belongs to the worker's thread. The HTTP library, the stream below it and the requests above it record
//! events; the worker checks all of its connections periodically and gives orders.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;

use crate::bounds::{Limits, STOP_BODY_PATIENCE};
use crate::clock::Ticks;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A head is awaited under the head timeout: the first one, or one that has begun to arrive.
    Head,
    /// The last answer is sent, and nothing has arrived since.
    Idle,
    /// A request runs, or its answer is being sent.
    Busy,
}

/// An order to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The server stops: finish the requests in flight.
    Stop,
    /// The head takes too long.
    Late,
    /// The connection was idle for too long.
    Close,
    /// The client keeps the server waiting: cut the connection.
    Cut,
}

pub(crate) struct Connection {
    ticks: Rc<Ticks>,
    /// Whether it has several requests at a time (HTTP/2).
    is_multiplexed: Cell<bool>,
    phase: Cell<Phase>,
    /// When the phase began or the connection last made progress.
    since: Cell<Duration>,
    /// Whether a part of the awaited head has arrived.
    head_begun: Cell<bool>,
    /// Whether the last read returned nothing.
    is_read_blocked: Cell<bool>,
    /// Requests whose handlers run.
    running: Cell<u32>,
    /// Running requests that wait for bytes of their bodies.
    waiting: Cell<u32>,
    /// Answers that the HTTP library has not taken completely.
    unsent: Cell<u32>,
    /// Those of them that are downloads.
    downloads: Cell<u32>,
    /// The status with which the HTTP library itself refused a head.
    refused: Cell<Option<u16>>,
    order: Cell<Option<Order>>,
    waker: AtomicWaker,
}

/// Counts a request or an answer in one of the connection's numbers, until dropped.
pub(crate) struct InFlight {
    connection: Rc<Connection>,
    number: fn(&Connection) -> &Cell<u32>,
}

impl Connection {
    pub fn new(ticks: Rc<Ticks>) -> Rc<Self> {
        Rc::new(Self {
            is_multiplexed: Cell::new(false),
            phase: Cell::new(Phase::Head),
            since: Cell::new(ticks.now()),
            head_begun: Cell::new(false),
            is_read_blocked: Cell::new(false),
            running: Cell::new(0),
            waiting: Cell::new(0),
            unsent: Cell::new(0),
            downloads: Cell::new(0),
            refused: Cell::new(None),
            order: Cell::new(None),
            waker: AtomicWaker::new(),
            ticks,
        })
    }

    /// Marks the connection as HTTP/2.
    pub fn multiplex(&self) {
        self.is_multiplexed.set(true);
    }

    pub fn is_multiplexed(&self) -> bool {
        self.is_multiplexed.get()
    }

    pub fn is_busy(&self) -> bool {
        self.phase.get() == Phase::Busy
    }

    pub fn head_begun(&self) -> bool {
        self.head_begun.get()
    }

    pub fn is_read_blocked(&self) -> bool {
        self.is_read_blocked.get()
    }

    /// Records progress.
    pub fn progressed(&self) {
        self.since.set(self.ticks.now());
    }

    /// Enters a phase and restarts its time.
    pub fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.progressed();
    }

    /// Records a read of so many bytes; `None` when there was nothing to read.
    pub fn read(&self, bytes: Option<usize>) {
        self.is_read_blocked.set(bytes.is_none());
        if bytes.unwrap_or(0) > 0 && !self.is_multiplexed() && !self.is_busy() {
            self.head_begun.set(true);
            if self.phase.get() == Phase::Idle {
                self.enter(Phase::Head);
            }
        }
    }

    /// Records that all pending output is written.
    pub fn flushed(&self) {
        if self.is_busy() {
            self.rest();
        }
    }

    fn rest(&self) {
        if self.running.get() == 0 && self.unsent.get() == 0 {
            self.enter(Phase::Idle);
        }
    }

    /// Records the start of a request.
    pub fn begin(self: &Rc<Self>) -> InFlight {
        self.head_begun.set(false);
        self.enter(Phase::Busy);
        self.count(|connection| &connection.running)
    }

    /// Records that a request's answer is ready.
    pub fn send(self: &Rc<Self>) -> InFlight {
        self.count(|connection| &connection.unsent)
    }

    /// Records that such an answer is a download.
    pub fn download(self: &Rc<Self>) -> InFlight {
        self.count(|connection| &connection.downloads)
    }

    /// Records that the next part of an answer is being made, so that it is not the client who keeps the server waiting.
    pub fn make(self: &Rc<Self>) -> InFlight {
        self.count(|connection| &connection.running)
    }

    /// Records that a handler waits for bytes of its body.
    pub fn wait_for_body(self: &Rc<Self>) -> InFlight {
        self.count(|connection| &connection.waiting)
    }

    fn count(self: &Rc<Self>, number: fn(&Self) -> &Cell<u32>) -> InFlight {
        number(self).update(|number| number + 1);
        InFlight {
            connection: Rc::clone(self),
            number,
        }
    }

    /// Records that the HTTP library itself refuses a head, with these bytes.
    pub fn refuse(&self, answer: &[u8]) {
        if self.refused.get().is_none() {
            // `HTTP/1.1 400 Bad Request`
            let digits = answer.get(9..12).and_then(|digits| str::from_utf8(digits).ok());
            self.refused.set(digits.and_then(|digits| digits.parse().ok()));
        }
    }

    /// Returns the status of that refusal.
    pub fn refused(&self) -> Option<u16> {
        self.refused.get()
    }

    /// Returns the order that is due because a timeout has passed.
    pub fn overdue(&self, limits: &Limits) -> Option<Order> {
        let waited = self.waited();
        match self.phase.get() {
            Phase::Head => (waited > limits.head_timeout).then_some(Order::Late),
            Phase::Idle => (waited > limits.keep_alive.unwrap_or_default()).then_some(Order::Close),
            // While a handler runs, the request's deadline limits its time.
            Phase::Busy => {
                let quiet_max = match self.downloads.get() {
                    0 => limits.quiet_max,
                    _ => limits.quiet_max.max(limits.download_quiet_max),
                };
                (self.running.get() == 0 && waited > quiet_max).then_some(Order::Cut)
            }
        }
    }

    /// While the server stops: whether the connection only waits for a body that does not arrive.
    pub fn lacks_body(&self) -> bool {
        let running = self.running.get();
        running > 0
            && self.waiting.get() == running
            && self.unsent.get() == 0
            && self.waited() > STOP_BODY_PATIENCE
    }

    /// Time without progress; never more than the true time.
    fn waited(&self) -> Duration {
        self.ticks.elapsed_since(self.since.get())
    }

    /// Gives an order and wakes the task of the connection.
    pub fn order(&self, order: Order) {
        self.order.set(Some(order));
        self.waker.wake();
    }

    /// Waits for an order.
    pub fn next_order(&self) -> impl Future<Output = Order> + Unpin {
        poll_fn(|context| self.ordered(context.waker()).map_or(Poll::Pending, Poll::Ready))
    }

    /// Takes the order that was given. If there is none, the waker is called when there is one.
    pub fn ordered(&self, waker: &Waker) -> Option<Order> {
        self.waker.register(waker);
        self.order.take()
    }
}

impl InFlight {
    /// The connection.
    pub fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    /// Records progress, such as that the client has taken a part of the answer.
    pub fn progressed(&self) {
        self.connection.progressed();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let connection = &self.connection;
        (self.number)(connection).update(|number| number - 1);
        connection.progressed();
        // With HTTP/1 the connection becomes idle only when the library has written all its output.
        if connection.is_multiplexed() {
            connection.rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> Limits {
        Limits {
            workers: 1,
            connections_max: 1,
            head_timeout: 10 * SECOND,
            keep_alive: Some(75 * SECOND),
            quiet_max: 100 * SECOND,
            download_quiet_max: 300 * SECOND,
            shutdown_timeout: 30 * SECOND,
        }
    }

    /// A connection, and what it is overdue for when a phase has taken so long.
    fn connection() -> (Rc<Connection>, impl Fn(u32) -> Option<Order>) {
        let ticks = Rc::new(Ticks::new());
        let connection = Connection::new(Rc::clone(&ticks));
        let asked = Rc::clone(&connection);
        let overdue = move |seconds| {
            ticks.set(ticks.now() + seconds * SECOND);
            asked.overdue(&limits())
        };
        (connection, overdue)
    }

    #[test]
    fn the_first_head_has_a_fixed_deadline() {
        let (connection, overdue) = connection();
        assert_eq!(overdue(10), None);
        connection.read(Some(1));
        assert!(connection.head_begun());
        assert_eq!(overdue(1), Some(Order::Late));
    }

    #[test]
    fn the_deadline_of_a_later_head_starts_at_its_first_byte() {
        let (connection, overdue) = connection();
        let running = connection.begin();
        let sending = connection.send();
        drop(running);
        connection.flushed();
        assert!(connection.is_busy(), "the library has not taken all of it");
        drop(sending);
        assert!(connection.is_busy(), "it has not written all of it");
        connection.flushed();
        assert!(!connection.is_busy() && !connection.head_begun());
        assert_eq!(overdue(75), None);
        assert_eq!(overdue(1), Some(Order::Close));
        connection.read(Some(1));
        assert_eq!(overdue(10), None);
        connection.read(Some(1));
        assert_eq!(overdue(1), Some(Order::Late));
    }

    #[test]
    fn an_unread_answer_is_cut_off_but_a_handler_is_not() {
        let (connection, overdue) = connection();
        let running = connection.begin();
        assert_eq!(overdue(1_000), None, "its deadline bounds it");
        let sending = connection.send();
        drop(running);
        assert_eq!(overdue(90), None);
        sending.progressed();
        assert_eq!(overdue(90), None);
        assert_eq!(overdue(20), Some(Order::Cut));
    }

    #[test]
    fn a_client_may_take_nothing_of_a_download_for_longer() {
        let (connection, overdue) = connection();
        drop(connection.begin());
        let sending = connection.send();
        let download = connection.download();
        assert_eq!(overdue(300), None);
        sending.progressed();
        assert_eq!(overdue(300), None, "it has taken something");
        let making = connection.make();
        assert_eq!(overdue(1_000), None, "the server keeps it waiting");
        drop(making);
        assert_eq!(overdue(300), None);
        assert_eq!(overdue(1), Some(Order::Cut));
        drop(download);
        assert_eq!(overdue(100), None);
        assert_eq!(overdue(1), Some(Order::Cut), "another answer has the usual time");
    }

    #[test]
    fn a_connection_lacks_a_body_only_while_waiting_for_nothing_else() {
        let (connection, overdue) = connection();
        connection.multiplex();
        let (first, second) = (connection.begin(), connection.begin());
        let waiting = connection.wait_for_body();
        assert_eq!(overdue(60), None);
        assert!(!connection.lacks_body(), "the other one works");
        drop(second);
        assert!(!connection.lacks_body(), "something has just happened");
        assert_eq!(overdue(60), None);
        assert!(connection.lacks_body());
        drop(waiting);
        assert!(!connection.lacks_body());
        drop(first);
        assert_eq!(overdue(76), Some(Order::Close), "nothing runs on it any more");
    }

    #[test]
    fn an_order_is_delivered_once() {
        let (connection, _) = connection();
        let waker = Waker::noop();
        assert_eq!(connection.ordered(waker), None);
        connection.order(Order::Stop);
        assert_eq!(connection.ordered(waker), Some(Order::Stop));
        assert_eq!(connection.ordered(waker), None);
    }

    #[test]
    fn the_status_of_a_refusal_is_parsed() {
        let (connection, _) = connection();
        connection.refuse(b"HTTP/1.1 431 Request Header Fields Too Large\r\n");
        connection.refuse(b"content-length: 0\r\n");
        assert_eq!(connection.refused(), Some(431));
    }
}
