//! Requests that take too long.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::scene;
use crate::support::given::Account;
use crate::support::process::Server;

/// `host:port`, for a connection without the client.
fn address_of(server: &Server) -> String {
    let base = server.client.base();
    base.trim_start_matches("http://").to_owned()
}

/// A client that sends half a body and waits: the request ends, not only the patience of the one who asked.
#[test]
fn a_request_that_takes_too_long_ends_with_503_and_retry_after() {
    let server = scene::server_with("server.request_timeout_seconds", "1");
    let account = Account::sign_up(&server.client);
    let address = address_of(&server);
    let mut connection = TcpStream::connect(&address).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let head = format!(
        "POST /api/buckets HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{\"name\":",
        account.admin
    );
    let asked = Instant::now();
    connection.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains('}') {
        match connection.read(&mut part) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&part[..count]),
            Err(error) => {
                panic!("contract 1: a request that takes too long ends with 503; nothing came: {error}")
            }
        }
    }
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    let sentence = "contract 1: a request that takes over the limit ends with 503 and Retry-After";
    assert!(answer.starts_with("http/1.1 503"), "{sentence}: {answer}");
    assert!(answer.contains("\nretry-after:"), "{sentence}: {answer}");
    assert!(
        answer.contains("\"service unavailable\""),
        "contract 1: errors always have the spec's body: {answer}"
    );
    assert!(
        asked.elapsed() >= Duration::from_secs(1),
        "{sentence}, not before: {:?}",
        asked.elapsed()
    );
}
