//! Requests and clients that exceed their time limits.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::operation::metrics::Metrics;
use crate::scene;
use crate::support::given::Account;
use crate::support::process::{Server, Setup};
use crate::support::waiting::{until, until_within};

/// `host:port`, for a raw connection.
fn address_of(server: &Server) -> String {
    let base = server.client.base();
    base.trim_start_matches("http://").to_owned()
}

/// A client sends half of a body and waits: the server ends the request.
#[test]
fn a_slow_request_is_503_with_retry_after() {
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
    let started = Instant::now();
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
        started.elapsed() >= Duration::from_secs(1),
        "{sentence}, not before: {:?}",
        started.elapsed()
    );
}

/// A client begins a head and waits.
#[test]
fn a_slow_head_ends_its_connection() {
    let server = scene::server_with("server.head_timeout_seconds", "1");
    let mut connection = TcpStream::connect(address_of(&server)).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    connection.write_all(b"GET /health HTTP/1.1\r\nHost:").unwrap();
    let mut answer = Vec::new();
    let ended = connection.read_to_end(&mut answer);
    let sentence = "contract 1: a client that sends its head too slowly is cut";
    assert!(ended.is_ok(), "{sentence}: {ended:?}");
    assert!(answer.starts_with(b"HTTP/1.1 408"), "{sentence}: {answer:?}");
}

/// Regression: the HTTP library limits only the time of a connection's first head, and clears its idle timer with the
/// first byte of the next one. A client that got one answer and then sent single bytes kept one of a limited number of
/// connections forever.
#[test]
fn a_slow_later_head_ends_its_connection() {
    let server = Server::start_with(
        Setup::default()
            .set("server.head_timeout_seconds", "1")
            .set("server.keep_alive_seconds", "1")
            .set("server.write_timeout_seconds", "1"),
    );
    let mut connection = TcpStream::connect(address_of(&server)).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    connection
        .write_all(b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    let mut part = [0; 4096];
    let answered = until("the first request is answered", || {
        connection.read(&mut part).ok()
    });
    assert!(part[..answered].starts_with(b"HTTP/1.1 200"));
    connection.write_all(b"GET /health HTTP/1.1\r\nX-Drip: ").unwrap();
    until("the connection is cut", || {
        // A read time-out means that the connection is still open.
        let open = |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        let cut = connection.write_all(b"x").is_err()
            || match connection.read(&mut part) {
                Ok(count) => count == 0,
                Err(error) => !open(&error),
            };
        cut.then_some(())
    });
    let cut = || Metrics::of(&server.client).value("tidewatch_http_connections_cut_total");
    assert!(cut() >= 1.0, "the metrics count it");
}

/// A client requests a large answer and reads nothing: the pending bytes take memory.
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    const REQUESTS: usize = 400;
    let server = scene::server_with("server.write_timeout_seconds", "2");
    let size = server.client.get("/api/docs").send().text().len();
    let connections = || Metrics::of(&server.client).value("tidewatch_http_connections");
    let others = connections();
    let mut connection = TcpStream::connect(address_of(&server)).unwrap();
    until("the connection is counted", || {
        (connections() > others).then_some(())
    });
    let requests = "GET /api/docs HTTP/1.1\r\nHost: test\r\n\r\n".repeat(REQUESTS);
    connection.write_all(requests.as_bytes()).unwrap();
    until_within(Duration::from_secs(30), "the connection is cut", || {
        (connections() <= others).then_some(())
    });
    // Bytes in the buffers of the operating system may still be read.
    let mut received = Vec::new();
    let ended = connection.read_to_end(&mut received);
    assert!(
        received.len() < REQUESTS * size,
        "all {REQUESTS} answers were sent to a client that did not read: {ended:?}"
    );
}

/// Regression: an answer was cut off a fixed time after its creation, even if its client was reading.
#[test]
fn a_slow_but_steady_reader_gets_the_whole_answer() {
    const ROWS: usize = 6_000;
    let server = Server::start_with(
        Setup::unlimited()
            .set("server.head_timeout_seconds", "1")
            .set("server.keep_alive_seconds", "1")
            .set("server.write_timeout_seconds", "3"),
    );
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let filler = "x".repeat(4_000);
    for batch in 0..ROWS / 1_000 {
        let points: Vec<Value> = (0..1_000)
            .map(|nth| {
                let metadata = json!({"nth": batch * 1_000 + nth, "filler": filler});
                json!({"dataSourceId": source, "values": {"level": nth}, "metadata": metadata})
            })
            .collect();
        bucket.send(&points);
    }
    let query = json!({"bucketId": bucket.id, "limit": 10_000, "downsampling": false}).to_string();
    let request = format!(
        "POST /api/data/query HTTP/1.1\r\nHost: test\r\nX-API-Key: {}\r\nContent-Length: {}\r\n\r\n{query}",
        account.admin,
        query.len()
    );
    let mut connection = TcpStream::connect(address_of(&server)).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    let (mut received, mut part, mut end) = (0, vec![0; 1 << 20], Vec::new());
    let began = Instant::now();
    while !end.ends_with(b"\r\n0\r\n\r\n") {
        let read = connection.read(&mut part).expect("the connection stays");
        assert!(read > 0, "cut after {received} bytes and {:?}", began.elapsed());
        received += read;
        end.extend_from_slice(&part[..read]);
        end.drain(..end.len().saturating_sub(400));
        // In steps, three times as long as the time limit of a client without progress.
        let pace = Duration::from_secs(15).mul_f64(received as f64 / (ROWS * filler.len()) as f64);
        until("it is time to read on", || {
            (began.elapsed() >= pace).then_some(())
        });
    }
    let end = String::from_utf8_lossy(&end);
    let counted = format!(r#""metadata":{{"count":{ROWS},"#);
    assert!(end.contains(&counted), "the end of the answer: {end}");
    assert!(
        began.elapsed() >= Duration::from_secs(14),
        "the reader must be slow"
    );
}
