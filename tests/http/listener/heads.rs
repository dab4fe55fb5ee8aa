//! Malformed request heads. Contract 1: errors of every status have the spec's body.

use std::io::Write;

use serde_json::Value;

use super::raw_connection::{connect, read_answer, read_to_end};
use crate::scene;

const VALID: &str = "GET /health HTTP/1.1\r\nHost: test\r\n\r\n";

/// Requests, and the status of the answer.
fn malformed() -> Vec<(&'static str, Vec<u8>, u16)> {
    let long = "x".repeat(20_000);
    let many: String = (0..150).map(|nth| format!("X-{nth}: 1\r\n")).collect();
    let of_text = |what, text: &str, status| (what, text.as_bytes().to_vec(), status);
    vec![
        of_text("no version", "GET /health\r\nHost: test\r\n\r\n", 400),
        of_text(
            "an unknown version",
            "GET /health HTTP/9.9\r\nHost: test\r\n\r\n",
            400,
        ),
        of_text(
            "HTTP/2 without TLS",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
            400,
        ),
        of_text(
            "a method with a control character",
            "G\x01T /health HTTP/1.1\r\n\r\n",
            400,
        ),
        of_text(
            "a target with a control character",
            "GET /he\x01alth HTTP/1.1\r\n\r\n",
            400,
        ),
        of_text("a word too many", "GET /health and more HTTP/1.1\r\n\r\n", 400),
        of_text(
            "a name with a space",
            "GET /health HTTP/1.1\r\nX Y: 1\r\n\r\n",
            400,
        ),
        of_text(
            "a line without a colon",
            "GET /health HTTP/1.1\r\nnonsense\r\n\r\n",
            400,
        ),
        of_text(
            "a value with a control character",
            "GET /health HTTP/1.1\r\nX-Y: \x01\r\n\r\n",
            400,
        ),
        of_text(
            "a folded line",
            "GET /health HTTP/1.1\r\nX-Y: 1\r\n 2\r\n\r\n",
            400,
        ),
        of_text(
            "two lengths",
            "POST /api/auth/login HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            400,
        ),
        of_text(
            "a length that is no number",
            "POST /api/auth/login HTTP/1.1\r\nContent-Length: two\r\n\r\n{}",
            400,
        ),
        of_text(
            "an encoding that has no end",
            "POST /api/auth/login HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n{}",
            400,
        ),
        of_text(
            "chunks in HTTP/1.0",
            "POST /api/auth/login HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        of_text(
            "a bad chunk",
            "POST /api/auth/login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
            400,
        ),
        (
            "TLS",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            400,
        ),
        of_text("a long line", &format!("GET /{long} HTTP/1.1\r\n\r\n"), 414),
        of_text(
            "a long header",
            &format!("GET / HTTP/1.1\r\nX-Y: {long}\r\n\r\n"),
            431,
        ),
        of_text("many headers", &format!("GET / HTTP/1.1\r\n{many}\r\n"), 431),
    ]
}

#[track_caller]
fn assert_refused(answer: &str, status: u16, what: &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let head = head.to_lowercase();
    assert!(
        head.starts_with(&format!("http/1.1 {status} ")),
        "{what}: {answer:?}"
    );
    for header in [
        "\r\nx-request-id: ",
        "\r\ncontent-type: application/json",
        "\r\nconnection: close",
    ] {
        assert!(head.contains(header), "{what}: no {header:?} in {answer:?}");
    }
    let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{what}: {answer:?}"));
    for member in ["error", "message"] {
        let text = body[member].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{what}: {answer:?}");
    }
}

#[test]
fn malformed_requests_are_refused_with_the_error_body() {
    let server = scene::server();
    for (what, bytes, status) in malformed() {
        let mut connection = connect(&server);
        connection.write_all(&bytes).unwrap();
        let answer = read_to_end(&mut connection);
        assert_refused(&answer, status, what);
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{what}: {answer:?}");
    }
}

#[test]
fn a_malformed_pipelined_request_is_refused_after_the_first_answer() {
    let server = scene::server();
    for (what, bytes, status) in malformed() {
        let mut connection = connect(&server);
        connection
            .write_all(&[VALID.as_bytes(), &bytes].concat())
            .unwrap();
        let answers = read_to_end(&mut connection);
        let (first, second) = answers.split_at(answers.rfind("HTTP/1.1").unwrap());
        assert!(first.starts_with("HTTP/1.1 200"), "{what}: {answers:?}");
        assert_refused(second, status, what);
    }
}

/// Regression: the answer was lost because closing a socket with unread bytes resets the connection.
#[test]
fn a_refusal_arrives_while_the_client_is_still_sending() {
    let server = scene::server();
    let mut connection = connect(&server);
    connection.write_all(b"nonsense\r\n\r\n").unwrap();
    let mut more = connection.try_clone().unwrap();
    let sender = std::thread::spawn(move || more.write_all(&vec![b'x'; 8 << 20]));
    let answer = read_to_end(&mut connection);
    assert_refused(&answer, 400, "a malformed request followed by many bytes");
    assert!(sender.join().unwrap().is_ok(), "all bytes were read");
}

#[test]
fn an_unread_body_ends_its_connection_only_when_it_is_long() {
    let server = scene::server();
    let mut connection = connect(&server);
    let request = |bytes: usize| {
        let body = "x".repeat(bytes);
        format!("POST /no/such/route HTTP/1.1\r\nHost: test\r\nContent-Length: {bytes}\r\n\r\n{body}")
    };
    for bytes in [0, 1, 10_000] {
        // Sent completely before the answer, so that no part of it is in transit.
        connection.write_all(request(bytes).as_bytes()).unwrap();
        let answer = read_answer(&mut connection);
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(!answer.contains("connection: close"), "{bytes}: {answer}");
    }
    connection.write_all(request(4 << 20).as_bytes()).unwrap();
    let answer = read_to_end(&mut connection);
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    let mut connection = connect(&server);
    let longest = format!(
        "POST /no/such/route HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\nx",
        u64::MAX - 2
    );
    connection.write_all(longest.as_bytes()).unwrap();
    let answer = read_to_end(&mut connection);
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
}

#[test]
fn only_endpoints_that_read_a_body_send_100_continue() {
    let server = scene::server();
    let request = |path: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    };
    let mut connection = connect(&server);
    connection
        .write_all(request("/api/auth/login").as_bytes())
        .unwrap();
    assert_eq!(read_answer(&mut connection), "HTTP/1.1 100 Continue\r\n\r\n");
    connection.write_all(b"{}").unwrap();
    let answer = read_answer(&mut connection);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    connection.write_all(request("/api/buckets").as_bytes()).unwrap();
    let answer = read_to_end(&mut connection);
    assert!(
        answer.starts_with("HTTP/1.1 401"),
        "without a credential: {answer}"
    );
}
