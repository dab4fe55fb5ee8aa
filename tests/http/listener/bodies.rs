//! Memory of unfinished request bodies.

use std::io::Write;
use std::net::TcpStream;

use super::raw_connection::{allowed, connect};
use crate::operation::metrics::Metrics;
use crate::security::process::resident_bytes;
use crate::support::process::{Server, Setup};
use crate::support::waiting::until;

const CONNECTIONS: usize = 2_000;
const STATED_BYTES: usize = 1_000_000;
const SENT_BYTES: usize = 300_000;
const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// A quarter of the memory for bodies; for each connection its buffers and the memory of its waiting handler.
const GROWTH_BYTES_MAX: u64 = MEMORY_BYTES_MAX / 4 + CONNECTIONS as u64 * (96 << 10);

/// Regression: eight thousand log-in bodies took 400 KB each, despite a budget of 256 MiB for all of them.
#[test]
fn unfinished_bodies_stay_within_the_memory_for_bodies() {
    let connections = allowed(CONNECTIONS);
    for kind in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
        let server = Server::start_with(
            Setup::unlimited().set("storage.memory_bytes_max", &MEMORY_BYTES_MAX.to_string()),
        );
        let before = resident_bytes(&server);
        let mut open: Vec<TcpStream> = Vec::new();
        for _ in 0..connections {
            let mut connection = connect(&server);
            let mut request =
                format!("POST /api/auth/login HTTP/1.1\r\nHost: test\r\n{kind}\r\n\r\n").into_bytes();
            if kind.contains("chunked") {
                request.extend_from_slice(format!("{STATED_BYTES:x}\r\n").as_bytes());
            }
            request.resize(request.len() + SENT_BYTES, b' ');
            // The server may refuse and disconnect before all of it is sent.
            let _ = connection.write_all(&request);
            open.push(connection);
            let grown = resident_bytes(&server).saturating_sub(before);
            assert!(
                grown < GROWTH_BYTES_MAX,
                "{kind}: the server grew by {} MiB for {} connections",
                grown >> 20,
                open.len()
            );
        }
        let health = server.client.get("/health").send();
        assert_eq!(health.status, 200, "others are served: {health}");
        drop(open);
        until("their memory is released", || {
            (Metrics::of(&server.client).value("tidewatch_body_bytes") == 0.0).then_some(())
        });
    }
}
