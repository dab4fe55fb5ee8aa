//! `tidewatch evaluate` as a process: the source of its key, and how it ends.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::process::{command, run_to_end, wait_for_exit};

const KEY: &str = "svc_i_a-key-that-nobody-else-may-see";
const NOTHING_DUE: &str = r#"{"count":0,"evaluations":[]}"#;
const WITHIN: Duration = Duration::from_secs(60);

/// A service that answers every request alike; returns its address, and the heads of its requests.
fn service(status: &'static str, body: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (head_sender, heads) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let length = body.len();
            // The test may have ended.
            let _ = write!(
                &stream,
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let _ = head_sender.send(head.join("\n"));
        }
    });
    (url, heads)
}

fn evaluate(url: &str, directory: &TempDir) -> Command {
    let mut command = command(directory.path());
    command.args(["evaluate", "--url", url]);
    command
}

#[test]
fn the_key_comes_from_a_flag_or_the_environment_and_is_not_shown() {
    let directory = TempDir::new().unwrap();
    let (url, heads) = service("200 OK", NOTHING_DUE);
    let (status, output) = run_to_end(&mut evaluate(&url, &directory), WITHIN);
    assert!(!status.success() && output.contains("TIDEWATCH_KEY"), "{output}");

    let mut by_environment = evaluate(&url, &directory);
    by_environment.arg("--once").env("TIDEWATCH_KEY", KEY);
    let mut by_flag = evaluate(&url, &directory);
    by_flag.args(["--once", "--key", KEY]);
    for mut command in [by_environment, by_flag] {
        let (status, output) = run_to_end(command.env("TIDEWATCH_LOG__FILTER", "trace"), WITHIN);
        assert!(status.success() && output.contains("stopped"), "{output}");
        assert!(!output.contains(KEY), "{output}");
        let head = heads.recv_timeout(WITHIN).unwrap();
        assert!(
            head.starts_with("GET /api/evaluations/due?limit=8&claim=120 "),
            "{head}"
        );
        assert!(head.contains(KEY), "{head}");
    }
}

#[test]
fn a_refused_key_stops_the_evaluator_with_a_message() {
    let directory = TempDir::new().unwrap();
    let (url, _heads) = service(
        "401 Unauthorized",
        r#"{"error":"Unauthorized","message":"unknown key"}"#,
    );
    let (status, output) = run_to_end(evaluate(&url, &directory).env("TIDEWATCH_KEY", KEY), WITHIN);
    assert!(!status.success(), "{output}");
    assert!(
        output.contains("401 Unauthorized: unknown key") && !output.contains(KEY),
        "{output}"
    );
}

#[test]
fn values_out_of_range_are_refused_before_any_request() {
    let directory = TempDir::new().unwrap();
    for [flag, value] in [
        ["--limit", "0"],
        ["--limit", "1001"],
        ["--claim", "4"],
        ["--claim", "3601"],
        ["--poll", "0"],
        ["--concurrency", "0"],
        ["--concurrency", "many"],
    ] {
        let mut command = evaluate("http://127.0.0.1:9", &directory);
        let (status, output) = run_to_end(command.args([flag, value]).env("TIDEWATCH_KEY", KEY), WITHIN);
        assert!(
            !status.success() && output.contains(flag),
            "{flag} {value}: {output}"
        );
    }
}

#[test]
fn sigterm_and_ctrl_c_stop_the_evaluator_cleanly() {
    let directory = TempDir::new().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let (url, heads) = service("200 OK", NOTHING_DUE);
        let mut child = evaluate(&url, &directory)
            .env("TIDEWATCH_KEY", KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        heads.recv_timeout(WITHIN).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = wait_for_exit(&mut child, WITHIN);
        // Ends the process if it is still running.
        let _ = child.kill();
        assert!(
            status.is_some_and(|status| status.success()),
            "{signal:?}: {status:?}"
        );
    }
}
