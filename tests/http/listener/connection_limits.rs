//! More connections than the limits of connections or descriptors allow.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::raw_connection::{connect, read_answer};
use crate::operation::logged_server::LoggedServer;
use crate::scene;
use crate::support::client::Client;
use crate::support::given::{Account, point};
use crate::support::process::{command, run_to_end, variable};
use crate::support::time::now_ns;
use crate::support::waiting::until;

const REQUEST: &[u8] = b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n";
const DESCRIPTORS: usize = 128;

#[test]
fn a_connection_beyond_the_limit_waits_until_one_closes() {
    let server = scene::server_with("server.connections_max", "4");
    let mut connections: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    for connection in &mut connections {
        connection.write_all(REQUEST).unwrap();
        assert!(read_answer(connection).starts_with("HTTP/1.1 200"));
    }
    let mut waiting = connect(&server);
    waiting.write_all(REQUEST).unwrap();
    waiting
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let nothing = waiting.read(&mut [0; 1]).unwrap_err();
    assert!(
        matches!(nothing.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{nothing}"
    );
    waiting.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    drop(connections.pop());
    assert!(read_answer(&mut waiting).starts_with("HTTP/1.1 200"));
}

/// The same command with a limit of open files and connections.
fn with_descriptors(command: &Command, descriptors: usize) -> Command {
    let mut limited = Command::new("sh");
    let script = format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"");
    limited
        .args(["-c", &script])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    limited
}

/// Regression: a thread panicked.
#[test]
fn a_server_with_too_few_descriptors_says_how_many_it_needs() {
    for descriptors in [16, 32, 63] {
        let root = TempDir::new().unwrap();
        let mut served = command(root.path());
        served.args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
        let mut limited = with_descriptors(&served, descriptors);
        let (status, said) = run_to_end(&mut limited, Duration::from_secs(20));
        assert!(!status.success(), "{said}");
        let expected = format!("may open only {descriptors} files at a time and needs at least 64");
        assert!(said.contains(&expected), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// Regression: many connections took the descriptors that the log needs for its next file, which ended writing.
#[test]
fn connections_leave_descriptors_for_files() {
    let root = TempDir::new().unwrap();
    let mut limited = command(root.path());
    limited
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
        .env(variable("storage.checkpoint_bytes"), "65536")
        .env(variable("accounts.default_plan"), "Enterprise");
    let mut server = LoggedServer::start(&mut with_descriptors(&limited, DESCRIPTORS));
    assert!(
        server.log().contains("connections_max is lowered"),
        "{}",
        server.log()
    );
    let client = Client::new();
    client.point_at(&server.base);
    let bucket = Account::sign_up(&client).bucket("tides");
    let source = bucket.source("gauge", &["level"]);
    let address = server.base.trim_start_matches("http://");
    let crowd: Vec<TcpStream> = (0..2 * DESCRIPTORS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let filler = "x".repeat(1_000);
    for _ in 0..30 {
        let points: Vec<Value> = (0..40)
            .map(|number| {
                let mut point = point(&source, now_ns(), &json!({"level": number}));
                point["metadata"] = json!({"filler": filler});
                point
            })
            .collect();
        // Sent on a connection opened before the others.
        bucket.send(&points);
    }
    drop(crowd);
    until("later clients are served", || {
        let other = Client::new();
        other.point_at(&server.base);
        let ready = other.get("/ready").try_send().ok()?;
        (ready.status == 200).then_some(())
    });
    assert!(server.stop().success());
}
