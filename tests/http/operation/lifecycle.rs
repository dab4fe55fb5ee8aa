//! Starting and stopping, and a second process on the same directory.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scene::{self, column};
use crate::support::given::point;
use crate::support::process::{command, run_to_end};
use crate::support::time::{SECOND, now_ns};

/// A server started by a command, killed when dropped.
pub struct StartedServer {
    child: Child,
}

impl StartedServer {
    /// Starts it; returns when it prints its address.
    #[track_caller]
    pub fn of(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (line_sender, lines) = channel();
        let outputs: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for output in outputs {
            let line_sender = line_sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    // The receiver is dropped once the server has started.
                    let _ = line_sender.send(line);
                }
            });
        }
        drop(line_sender);
        let mut started = Self { child };
        let mut log = String::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !log.contains("listening on http://") {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => log = format!("{log}{line}\n"),
                Err(_) => {
                    started.end();
                    panic!("{command:?} should have started; it said:\n{log}");
                }
            }
        }
        started
    }

    pub fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for StartedServer {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn serve_is_the_default_command() {
    let root = tempfile::TempDir::new().unwrap();
    for arguments in [&["serve"][..], &[]] {
        let mut command = command(root.path());
        StartedServer::of(command.args(arguments).args(["--listen", "127.0.0.1:0"])).end();
        assert!(
            root.path().join("data").is_dir(),
            "contract 9: storage.data_dir is `./data` by default"
        );
    }
}

#[test]
fn a_second_process_on_the_data_directory_refuses_and_names_the_first() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let point = json!({"dataSourceId": source, "values": {"level": 1}});
    bucket.single(&point).expect(201, "a point");
    let second = || {
        let mut command = command(&server.data_dir());
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(server.data_dir());
        run_to_end(&mut command, Duration::from_secs(20))
    };
    for _ in 0..2 {
        let (status, output) = second();
        let sentence = "contract 9: a second process on the same data directory refuses to start and names the process id";
        assert!(!status.success(), "{sentence}: {output}");
        let pid = server.pid().to_string();
        let named = output
            .split(|c: char| !c.is_ascii_digit())
            .any(|word| word == pid);
        assert!(named, "{sentence} {pid}: {output}");
    }
    bucket.single(&point).expect(201, "the first process goes on");
    assert_eq!(bucket.rows(&json!({})).len(), 2, "the first process goes on");
    server.kill();
    server.launch();
    assert_eq!(
        bucket.rows(&json!({})).len(),
        2,
        "the lock of a killed process does not prevent a start"
    );
}

#[test]
fn a_server_killed_during_start_up_starts_again() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns();
    bucket.send(
        &(0..900)
            .map(|nth| point(&source, start + nth, &json!({"level": nth})))
            .collect::<Vec<_>>(),
    );
    server.kill();
    for milliseconds in [0, 1, 2, 4, 8, 16, 32, 64, 128] {
        server.launch_and_kill(Duration::from_millis(milliseconds));
    }
    server.launch();
    let expected: Vec<Value> = (0..900).map(|nth| json!(nth)).collect();
    assert_eq!(
        column(&bucket.rows(&json!({})), "/values/level"),
        expected,
        "a recovery cut short loses nothing"
    );
}

#[test]
fn sigterm_ends_with_0_and_loses_nothing() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let start = now_ns();
    for round in 0..3 {
        let number = |nth: i64| round * 1000 + nth;
        let points: Vec<Value> = (0..700)
            .map(|nth| {
                point(
                    &source,
                    start + number(nth) * SECOND,
                    &json!({"level": number(nth)}),
                )
            })
            .collect();
        bucket.send(&points);
        let status = server.stop();
        assert_eq!(
            status.code(),
            Some(0),
            "contract 9: SIGTERM: exit 0, not {status}"
        );
        server.launch();
    }
    let expected: Vec<Value> = (0..3)
        .flat_map(|round| (0..700).map(move |nth| json!(round * 1000 + nth)))
        .collect();
    assert_eq!(
        column(&bucket.rows(&json!({})), "/values/level"),
        expected,
        "contract 9: SIGTERM loses nothing"
    );
    let empty = server.stop();
    assert_eq!(
        empty.code(),
        Some(0),
        "contract 9: SIGTERM of an idle server: exit 0, not {empty}"
    );
}

/// With continuous writers: acknowledged writes are durable, and requests in flight are answered.
#[test]
fn sigterm_under_load_finishes_requests_in_flight() {
    let (mut server, _, bucket) = scene::bucket();
    let source = bucket.source("gauge", &["level"]);
    let stopping = AtomicBool::new(false);
    let start = now_ns();
    let acknowledged: Vec<i64> = std::thread::scope(|scope| {
        let writer = |writer: i64| {
            let (bucket, source, stopping) = (&bucket, &source, &stopping);
            move || {
                let mut acknowledged = Vec::new();
                for nth in 0.. {
                    let number = writer * 1_000_000 + nth;
                    let mut body = point(source, start + number * SECOND, &json!({"level": number}));
                    body["bucketId"] = json!(bucket.id);
                    match bucket
                        .client
                        .post("/api/data")
                        .key(&bucket.admin)
                        .json(&body)
                        .try_send()
                    {
                        Ok(answer) if answer.status == 201 => acknowledged.push(number),
                        Ok(answer) => {
                            let draining = stopping.load(Ordering::SeqCst) && answer.status == 503;
                            assert!(
                                draining,
                                "a write beside SIGTERM is 201, 503 or not answered: {answer}"
                            );
                            break;
                        }
                        Err(error) => {
                            assert!(
                                stopping.load(Ordering::SeqCst),
                                "a connection broke before SIGTERM: {error}"
                            );
                            break;
                        }
                    }
                }
                acknowledged
            }
        };
        let threads: Vec<_> = (0..4).map(|nth| scope.spawn(writer(nth))).collect();
        let deadline = Instant::now() + Duration::from_secs(20);
        while bucket.rows(&json!({})).len() < 100 && Instant::now() < deadline {}
        stopping.store(true, Ordering::SeqCst);
        let status = server.stop();
        assert_eq!(
            status.code(),
            Some(0),
            "contract 9: SIGTERM under load: exit 0, not {status}"
        );
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    server.launch();
    let mut found: Vec<i64> = column(&bucket.rows(&json!({})), "/values/level")
        .iter()
        .filter_map(Value::as_i64)
        .collect();
    let stored = found.len();
    found.retain(|number| acknowledged.contains(number));
    found.sort_unstable();
    let mut expected = acknowledged.clone();
    expected.sort_unstable();
    assert_eq!(
        found, expected,
        "contract 9: SIGTERM loses nothing that was acknowledged"
    );
    // A write whose answer was lost may be stored: at most one for each writer.
    assert!(
        stored <= expected.len() + 4,
        "contract 4: nothing is stored that was not sent: {stored}"
    );
}
