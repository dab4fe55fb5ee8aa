//! Pipelined requests whose answers are not read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use super::raw_connection::{connect, read_to_end, write_what_fits};
use crate::scene;
use crate::security::process::resident_bytes;
use crate::support::waiting::until;

const CONNECTIONS: usize = 300;

/// A read buffer, an answer, and the overhead of the allocator. The earlier HTTP library took 17 to 26 MB.
const BYTES_PER_CONNECTION_MAX: u64 = 400 << 10;

/// The statuses of the answers, in order.
fn statuses_of(received: &str) -> Vec<&str> {
    let mut parts = received.split("HTTP/1.1 ");
    assert_eq!(parts.next(), Some(""), "the first answer begins at once");
    parts.map(|answer| &answer[..3]).collect()
}

/// Regressions: answers were queued without a bound: 300 connections took 8 GiB in six seconds. Each connection had its own
/// copy of the half megabyte of `/api/docs`.
#[test]
fn unread_answers_to_pipelined_requests_take_little_memory() {
    let server = scene::server();
    let before = resident_bytes(&server);
    for path in ["/health", "/api/buckets", "/no/such/route", "/api/docs"] {
        let requests = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").repeat(600);
        let mut connections: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect(&server)).collect();
        let mut last_progress = Instant::now();
        until("nothing more is taken", || {
            let fits = |connection| write_what_fits(connection, requests.as_bytes());
            if connections.iter_mut().map(fits).sum::<usize>() > 0 {
                last_progress = Instant::now();
            }
            let grown = resident_bytes(&server).saturating_sub(before);
            assert!(
                grown < CONNECTIONS as u64 * BYTES_PER_CONNECTION_MAX,
                "GET {path}: the server grew by {} MiB",
                grown >> 20
            );
            (last_progress.elapsed().as_millis() > 500).then_some(())
        });
        let health = server.client.get("/health").send();
        assert_eq!(health.status, 200, "others are served: {health}");
    }
}

#[test]
fn many_pipelined_requests_are_all_answered_in_order() {
    const REQUESTS: usize = 30_000;
    let server = scene::server();
    let before = resident_bytes(&server);
    let mut connection = connect(&server);
    let mut writer = connection.try_clone().unwrap();
    let sender = thread::spawn(move || {
        for nth in 0..REQUESTS {
            // Regression: answers to requests without a body were kept in memory without a bound.
            let (method, path) = if nth % 3 == 0 {
                ("GET", "/health")
            } else {
                ("HEAD", "/no/such/route")
            };
            let ending = if nth + 1 == REQUESTS {
                "Connection: close\r\n"
            } else {
                ""
            };
            let request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{ending}\r\n");
            writer.write_all(request.as_bytes()).unwrap();
        }
    });
    // The client reads nothing until the server stops reading.
    let mut idle_since = (Instant::now(), 0);
    until("the requests wait for their answers to be read", || {
        let grown = resident_bytes(&server).saturating_sub(before);
        if grown != idle_since.1 {
            idle_since = (Instant::now(), grown);
        }
        (idle_since.0.elapsed().as_millis() > 300).then_some(())
    });
    assert!(
        idle_since.1 < 16 << 20,
        "the server grew by {} KiB for one connection",
        idle_since.1 >> 10
    );
    let mut received = Vec::new();
    connection.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    let received = String::from_utf8_lossy(&received);
    let statuses = statuses_of(&received);
    assert_eq!(statuses.len(), REQUESTS);
    for (nth, status) in statuses.iter().enumerate() {
        let expected_status = if nth % 3 == 0 { "200" } else { "404" };
        assert_eq!(*status, expected_status, "the answer {nth}");
    }
}

/// What is discarded is exactly the rest of the body.
#[test]
fn a_request_behind_an_unread_body_is_answered() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let server = scene::server();
    let mut kept = 0;
    for _ in 0..100 {
        // If a part of a body were taken for a head, there would be more answers.
        let mut body = "GET /ready HTTP/1.1\r\nHost: test\r\n\r\n".repeat(6_000);
        body.truncate(random.usize(1..200_000));
        let unread = |framing: &str, body: &str| {
            format!("POST /no/such/route HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n{body}")
        };
        let sized = unread(&format!("Content-Length: {}", body.len()), &body);
        let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let requests = [
            sized.clone(),
            unread("Transfer-Encoding: chunked", &chunk),
            sized,
            String::from("GET /health HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"),
        ]
        .concat();
        let mut connection = connect(&server);
        let mut writer = connection.try_clone().unwrap();
        // The server ends the connection if a body has not arrived when its request is answered.
        let sender = thread::spawn(move || writer.write_all(requests.as_bytes()).is_ok());
        let received = read_to_end(&mut connection);
        sender.join().unwrap();
        let statuses = statuses_of(&received);
        match received.to_lowercase().matches("connection: close").count() {
            1 if statuses.len() < 4 => assert!(statuses.iter().all(|status| *status == "404"), "{received}"),
            _ => assert_eq!(statuses, ["404", "404", "404", "200"], "{} bytes", body.len()),
        }
        kept += usize::from(statuses.len() == 4);
    }
    assert!(kept > 0, "no connection was kept");
    println!("{kept} of 100 connections were kept");
}
