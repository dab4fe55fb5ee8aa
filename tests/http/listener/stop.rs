//! Stopping the server with open connections.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::raw_connection::{connect, read_answer, read_to_end};
use crate::scene;
use crate::support::process::Server;
use crate::support::waiting::until;

/// Far below `server.shutdown_timeout_seconds`, which is 30.
const SOON: Duration = Duration::from_secs(5);

const BODY: &[u8] = b"{\"email\": \"somebody@example.com\", \"password\": \"wrong-password\"}";

fn log_in_head() -> String {
    format!(
        "POST /api/auth/login HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n",
        BODY.len()
    )
}

fn terminate(server: &Server) {
    let pid = Pid::from_raw(server.pid().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// Regression: a half-sent body delayed the stop for the whole time limit of requests in flight.
#[test]
fn idle_clients_do_not_delay_a_stop() {
    let half_a_body = [log_in_head().as_bytes(), &BODY[..10]].concat();
    let cases: [(&str, &[u8]); 5] = [
        ("silence", b""),
        ("half a head", b"GET /health HTTP/1.1\r\nHost:"),
        ("half a body", &half_a_body),
        (
            "half a chunk",
            b"POST /api/auth/login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
        ),
        (
            "half a second head",
            b"GET /health HTTP/1.1\r\nHost: test\r\n\r\nGET /health HTTP",
        ),
    ];
    for (what, sent) in cases {
        let mut server = scene::server();
        let mut connections: Vec<TcpStream> = (0..3).map(|_| connect(&server)).collect();
        for connection in &mut connections {
            connection.write_all(sent).unwrap();
        }
        // Earlier connections have been accepted by then.
        assert_eq!(server.client.get("/health").send().status, 200);
        let started = Instant::now();
        let status = server.stop();
        assert_eq!(status.code(), Some(0), "{what}: {status}");
        assert!(started.elapsed() < SOON, "{what}: {:?}", started.elapsed());
    }
}

#[test]
fn a_stop_waits_for_a_body_that_keeps_arriving() {
    let mut server = scene::server();
    let mut connection = connect(&server);
    let head = log_in_head().replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    connection.write_all(head.as_bytes()).unwrap();
    // The handler is waiting for the body.
    assert_eq!(read_answer(&mut connection), "HTTP/1.1 100 Continue\r\n\r\n");
    terminate(&server);
    let began = Instant::now();
    for (nth, byte) in BODY.iter().enumerate() {
        let due = Duration::from_millis(40) * nth as u32;
        until("it is time for the next byte", || {
            (began.elapsed() >= due).then_some(())
        });
        connection.write_all(&[*byte]).unwrap();
    }
    let answer = read_to_end(&mut connection);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    drop(connection);
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_stop_ends_idle_connections_at_once() {
    let mut server = scene::server();
    let mut connection = connect(&server);
    connection
        .write_all(b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    assert!(read_answer(&mut connection).starts_with("HTTP/1.1 200"));
    let started = Instant::now();
    assert_eq!(server.stop().code(), Some(0));
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(read_to_end(&mut connection), "");
}
