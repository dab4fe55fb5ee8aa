//! The load: kept-alive connections that send requests made beforehand, so that the client takes as little of the
//! shared cores as it can.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Outcome;

const TIMEOUT: Duration = Duration::from_secs(60);
const HEAD_END: &[u8] = b"\r\n\r\n";

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The bytes of a request.
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
        Ok(Connection { stream, buffer: vec![0; 1 << 16] })
    }

    /// Sends a request; answers the status and the body.
    pub fn send(&mut self, request: &[u8]) -> Outcome<(u16, &[u8])> {
        self.stream.write_all(request)?;
        let mut filled = 0;
        let (status, start, len) = loop {
            filled += self.read(filled)?;
            if let Some(end) = self.buffer[..filled].windows(HEAD_END.len()).position(|four| four == HEAD_END) {
                let (status, len) = read_head(&self.buffer[..end]).ok_or("an answer without a length")?;
                break (status, end + HEAD_END.len(), len);
            }
        };
        if self.buffer.len() < start + len {
            self.buffer.resize(start + len, 0);
        }
        while filled < start + len {
            filled += self.read(filled)?;
        }
        Ok((status, &self.buffer[start..start + len]))
    }

    /// The same for a request that must succeed.
    pub fn done(&mut self, request: &[u8]) -> Outcome<&[u8]> {
        let (status, body) = self.send(request)?;
        if status >= 300 || status == 207 {
            return Err(format!("the server answered {status}: {}", String::from_utf8_lossy(body)).into());
        }
        Ok(body)
    }

    /// The same for a request that is answered with JSON.
    pub fn json(&mut self, method: &str, path: &str, credential: &str, body: &Value) -> Outcome<Value> {
        let request = request(method, path, credential, body.to_string().as_bytes());
        Ok(serde_json::from_slice(self.done(&request)?)?)
    }

    fn read(&mut self, filled: usize) -> Outcome<usize> {
        match self.stream.read(&mut self.buffer[filled..])? {
            0 => Err("the server hung up".into()),
            read => Ok(read),
        }
    }
}

fn read_head(head: &[u8]) -> Option<(u16, usize)> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let len = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Some((status, len?))
}

/// Has each client send its requests one after the other, all clients at once; all must succeed. Answers the time
/// from the first request to the last answer.
pub fn drive(address: SocketAddr, clients: &[Vec<Vec<u8>>]) -> Outcome<Duration> {
    let start = Barrier::new(clients.len() + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter()
            .map(|requests| {
                let start = &start;
                scope.spawn(move || -> Outcome<()> {
                    let connection = Connection::open(address);
                    start.wait();
                    let mut connection = connection?;
                    requests.iter().try_for_each(|request| connection.done(request).map(drop))
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
