//! The load generator: keep-alive connections that send prepared requests, so that the client uses little of the cores
//! it shares with the server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use serde_json::Value;

use crate::Outcome;
use crate::answer::Head;
use crate::table::median;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Threads shared by all connections of a load. A single thread would block while one worker of the server is slow to
/// read.
const THREADS: usize = 4;

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    /// The head of the answer in progress.
    head: Option<Head>,
}

/// Encodes a request.
pub fn request(method: &str, path: &str, credential: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\n{credential}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

impl Connection {
    pub fn open(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Connection {
            stream,
            buffer: vec![0; 1 << 16],
            filled: 0,
            head: None,
        })
    }

    /// Sends a request that must succeed; returns the body.
    pub fn send_ok(&mut self, request: &[u8]) -> Outcome<&[u8]> {
        let (status, body) = self.send(request)?;
        succeeded(status, body)?;
        Ok(body)
    }

    /// Sends a request; returns status and body.
    pub fn send(&mut self, request: &[u8]) -> Outcome<(u16, &[u8])> {
        self.stream.write_all(request)?;
        while !self.receive()? {}
        self.take()
    }

    /// Reads available bytes; returns the answer once it is complete.
    fn advance(&mut self) -> Outcome<Option<(u16, &[u8])>> {
        if self.receive()? {
            self.take().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Reads once; returns whether the answer is complete.
    fn receive(&mut self) -> Outcome<bool> {
        let wanted = self.head.map_or(0, |head| head.length_min()).max(self.filled + 1);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted.max(2 * self.filled), 0);
        }
        match self.stream.read(&mut self.buffer[self.filled..])? {
            0 => return Err("the server hung up".into()),
            read => self.filled += read,
        }
        let received = &self.buffer[..self.filled];
        self.head = self.head.or_else(|| Head::read(received));
        Ok(self.head.is_some_and(|head| head.end(received).is_some()))
    }

    /// Takes the complete answer out of the buffer.
    fn take(&mut self) -> Outcome<(u16, &[u8])> {
        let head = self.head.take().ok_or("no answer was read")?;
        let body = head.join_chunks(&mut self.buffer[..self.filled]);
        self.filled = 0;
        Ok((head.status, &self.buffer[body]))
    }

    /// Sends a request that is answered with JSON, which must succeed.
    pub fn json(&mut self, method: &str, path: &str, credential: &str, body: &Value) -> Outcome<Value> {
        let request = request(method, path, credential, body.to_string().as_bytes());
        Ok(serde_json::from_slice(self.send_ok(&request)?)?)
    }
}

fn succeeded(status: u16, body: &[u8]) -> Outcome<()> {
    match status {
        200 | 201 | 204 => Ok(()),
        _ => Err(format!("the server answered {status}: {}", String::from_utf8_lossy(body)).into()),
    }
}

/// Sends each client's requests in sequence, all clients concurrently; all must succeed. Returns the time from the
/// first request to the last answer.
///
/// A client is a connection, not a thread: with a thread for each, the server would pay for waking it at every answer.
pub fn drive(address: SocketAddr, clients: &[Vec<Vec<u8>>]) -> Outcome<Duration> {
    let shares: Vec<&[Vec<Vec<u8>>]> = clients.chunks(clients.len().div_ceil(THREADS)).collect();
    let start = Barrier::new(shares.len() + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|clients| {
                let start = &start;
                scope.spawn(move || -> Outcome<()> {
                    let connections = clients
                        .iter()
                        .map(|_| Connection::open(address))
                        .collect::<Outcome<Vec<_>>>();
                    start.wait();
                    drive_share(connections?, clients)
                })
            })
            .collect();
        start.wait();
        let started = Instant::now();
        for thread in threads {
            thread.join().map_err(|_| "a client panicked")??;
        }
        Ok(started.elapsed())
    })
}

fn drive_share(mut connections: Vec<Connection>, clients: &[Vec<Vec<u8>>]) -> Outcome<()> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut pending: Vec<_> = clients.iter().map(|requests| requests.iter()).collect();
    let mut open = 0;
    for (index, connection) in connections.iter_mut().enumerate() {
        epoll::add(
            &poll,
            &connection.stream,
            epoll::EventData::new_u64(index as u64),
            epoll::EventFlags::IN,
        )?;
        if let Some(request) = pending[index].next() {
            connection.stream.write_all(request)?;
            open += 1;
        }
    }
    let mut events = Vec::with_capacity(clients.len());
    while open > 0 {
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let index = event.data.u64() as usize;
            let connection = &mut connections[index];
            let Some((status, body)) = connection.advance()? else {
                continue;
            };
            succeeded(status, body)?;
            match pending[index].next() {
                Some(request) => connection.stream.write_all(request)?,
                None => open -= 1,
            }
        }
    }
    Ok(())
}

/// Sends requests in alternation, for so many rounds. Returns for each the median of its times in milliseconds, and the
/// bytes of its last answer.
pub fn alternate<const N: usize>(
    address: SocketAddr,
    rounds: usize,
    requests: [&[u8]; N],
) -> Outcome<[(f64, usize); N]> {
    let mut connection = Connection::open(address)?;
    let mut measured = [const { (Vec::new(), 0) }; N];
    for _ in 0..rounds {
        for ((took, bytes), request) in measured.iter_mut().zip(requests) {
            let began = Instant::now();
            *bytes = connection.send_ok(request)?.len();
            took.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(measured.map(|(mut took, bytes)| (median(&mut took), bytes)))
}
