//! Raw connections that send and receive bytes without an HTTP client.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::support::process::Server;

const WITHIN: Duration = Duration::from_secs(30);

pub fn address_of(server: &Server) -> String {
    let base = server.client.base();
    base.trim_start_matches("http://").to_owned()
}

pub fn connect(server: &Server) -> TcpStream {
    let connection = TcpStream::connect(address_of(server)).unwrap();
    connection.set_read_timeout(Some(WITHIN)).unwrap();
    connection
}

/// The number of connections, limited by the descriptors of this process and of the server.
pub fn allowed(connections: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    // Other tests run concurrently.
    let half = limit
        .current
        .map_or(usize::MAX, |descriptors| descriptors as usize / 2);
    connections.min(half)
}

/// Reads until the connection ends.
#[track_caller]
pub fn read_to_end(connection: &mut TcpStream) -> String {
    let mut received = Vec::new();
    let ended = connection.read_to_end(&mut received);
    let received = String::from_utf8_lossy(&received).into_owned();
    assert!(ended.is_ok(), "{ended:?} behind {received:?}");
    received
}

/// Reads one answer of a connection that stays open.
#[track_caller]
pub fn read_answer(connection: &mut TcpStream) -> String {
    let (mut answer, mut part) = (String::new(), [0; 4_096]);
    loop {
        if let Some((head, body)) = answer.split_once("\r\n\r\n")
            && body.len() >= stated_length(head)
        {
            return answer;
        }
        let read = connection.read(&mut part).unwrap();
        assert!(read > 0, "the connection ended behind: {answer:?}");
        answer += std::str::from_utf8(&part[..read]).unwrap();
    }
}

fn stated_length(head: &str) -> usize {
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.map_or(0, |length| length.parse().unwrap())
}

/// Writes as much as possible without blocking; returns the number of bytes, 0 if the server has ended the connection.
pub fn write_what_fits(connection: &mut TcpStream, bytes: &[u8]) -> usize {
    connection.set_nonblocking(true).unwrap();
    let mut written = 0;
    while written < bytes.len() {
        match connection.write(&bytes[written..]) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => return 0,
        }
    }
    written
}
