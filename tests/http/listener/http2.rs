//! HTTP/2 frames: clients that open requests and never finish them.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::operation::logged_server::LoggedServer;
use crate::support::process::{command, variable};
use crate::support::waiting::until;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const STREAMS: usize = 100_000;
/// Memory of the open requests of one connection, which all wait for their bodies.
const GROWTH_BYTES_MAX: u64 = 32 << 20;

/// Memory of so many open requests whose answers wait, and of their connections.
const WAITING_BYTES_MAX: u64 = 128 << 20;

struct TlsServer {
    _root: TempDir,
    server: LoggedServer,
    certificate: CertificateDer<'static>,
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// A client that can violate the HTTP/2 protocol.
struct RawClient(StreamOwned<ClientConnection, TcpStream>);

impl TlsServer {
    fn start() -> Self {
        let root = TempDir::new().unwrap();
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec![String::from("localhost")]).unwrap();
        fs::write(root.path().join("certificate.pem"), cert.pem()).unwrap();
        fs::write(root.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        let mut command = command(root.path());
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
            .env(variable("server.tls_certificate"), "certificate.pem")
            .env(variable("server.tls_key"), "key.pem");
        Self {
            server: LoggedServer::start(&mut command),
            _root: root,
            certificate: cert.der().clone(),
        }
    }

    fn connect(&self) -> RawClient {
        let mut raw = RawClient(self.connect_with(b"h2"));
        raw.0.write_all(PREFACE).unwrap();
        raw.0.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        raw
    }

    /// A connection with this protocol.
    fn connect_with(&self, protocol: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = TcpStream::connect(self.server.base.trim_start_matches("https://")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        StreamOwned::new(connection, socket)
    }

    fn resident_bytes(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let digits: String = line.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap() * 1_024
    }
}

impl Frame {
    /// Whether the head of an answer says 200. The status is the first field (RFC 9113, 8.3), and this one is a single byte
    /// (RFC 7541, A). The same byte may stand anywhere in a value, such as that of `X-Request-Id`.
    fn is_success(&self) -> bool {
        self.payload.first() == Some(&0x88)
    }
}

impl RawClient {
    fn read_frame(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload)?;
        Ok(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff,
            payload,
        })
    }

    /// Waits for the next frame of this type.
    #[track_caller]
    fn wait_for(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.read_frame().unwrap();
            if frame.kind == kind {
                return frame;
            }
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// `:method`, `:scheme`, `:path` and `:authority`, none of them indexed.
fn head(method: u8, path: &str) -> Vec<u8> {
    let mut head = vec![method, 0x87];
    for (name, value) in [(0x04, path), (0x01, "localhost")] {
        head.extend([name, value.len() as u8]);
        head.extend(value.as_bytes());
    }
    head
}

fn get(path: &str) -> Vec<u8> {
    head(0x82, path)
}

fn post(path: &str) -> Vec<u8> {
    head(0x83, path)
}

fn stream(nth: usize) -> u32 {
    2 * nth as u32 + 1
}

#[test]
fn requests_are_answered_over_http2() {
    let served = TlsServer::start();
    let mut client = served.connect();
    client
        .0
        .write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &get("/health")))
        .unwrap();
    let answer = client.wait_for(HEADERS);
    assert_eq!((answer.stream, answer.flags & END_HEADERS), (1, END_HEADERS));
    assert!(answer.is_success(), "200: {:?}", answer.payload);
    let body = client.wait_for(DATA);
    assert_eq!(String::from_utf8_lossy(&body.payload), "{\"status\":\"ok\"}");
    // A body in two frames.
    let log_in = b"{\"email\": \"somebody@example.com\", \"password\": \"wrong-password\"}";
    let (first, second) = log_in.split_at(20);
    for frame in [
        frame(HEADERS, END_HEADERS, 3, &post("/api/auth/login")),
        frame(DATA, 0, 3, first),
        frame(DATA, END_STREAM, 3, second),
    ] {
        client.0.write_all(&frame).unwrap();
    }
    let body = client.wait_for(DATA);
    let body = String::from_utf8_lossy(&body.payload).into_owned();
    assert_eq!(body.matches("\"Unauthorized\"").count(), 1, "{body}");
}

