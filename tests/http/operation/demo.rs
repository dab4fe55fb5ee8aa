//! `tidewatch demo` from a user's view: its output, its data, and that it leaves no files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::given::text;
use crate::support::process::{command, run_to_end, wait_for_exit};
use crate::support::time::{DAY, MINUTE, now_ns, timestamp};
use crate::support::waiting::until_within;

/// Allows for a debug build on two busy cores.
const WITHIN: Duration = Duration::from_secs(90);

/// A running demo, killed when dropped.
struct Demo {
    child: Child,
    lines: Vec<String>,
}

/// The demo as a command whose temporary files are created in `directory`.
fn demo(directory: &TempDir) -> Command {
    let mut command = command(directory.path());
    command.arg("demo").env("TMPDIR", directory.path());
    command.args(["--series", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")]);
    command
}

impl Demo {
    /// Starts the demo; returns when all of its output has been printed.
    #[track_caller]
    fn start(command: &mut Command) -> Self {
        command.args(["--listen", "127.0.0.1:0"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, (line_sender, lines)) = (child.stdout.take().unwrap(), channel());
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = line_sender.send(line);
            }
        });
        let mut demo = Self {
            child,
            lines: Vec::new(),
        };
        while !demo.lines.iter().any(|line| line.starts_with("Its data are in")) {
            match lines.recv_timeout(WITHIN) {
                Ok(line) => demo.lines.push(line),
                Err(error) => panic!("{error}; its output: {:?}", demo.lines),
            }
        }
        demo
    }

    /// The first word after `name`.
    #[track_caller]
    fn word_after(&self, name: &str) -> String {
        let mut lines = self.lines.iter().map(|line| line.split_whitespace());
        let found = lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()));
        let found = found.flatten();
        found
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.lines))
            .to_owned()
    }

    fn end(&mut self, signal: Signal) -> Option<ExitStatus> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        wait_for_exit(&mut self.child, WITHIN)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Visitor {
    client: Client,
    token: String,
    bucket: String,
}

impl Visitor {
    #[track_caller]
    fn of(demo: &Demo) -> Self {
        let client = Client::new();
        client.point_at(demo.word_after("address").trim_end_matches('/'));
        let login = json!({"email": demo.word_after("email"), "password": demo.word_after("password")});
        let login = client.post("/api/auth/login").json(&login).send();
        let token = text(&login.expect(200, "the log-in that was printed"), "/token");
        let mut visitor = Self {
            client,
            token,
            bucket: String::new(),
        };
        visitor.bucket = text(&visitor.get("/api/buckets"), "/buckets/0/_id");
        visitor
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let answer = self.client.get(path).bearer(&self.token).send();
        answer.expect(200, "what a visitor sees")
    }

    /// Number of points of each source, by name, between two moments; at most one page.
    #[track_caller]
    fn points(&self, from_ns: i64, to_ns: i64) -> Vec<(String, usize)> {
        let sources = self.get(&format!("/api/buckets/{}/sources", self.bucket));
        let count = |source: &Value| {
            let query = json!({
                "bucketId": self.bucket, "downsampling": false, "limit": 10_000,
                "filters": {
                    "dataSourceIds": [source["_id"]], "startTime": timestamp(from_ns), "endTime": timestamp(to_ns),
                },
            });
            let request = self.client.post("/api/data/query").bearer(&self.token);
            let rows = request.json(&query).send().expect(200, "a query");
            (text(source, "/name"), rows["data"].as_array().map_or(0, Vec::len))
        };
        sources["dataSources"]
            .as_array()
            .unwrap()
            .iter()
            .map(count)
            .collect()
    }

    /// The board that was printed shows something in each of its panels, to who has a link, too.
    #[track_caller]
    fn check_board(&self, demo: &Demo) {
        let boards = self.get("/api/boards");
        let id = text(&boards, "/boards/0/_id");
        assert!(
            demo.lines
                .iter()
                .any(|line| line.ends_with(&format!("/#/boards/{id}")))
        );
        let expires_at = timestamp(now_ns() + 60 * MINUTE);
        let request = self.client.post(&format!("/api/boards/{id}/share"));
        let shared = request
            .bearer(&self.token)
            .json(&json!({"expiresAt": expires_at}))
            .send();
        let token = text(&shared.expect(201, "a link"), "/share/token");
        let panels = boards["boards"][0]["panels"].as_array().unwrap();
        assert!(panels.len() > 5, "{boards}");
        for (index, panel) in panels.iter().enumerate() {
            let path = format!("/api/shared/{token}/panels/{index}");
            let shown = self.client.post(&path).send().expect(200, "a panel");
            let rows = shown.pointer("/columns/timestamp").or(shown.get("alertRules"));
            assert!(
                !rows.unwrap().as_array().unwrap().is_empty(),
                "{panel} shows {shown}"
            );
        }
    }

