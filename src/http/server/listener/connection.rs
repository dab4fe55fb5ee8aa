//! What is known of one connection: what it is doing, since when, and what it is to do next.
//!
//! All of it belongs to the worker's thread. The HTTP library, the stream below it and the requests above it note what
//! happens; the worker looks at all of its connections now and then and gives orders.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use super::bounds::{Limits, STOP_BODY_PATIENCE};
use super::clock::Ticks;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A head is awaited for which the server has time only now: the first, or one that has begun to arrive.
    Head,
    /// The last answer is sent, and nothing has come since.
    Idle,
    /// A request runs, or its answer is being sent.
    Busy,
}

/// What a connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The server stops: finish what runs.
    Stop,
    /// The head takes too long.
    Late,
    /// It was idle for long enough.
    Close,
    /// The client keeps the server waiting.
    Cut,
}

/// One connection.
pub(super) struct Connection {
    ticks: Rc<Ticks>,
    /// Whether it has several requests at a time, as HTTP/2 has.
    is_multiplexed: Cell<bool>,
    phase: Cell<Phase>,
    /// When the phase began, or when the connection last got on.
    since: Cell<Duration>,
    /// Whether something of the head has arrived that is awaited.
    head_begun: Cell<bool>,
    /// Whether the last read found nothing.
    is_read_blocked: Cell<bool>,
    /// Requests whose handlers run.
    running: Cell<u32>,
    /// Those of them that wait for bytes of their bodies.
    starving: Cell<u32>,
    /// Answers that the HTTP library has not taken whole.
    unsent: Cell<u32>,
    /// The status with which the HTTP library refused a head by itself.
    refused: Cell<Option<u16>>,
    order: Cell<Option<Order>>,
    waker: Cell<Option<Waker>>,
}

/// A request whose handler runs, until it is dropped.
pub(super) struct Running(Rc<Connection>);

/// An answer that the HTTP library takes, until it is dropped.
pub(super) struct Sending(Rc<Connection>);

/// A request that waits for its body, until it is dropped.
pub(super) struct Starving(Rc<Connection>);

impl Connection {
    pub fn new(ticks: Rc<Ticks>) -> Rc<Self> {
        Rc::new(Self {
            is_multiplexed: Cell::new(false),
            phase: Cell::new(Phase::Head),
            since: Cell::new(ticks.now()),
            head_begun: Cell::new(false),
            is_read_blocked: Cell::new(false),
            running: Cell::new(0),
            starving: Cell::new(0),
            unsent: Cell::new(0),
            refused: Cell::new(None),
            order: Cell::new(None),
            waker: Cell::new(None),
            ticks,
        })
    }

    /// It speaks HTTP/2.
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

    /// It has done something.
    pub fn got_on(&self) {
        self.since.set(self.ticks.now());
    }

