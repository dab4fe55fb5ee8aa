//! Large numbers of concurrent clients, with or without an intent to attack: slow clients, and many new connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::operation::metrics::Metrics;
use crate::scene;
use crate::support::given::{Account, Bucket};
use crate::support::process::{Server, Setup};
use crate::support::waiting::until;

fn connect(server: &Server) -> TcpStream {
    let base = server.client.base();
    let connection = TcpStream::connect(base.trim_start_matches("http://")).unwrap();
    connection
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    connection
}

/// The head of a batch with the length of its body.
fn batch_head(key: &str, body_bytes: usize) -> String {
    format!(
        "POST /api/data/batch HTTP/1.1\r\nHost: test\r\nX-API-Key: {key}\r\nContent-Length: {body_bytes}\r\n\r\n"
    )
}

/// A batch of about a hundred kilobytes.
fn batch(bucket: &Bucket, source: &str) -> String {
    let filler = "x".repeat(900);
    let points: Vec<Value> = (0..100)
        .map(|nth| json!({"dataSourceId": source, "values": {"level": nth}, "metadata": {"filler": filler}}))
        .collect();
    let body = json!({"bucketId": bucket.id, "dataPoints": points}).to_string();
    format!("{}{body}", batch_head(&bucket.admin, body.len()))
}

/// Sends a request and reads its answer; the connection stays open.
fn exchange(connection: &mut TcpStream, request: &str) -> String {
    connection.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut part) = (String::new(), [0; 4_096]);
    loop {
        let read = connection.read(&mut part).unwrap();
        assert!(read > 0, "the connection ended behind: {answer}");
        answer += std::str::from_utf8(&part[..read]).unwrap();
        if let Some((head, body)) = answer.split_once("\r\n\r\n")
            && let Some(length) = head
                .to_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
            && body.len() >= length.parse::<usize>().unwrap()
        {
            return answer;
        }
    }
}

/// Regression: a refusal closed its connection although the body had been read: under twice its capacity the server
/// accepted thousands of new connections a second from retrying clients.
#[test]
fn a_request_refused_by_overload_keeps_its_connection() {
    let server = scene::server_with("storage.memory_bytes_max", "16777216");
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let mut others: Vec<TcpStream> = (0..16).map(|_| connect(&server)).collect();
    for other in &mut others {
        let head = batch_head(&bucket.admin, 10_000_000);
        other.write_all(head.as_bytes()).unwrap();
        // A part of its body; the rest is not sent.
        other.write_all(&vec![b' '; 300_000]).unwrap();
    }
    let held = || Metrics::of(&server.client).value("tidewatch_body_bytes");
    until("the others' bodies have arrived", || {
        (held() > 2_000_000.0).then_some(())
    });
    let mut connection = connect(&server);
    let refused = exchange(&mut connection, &batch(&bucket, &source)).to_lowercase();
    let sentence = "contract 1: memory budget reached: 503 with Retry-After before doing the work";
    assert!(refused.starts_with("http/1.1 503"), "{sentence}: {refused}");
    assert!(refused.contains("\nretry-after:"), "{sentence}: {refused}");
    assert!(!refused.contains("connection: close"), "{refused}");
    drop(others);
    until("there is room again", || {
        exchange(&mut connection, &batch(&bucket, &source))
            .starts_with("HTTP/1.1 201")
            .then_some(())
    });
}

/// Three thousand clients that send nothing, or an occasional byte of a head or body. Other clients are served
/// meanwhile, and the slow ones are disconnected at their time limit.
#[test]
fn many_slow_clients_do_not_block_others() {
    const OF_EACH: usize = 1_000;
    let server = Server::start_with(
        Setup::unlimited()
            .set("server.head_timeout_seconds", "3")
            .set("server.request_timeout_seconds", "3"),
    );
    let account = Account::sign_up(&server.client);
    let bucket = account.bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let request = batch(&bucket, &source);
    let mut honest = connect(&server);
    let mut slow = Vec::new();
    for nth in 0..3 * OF_EACH {
        let mut connection = connect(&server);
        let sent = match nth % 3 {
            0 => Ok(()),
            1 => connection.write_all(b"GET /health HTTP/1.1\r\nX-Drip: "),
            _ => connection.write_all(batch_head(&bucket.admin, 100_000).as_bytes()),
        };
        sent.unwrap();
        connection.set_nonblocking(true).unwrap();
        slow.push(connection);
    }
    let open = || Metrics::of(&server.client).value("tidewatch_http_connections");
    let (mut served, mut dripped) = (0, Instant::now());
    until("the slow ones are gone", || {
        if dripped.elapsed() > Duration::from_millis(500) {
            dripped = Instant::now();
            // The metrics show whether it is still open.
            slow.iter_mut()
                .for_each(|connection| drop(connection.write(b" ")));
        }
        let answer = exchange(&mut honest, &request);
        // The server waits a moment for the announced body of a new connection.
        if answer.starts_with("HTTP/1.1 201") {
            served += 1;
        } else {
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
            assert_eq!(served, 0, "once there is room the crowd takes none: {answer}");
            // Under this load, a refused request must be retried on a new connection.
            honest = connect(&server);
        }
        (open() < 100.0).then_some(())
    });
    assert!(served > 0, "no batch was stored beside the crowd");
}