    /// The deliveries so far of the first webhook and of the second.
    fn deliveries(&self, status: &str) -> Option<Value> {
        let webhooks = self.get("/api/webhooks");
        let deliveries = webhooks["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|webhook| {
                let path = format!("/api/webhooks/{}/deliveries", text(webhook, "/_id"));
                self.get(&path)["deliveries"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default()
            });
        let mut alerts = deliveries.filter(|delivery| delivery["event"] == "alert.triggered");
        alerts.find(|delivery| delivery["status"] == status)
    }
}

#[test]
fn the_demo_is_live_at_once_and_leaves_no_files() {
    let directory = TempDir::new().unwrap();
    let mut demo = Demo::start(&mut demo(&directory));
    let visitor = Visitor::of(&demo);

    let recent = visitor.points(now_ns() - 30 * MINUTE, now_ns());
    assert_eq!(recent.len(), 7, "{recent:?}");
    assert!(
        recent.iter().all(|(_, points)| *points > 0),
        "every source has points up to now: {recent:?}"
    );
    let said_at_ns = now_ns();
    let live = |sources: &[(String, usize)]| {
        let pump = sources.iter().find(|(name, _)| name == "pump-101");
        pump.is_some_and(|(_, points)| *points >= 3).then_some(())
    };
    until_within(WITHIN, "a point a second", || {
        live(&visitor.points(said_at_ns, now_ns() + MINUTE))
    });

    visitor.check_board(&demo);
    let rules = visitor.get(&format!("/api/buckets/{}/alerts", visitor.bucket));
    let paused = rules["alertRules"].as_array().unwrap().iter();
    assert_eq!(
        paused.filter(|rule| rule["status"] == "paused").count(),
        1,
        "{rules}"
    );
    until_within(WITHIN, "a rule fires at its first evaluation", || {
        let rules = visitor.get(&format!("/api/buckets/{}/alerts", visitor.bucket));
        let rules = rules["alertRules"].as_array().cloned()?;
        rules.into_iter().find(|rule| rule["state"] == "firing")
    });
    for status in ["delivered", "failed"] {
        until_within(WITHIN, status, || visitor.deliveries(status));
    }

    let old = |sources: &[(String, usize)]| {
        let with_points = sources.iter().filter(|(_, points)| *points > 0);
        // The processor's series covers a week.
        (with_points.count() >= 6).then_some(())
    };
    until_within(WITHIN, "a month of history", || {
        old(&visitor.points(now_ns() - 30 * DAY, now_ns() - 28 * DAY))
    });

    let kept = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(kept, 1, "it has a directory while it runs");
    let status = demo.end(Signal::TERM);
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{status:?}");
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 0, "and it is gone");
}

#[test]
fn a_given_directory_is_kept_and_not_used_twice() {
    let directory = TempDir::new().unwrap();
    let data_dir = directory.path().join("shown");
    let with_directory = || {
        let mut command = demo(&directory);
        command.arg("--data-dir").arg(&data_dir);
        command
    };
    let mut running = Demo::start(&mut with_directory());
    let status = running.end(Signal::INT);
    assert_eq!(status.and_then(|status| status.code()), Some(0), "{status:?}");
    assert!(fs::read_dir(&data_dir).unwrap().count() > 0);

    let (status, output) = run_to_end(&mut with_directory(), WITHIN);
    assert!(!status.success() && output.contains("is not empty"), "{output}");
}

#[test]
fn a_port_in_use_is_reported_and_leaves_no_files() {
    let directory = TempDir::new().unwrap();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, output) = run_to_end(demo(&directory).args(["--listen", &address]), WITHIN);
    assert!(!status.success(), "{output}");
    assert!(
        output.contains(&address) && output.contains("--listen"),
        "{output}"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
