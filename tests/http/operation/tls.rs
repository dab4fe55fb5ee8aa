//! TLS by configuration, with generated certificates.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustix::process::Signal;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::logged_server::LoggedServer;
use super::recovery::BlockedRecovery;
use crate::support::process::{command, run_to_end, variable};
use crate::support::waiting::until;

const WITHIN: Duration = Duration::from_secs(20);

/// Writes a new key and certificate; returns the certificate.
fn write_pair(directory: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec![String::from("localhost")]).unwrap();
    fs::write(directory.join("certificate.pem"), cert.pem()).unwrap();
    fs::write(directory.join("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

/// The command of a server with these files.
fn serve(directory: &Path) -> Command {
    let mut command = command(directory);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
        .env(variable("server.tls_certificate"), "certificate.pem")
        .env(variable("server.tls_key"), "key.pem");
    command
}

fn start(directory: &Path) -> LoggedServer {
    LoggedServer::start(&mut serve(directory))
}

/// Sends `GET /health` from a client that trusts only this certificate.
fn get_health(server: &LoggedServer, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(
        connection,
        TcpStream::connect(server.base.trim_start_matches("https://"))?,
    );
    stream.sock.set_read_timeout(Some(WITHIN))?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    // The connection may end without a TLS close; only the answer before it matters.
    match stream.read_to_string(&mut answer) {
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}

#[test]
fn health_answers_over_tls_during_recovery() {
    let directory = TempDir::new().unwrap();
    let certificate = write_pair(directory.path());
    assert!(start(directory.path()).stop().success());
    let held = BlockedRecovery::of(&directory.path().join("data"));
    let server = LoggedServer::recovering(&mut serve(directory.path()));
    let answer = get_health(&server, &certificate).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    held.finish();
    until("the server listens", || {
        server.log().contains("listening on").then_some(())
    });
    let answer = get_health(&server, &certificate).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn the_server_reloads_its_certificate_at_sighup() {
    let directory = TempDir::new().unwrap();
    let first = write_pair(directory.path());
    let server = start(directory.path());
    let answer = get_health(&server, &first).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let second = write_pair(directory.path());
    assert!(get_health(&server, &second).is_err(), "not before SIGHUP");
    server.signal(Signal::HUP);
    let answer = until("the second certificate is in use", || {
        get_health(&server, &second).ok()
    });
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(get_health(&server, &first).is_err(), "the first one is gone");
    // An invalid file keeps the current certificate in use.
    fs::write(directory.path().join("key.pem"), "no key").unwrap();
    server.signal(Signal::HUP);
    assert!(get_health(&server, &second).unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn unusable_files_are_named_with_their_config_keys() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    write_pair(root);
    fs::write(
        root.join("other.pem"),
        KeyPair::generate().unwrap().serialize_pem(),
    )
    .unwrap();
    fs::write(root.join("empty.pem"), "").unwrap();
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "missing.pem",
            "key.pem",
            &["server.tls_certificate", "missing.pem"],
        ),
        ("empty.pem", "key.pem", &["server.tls_certificate", "empty.pem"]),
        (
            "certificate.pem",
            "missing.pem",
            &["server.tls_key", "missing.pem"],
        ),
        (
            "certificate.pem",
            "certificate.pem",
            &["server.tls_key", "certificate.pem"],
        ),
        ("certificate.pem", "other.pem", &["server.tls_key", "other.pem"]),
        ("certificate.pem", "", &["server.tls_key", "both"]),
        ("", "key.pem", &["server.tls_certificate", "both"]),
    ];
    for (certificate, key, named) in cases {
        let mut command = command(root);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
            .env(variable("server.tls_certificate"), certificate)
            .env(variable("server.tls_key"), key);
        let (status, output) = run_to_end(&mut command, WITHIN);
        assert!(!status.success(), "{certificate} and {key} are no pair: {output}");
        for word in *named {
            assert!(output.contains(word), "contract 9: `{word}` is not in: {output}");
        }
    }
}
