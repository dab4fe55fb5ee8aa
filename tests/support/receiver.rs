//! A receiver of webhooks: listens on a free local port, records requests, and answers by a script. The tests verify
//! the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time limit for an expected request, on two busy cores.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

/// A received request.
#[derive(Clone, Debug)]
pub struct Received {
    /// When it was read completely.
    pub at: Instant,
    pub method: String,
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("a delivery's body is JSON ({error}): {self:?}"))
    }
}

/// Answers a request, given the number of earlier requests on its path: returns the bytes of the response, or none to
/// close the connection without one. It may block, since each request has its own thread.
pub trait Script: Fn(&Received, usize) -> Vec<u8> + Send + Sync + 'static {}

impl<F: Fn(&Received, usize) -> Vec<u8> + Send + Sync + 'static> Script for F {}

/// The bytes of an answer without a body.
pub fn status(code: u16) -> Vec<u8> {
    answer(code, "", b"")
}

/// The bytes of an answer; each header line includes its line end.
pub fn answer(code: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {code} Answer\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<dyn Script>,
    received: Mutex<Vec<Received>>,
    changed: Condvar,
    closing: AtomicBool,
}

impl Shared {
    fn received(&self) -> MutexGuard<'_, Vec<Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver {
    pub fn answering(script: impl Script) -> Self {
        let listener =
            TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port to listen on: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("no address: {error}"));
        let shared = Arc::new(Shared {
            script: Box::new(script),
            received: Mutex::default(),
            changed: Condvar::new(),
            closing: AtomicBool::new(false),
        });
        let of_listener = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if of_listener.closing.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&of_listener);
                // A request whose sender disconnects before its end is ignored.
                thread::spawn(move || serve(connection, &shared).ok());
            }
        });
        Self { address, shared }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests received on this path so far, in order of arrival.
    pub fn received(&self, path: &str) -> Vec<Received> {
        let received = self.shared.received();
        received
            .iter()
            .filter(|request| request.path == path)
            .cloned()
            .collect()
    }

    /// Waits until this many requests have arrived on this path; returns all of them.
    #[track_caller]
    pub fn wait(&self, path: &str, count: usize) -> Vec<Received> {
        self.wait_for(&format!("{count} requests on {path}"), |received| {
            received.iter().filter(|request| request.path == path).count() >= count
        });
        self.received(path)
    }

    /// Waits until the received requests satisfy the condition.
    #[track_caller]
    pub fn wait_for(&self, what: &str, enough: impl Fn(&[Received]) -> bool) {
        let deadline = Instant::now() + ARRIVES_WITHIN;
        let mut received = self.shared.received();
        while !enough(&received) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let shown: Vec<String> = received
                    .iter()
                    .map(|request| {
                        format!(
                            "{} {}, {:?} ago",
                            request.method,
                            request.path,
                            request.at.elapsed()
                        )
                    })
                    .collect();
                panic!(
                    "within {ARRIVES_WITHIN:?} there should have come {what}; there came\n{}",
                    shown.join("\n")
                );
            }
            let waited = self.shared.changed.wait_timeout(received, left);
            received = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // Wakes the listener, so that its port is released.
        let _ = TcpStream::connect(self.address);
    }
}

/// Handles the only request of a connection.
fn serve(mut connection: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some(request) = read(&connection)? else {
        return Ok(());
    };
    let before = {
        let mut received = shared.received();
        let before = received.iter().filter(|known| known.path == request.path).count();
        received.push(request.clone());
        shared.changed.notify_all();
        before
    };
    connection.write_all(&(shared.script)(&request, before))
}

/// Reads a request; `None` if the connection ends before it is complete.
fn read(connection: &TcpStream) -> std::io::Result<Option<Received>> {
    let mut reader = BufReader::new(connection);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        Ok::<_, std::io::Error>(line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let mut headers = Vec::new();
    loop {
        let header = line()?;
        match header.split_once(':') {
            Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Received {
        at: Instant::now(),
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body,
    }))
}