/// Regression: one connection opened 890,000 requests in eight seconds, which took 2.7 GiB.
#[test]
fn a_client_that_opens_too_many_requests_is_disconnected() {
    let served = TlsServer::start();
    let before = served.resident_bytes();
    for ends_them in [false, true] {
        let mut client = served.connect();
        let mut ended = None;
        for nth in 0..STREAMS {
            let mut frames = frame(HEADERS, END_HEADERS, stream(nth), &post("/api/auth/login"));
            if ends_them {
                // Opened and reset immediately, repeatedly.
                frames.extend(frame(RST_STREAM, 0, stream(nth), &8_u32.to_be_bytes()));
            }
            if client.0.write_all(&frames).is_err() {
                ended = Some(nth);
                break;
            }
        }
        // Frames sent before the end may be read, unless the reset discards them.
        let mut goaways = 0;
        while let Ok(frame) = client.read_frame() {
            goaways += usize::from(frame.kind == GOAWAY);
        }
        assert!(
            ended.is_some() || goaways > 0,
            "its connection ends (resets: {ends_them})"
        );
        let grown = served.resident_bytes().saturating_sub(before);
        assert!(
            grown < GROWTH_BYTES_MAX,
            "the server grew by {} MiB (resets: {ends_them})",
            grown >> 20
        );
    }
    let mut honest = served.connect();
    honest
        .0
        .write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &get("/health")))
        .unwrap();
    assert_eq!(honest.wait_for(HEADERS).stream, 1, "others are served");
}

#[test]
fn unfinished_requests_are_limited_to_a_hundred_per_connection() {
    const OPEN: usize = 100;
    let served = TlsServer::start();
    let mut client = served.connect();
    for nth in 0..=OPEN {
        let opened = frame(HEADERS, END_HEADERS, stream(nth), &post("/api/auth/login"));
        client.0.write_all(&opened).unwrap();
    }
    let refused = client.wait_for(RST_STREAM);
    assert_eq!(refused.stream, stream(OPEN), "the one that is too many");
    assert_eq!(refused.payload, 7_u32.to_be_bytes(), "REFUSED_STREAM");
    // Finishing a request makes room for another.
    client
        .0
        .write_all(&frame(DATA, END_STREAM, stream(0), b"{}"))
        .unwrap();
    let answer = client.wait_for(HEADERS);
    assert_eq!(answer.stream, stream(0));
    let next = frame(
        HEADERS,
        END_HEADERS | END_STREAM,
        stream(OPEN + 1),
        &get("/health"),
    );
    client.0.write_all(&next).unwrap();
    assert_eq!(client.wait_for(HEADERS).stream, stream(OPEN + 1));
}

/// Regression: a request gave its place back before its answer was taken, and each had its own copy of a public file: so
/// clients that open no window could have 51,200 answers wait.
#[test]
fn requests_keep_their_places_until_their_answers_are_taken() {
    const OPEN_MAX: usize = 4_096;
    const PER_CONNECTION: usize = 100;
    let served = TlsServer::start();
    let before = served.resident_bytes();
    let mut clients = Vec::new();
    let mut taken = 0;
    for _ in 0..=OPEN_MAX / PER_CONNECTION {
        let mut client = served.connect();
        // SETTINGS_INITIAL_WINDOW_SIZE: no byte of an answer may be sent.
        let mut frames = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        for nth in 0..PER_CONNECTION {
            frames.extend(frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                stream(nth),
                &get("/api/docs"),
            ));
        }
        client.0.write_all(&frames).unwrap();
        for _ in 0..PER_CONNECTION {
            taken += usize::from(client.wait_for(HEADERS).is_success());
        }
        clients.push(client);
    }
    assert_eq!(taken, OPEN_MAX);
    let grown = served.resident_bytes().saturating_sub(before);
    assert!(
        grown < WAITING_BYTES_MAX,
        "the server grew by {} MiB",
        grown >> 20
    );
    let mut other = served.connect_with(b"http/1.1");
    other
        .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut status = [0; 12];
    other.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200", "clients of HTTP/1.1 are served");
    // An answer that is given up makes room for another.
    let first = &mut clients[0];
    let given_up = frame(RST_STREAM, 0, stream(0), &8_u32.to_be_bytes());
    first.0.write_all(&given_up).unwrap();
    let mut next = PER_CONNECTION..;
    until("there is room for another one", || {
        let asked = stream(next.next()?);
        let request = frame(HEADERS, END_HEADERS | END_STREAM, asked, &get("/api/docs"));
        first.0.write_all(&request).unwrap();
        let answer = first.wait_for(HEADERS);
        assert_eq!(answer.stream, asked);
        if !answer.is_success() {
            // A connection has a hundred streams, and a refusal is not taken either.
            let taken = frame(RST_STREAM, 0, asked, &8_u32.to_be_bytes());
            first.0.write_all(&taken).unwrap();
        }
        answer.is_success().then_some(())
    });
}
