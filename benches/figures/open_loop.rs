//! Open-loop load: requests are due at a fixed rate, regardless of earlier answers. Closed-loop clients wait for their
//! answers and so never send more than the server accepts; an open loop does not wait, and can overload it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::Outcome;
use crate::answer::Head;
use crate::table::quantile;

/// Time limit for answers after the last request was due.
const TIME_LIMIT: Duration = Duration::from_secs(40);
/// Interval of polling for due requests.
const POLL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000,
};

#[derive(Clone, Copy)]
pub enum Pace {
    /// Each connection sends its next request after an answer.
    Loop,
    /// So many are due each second, regardless of earlier answers.
    PerSecond(f64),
}

/// Results of the requests.
#[derive(Default)]
pub struct Tally {
    /// Latencies, from when the request was due, of requests answered 200 or 201.
    pub accepted_ms: Vec<f64>,
    /// Answered 503.
    pub refused: u64,
    /// Answered otherwise, or the connection ended without an answer.
    pub failed: u64,
    /// Not sent because all connections were waiting for answers.
    pub unsent: u64,
    /// The greatest number of connections waiting for an answer at one time.
    pub waiting_max: usize,
}

struct OpenLoop<'a> {
    address: SocketAddr,
    requests: &'a [Vec<u8>],
    pace: Pace,
    began: Instant,
    /// Number of requests due so far.
    due_count: u32,
    poll: OwnedFd,
    connections: Vec<Option<Connection<'a>>>,
    /// Indexes of idle connections; the one used last is reused first.
    idle: Vec<usize>,
    /// Indexes without an open connection.
    ended: Vec<usize>,
    /// Number of connections waiting for an answer.
    waiting: usize,
    tally: Tally,
}

/// A connection and its request.
struct Connection<'a> {
    stream: TcpStream,
    /// Whether it has a request without an answer.
    waits: bool,
    due: Instant,
    unsent: &'a [u8],
    received: Vec<u8>,
}

/// Outcome of one step of a connection.
enum Progress {
    Waits,
    Answered { status: u16, closes: bool },
    Ended,
}

/// Sends the requests repeatedly over at most `connections` connections.
pub fn run_load(
    address: SocketAddr,
    requests: &[Vec<u8>],
    pace: Pace,
    span: Duration,
    connections_max: usize,
) -> Outcome<Tally> {
    let began = Instant::now();
    let mut open_loop = OpenLoop {
        address,
        requests,
        pace,
        began,
        due_count: 0,
        poll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        connections: (0..connections_max).map(|_| None).collect(),
        idle: Vec::new(),
        ended: (0..connections_max).rev().collect(),
        waiting: 0,
        tally: Tally::default(),
    };
    let end = began + span;
    let mut events = Vec::with_capacity(connections_max);
    loop {
        let now = Instant::now();
        if now < end {
            open_loop.send_due(now)?;
        } else if open_loop.waiting == 0 || now > end + TIME_LIMIT {
            break;
        }
        epoll::wait(&open_loop.poll, spare_capacity(&mut events), Some(&POLL_INTERVAL))?;
        for event in events.drain(..) {
            open_loop.advance(event.data.u64() as usize)?;
        }
    }
    open_loop.tally.failed += open_loop.waiting as u64;
    Ok(open_loop.tally)
}

impl<'a> OpenLoop<'a> {
    /// Sends the requests that are due by now.
    fn send_due(&mut self, now: Instant) -> Outcome<()> {
        loop {
            let due = match self.pace {
                Pace::Loop => now,
                Pace::PerSecond(rate) => {
                    self.began + Duration::from_secs_f64(f64::from(self.due_count) / rate)
                }
            };
            let is_full = self.idle.is_empty() && self.ended.is_empty();
            if due > now || (is_full && matches!(self.pace, Pace::Loop)) {
                return Ok(());
            }
            self.due_count += 1;
            if is_full {
                self.tally.unsent += 1;
            } else {
                let requests = self.requests;
                self.send(&requests[self.due_count as usize % requests.len()], due)?;
            }
        }
    }

    fn send(&mut self, request: &'a [u8], due: Instant) -> Outcome<()> {
        let number = match self.idle.pop() {
            Some(number) => number,
            None => self.open()?,
        };
        let caller = self.connections[number]
            .as_mut()
            .ok_or("an idle connection has ended")?;
        (caller.waits, caller.due, caller.unsent) = (true, due, request);
        self.waiting += 1;
        self.tally.waiting_max = self.tally.waiting_max.max(self.waiting);
        self.advance(number)
    }

    fn open(&mut self) -> Outcome<usize> {
        let number = self.ended.pop().ok_or("no connection is left")?;
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(
            &self.poll,
            &stream,
            epoll::EventData::new_u64(number as u64),
            flags,
        )?;
        self.connections[number] = Some(Connection {
            stream,
            waits: false,
            due: Instant::now(),
            unsent: &[],
            received: Vec::new(),
        });
        Ok(number)
    }

    fn advance(&mut self, number: usize) -> Outcome<()> {
        let Some(caller) = self.connections[number].as_mut() else {
            return Ok(());
        };
        let progress = caller.advance()?;
        let waited = caller.waits;
        let ends = match progress {
            Progress::Waits => return Ok(()),
            Progress::Answered { status, closes } => {
                match status {
                    200 | 201 => self
                        .tally
                        .accepted_ms
                        .push(caller.due.elapsed().as_secs_f64() * 1e3),
                    503 => self.tally.refused += 1,
                    _ => self.tally.failed += 1,
                }
                closes
            }
            Progress::Ended => {
                self.tally.failed += u64::from(waited);
                true
            }
        };
        self.waiting -= usize::from(waited);
        if ends {
            self.idle.retain(|idle| *idle != number);
            self.connections[number] = None;
            self.ended.push(number);
        } else {
            caller.waits = false;
            self.idle.push(number);
        }
        Ok(())
    }
}

impl Connection<'_> {
    /// Writes and reads without blocking.
    fn advance(&mut self) -> Outcome<Progress> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent) {
                Ok(written) => self.unsent = &self.unsent[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The answer may precede the end of the connection: a refused body need not be read.
                Err(_) => self.unsent = &[],
            }
        }
        let mut part = [0; 16_384];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return Ok(Progress::Ended),
                Ok(read) => self.received.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waits),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(Progress::Ended),
            }
            if let Some(head) = Head::read(&self.received)
                && head.end(&self.received).is_some()
            {
                self.received.clear();
                // After a request that was refused before all of it was read, the connection cannot be reused.
                let closes = head.closes || !self.unsent.is_empty();
                return Ok(Progress::Answered {
                    status: head.status,
                    closes,
                });
            }
        }
    }
}

impl Tally {
    /// The p99 of accepted requests in milliseconds from when they were due.
    pub fn p99_ms(&mut self) -> f64 {
        quantile(&mut self.accepted_ms, 0.99)
    }
}