    /// A new phase, for which time runs anew.
    pub fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.got_on();
    }

    /// A read returned so many bytes; `None` when there was nothing.
    pub fn read(&self, bytes: Option<usize>) {
        self.is_read_blocked.set(bytes.is_none());
        if bytes.unwrap_or(0) > 0 && !self.is_multiplexed() && !self.is_busy() {
            self.head_begun.set(true);
            if self.phase.get() == Phase::Idle {
                self.enter(Phase::Head);
            }
        }
    }

    /// All that was to be written has been.
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

    /// A request begins.
    pub fn begin(self: &Rc<Self>) -> Running {
        self.running.update(|running| running + 1);
        self.head_begun.set(false);
        self.enter(Phase::Busy);
        Running(Rc::clone(self))
    }

    /// Its answer is ready.
    pub fn send(self: &Rc<Self>) -> Sending {
        self.unsent.update(|unsent| unsent + 1);
        Sending(Rc::clone(self))
    }

    /// A handler waits for bytes.
    pub fn starve(self: &Rc<Self>) -> Starving {
        self.starving.update(|starving| starving + 1);
        Starving(Rc::clone(self))
    }

    /// The HTTP library refuses a head by itself, with these bytes.
    pub fn refuse(&self, answer: &[u8]) {
        if self.refused.get().is_none() {
            // `HTTP/1.1 400 Bad Request`
            let digits = answer.get(9..12).and_then(|digits| str::from_utf8(digits).ok());
            self.refused.set(digits.and_then(|digits| digits.parse().ok()));
        }
    }

    /// The status with which it did.
    pub fn refused(&self) -> Option<u16> {
        self.refused.get()
    }

    /// What its times have come to.
    pub fn overdue(&self, limits: &Limits) -> Option<Order> {
        let waited = self.waited();
        match self.phase.get() {
            Phase::Head => (waited > limits.head_timeout).then_some(Order::Late),
            Phase::Idle => (waited > limits.keep_alive.unwrap_or_default()).then_some(Order::Close),
            // The deadline of the request bounds what a handler takes.
            Phase::Busy => (self.running.get() == 0 && waited > limits.quiet_max).then_some(Order::Cut),
        }
    }

    /// Whether, while the server stops, it waits for nothing but a body that does not come.
    pub fn is_starving(&self) -> bool {
        let running = self.running.get();
        running > 0
            && self.starving.get() == running
            && self.unsent.get() == 0
            && self.waited() > STOP_BODY_PATIENCE
    }

    /// For how long it has not got on; never more than the true time.
    fn waited(&self) -> Duration {
        self.ticks.elapsed_since(self.since.get())
    }

    /// Gives an order, and wakes whoever drives the connection.
    pub fn order(&self, order: Order) {
        self.order.set(Some(order));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// The order that was given, for whoever is woken by this waker when there is one.
    pub fn ordered(&self, waker: &Waker) -> Option<Order> {
        let order = self.order.take();
        if order.is_none() {
            let known = self.waker.take();
            let waker = known
                .filter(|known| known.will_wake(waker))
                .unwrap_or_else(|| waker.clone());
            self.waker.set(Some(waker));
        }
        order
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.update(|running| running - 1);
        self.0.got_on();
        if self.0.is_multiplexed() {
            self.0.rest();
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.unsent.update(|unsent| unsent - 1);
        self.0.got_on();
        // With HTTP/1 it rests when the library has written all it was given.
        if self.0.is_multiplexed() {
            self.0.rest();
        }
    }
}

impl Sending {
    /// There is room for more of the answer: the client has taken what was before it.
    pub fn got_on(&self) {
        self.0.got_on();
    }
}

impl Drop for Starving {
    fn drop(&mut self) {
        self.0.starving.update(|starving| starving - 1);
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
    fn the_first_head_has_its_time_and_no_byte_of_it_gives_it_more() {
        let (connection, overdue) = connection();
        assert_eq!(overdue(10), None);
        connection.read(Some(1));
        assert!(connection.head_begun());
        assert_eq!(overdue(1), Some(Order::Late));
    }

    #[test]
    fn a_later_head_has_its_time_from_its_first_byte() {
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
    fn an_answer_that_nobody_takes_is_cut_and_a_handler_is_not() {
        let (connection, overdue) = connection();
        let running = connection.begin();
        assert_eq!(overdue(1_000), None, "its deadline bounds it");
        let sending = connection.send();
        drop(running);
        assert_eq!(overdue(90), None);
        sending.got_on();
        assert_eq!(overdue(90), None);
        assert_eq!(overdue(20), Some(Order::Cut));
    }

    #[test]
    fn only_who_waits_for_nothing_but_a_body_starves() {
        let (connection, overdue) = connection();
        connection.multiplex();
        let (first, second) = (connection.begin(), connection.begin());
        let starving = connection.starve();
        assert_eq!(overdue(60), None);
        assert!(!connection.is_starving(), "the other one works");
        drop(second);
        assert!(!connection.is_starving(), "something has just happened");
        assert_eq!(overdue(60), None);
        assert!(connection.is_starving());
        drop(starving);
        assert!(!connection.is_starving());
        drop(first);
        assert_eq!(overdue(76), Some(Order::Close), "nothing runs on it any more");
    }

    #[test]
    fn an_order_is_given_once() {
        let (connection, _) = connection();
        let waker = Waker::noop();
        assert_eq!(connection.ordered(waker), None);
        connection.order(Order::Stop);
        assert_eq!(connection.ordered(waker), Some(Order::Stop));
        assert_eq!(connection.ordered(waker), None);
    }

    #[test]
    fn the_status_of_a_refusal_is_read_from_it() {
        let (connection, _) = connection();
        connection.refuse(b"HTTP/1.1 431 Request Header Fields Too Large\r\n");
        connection.refuse(b"content-length: 0\r\n");
        assert_eq!(connection.refused(), Some(431));
    }
}
