//! Drives sessions as a script does: keys through a pipe, lines back.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::wait_for_exit;
use crate::turn::alone;
use crate::waiting::until_within;

use super::SESSION;

/// Time for each line, and for the end of a session.
const WITHIN: Duration = Duration::from_secs(120);

struct Driven {
    process: Child,
    keys: ChildStdin,
    lines: Receiver<String>,
    /// Where everything of the session is.
    dir: String,
}

/// A node is frozen, another one killed, and the session is quit; another session is killed. Neither leaves a process.
pub fn drive_sessions() {
    alone(|| {
        let mut session = Driven::start();
        let node = session.node_with_shards();
        session.press(&format!("{node}f"));
        session.wait_for(&format!("node {node} frozen"));
        // Clients leave a node that is not ready out, when those that wait for it have given up.
        let is_answered = |line: &str| line.contains(", 0 without an answer");
        session.wait_until("clients wait for the frozen node", |line| {
            line.contains("state:") && !is_answered(line)
        });
        session.wait_until("clients do without the frozen node", |line| {
            line.contains(", frozen") && is_answered(line)
        });
        session.press("f");
        session.wait_for(&format!("node {node} woken up"));
        let node = session.node_with_shards();
        session.press(&format!("{node}k"));
        session.wait_for(&format!("node {node} killed"));
        session.wait_for(&format!("shards of node {node} have new owners after"));
        session.wait_for("on them");
        session.press("q");
        session.wait_for(&format!("node {node} started again"));
        let verdict = session.wait_for("points compared");
        assert!(
            verdict.contains("0 lost, 0 doubled, 0 stale, 0 other"),
            "{verdict}"
        );
        let status = wait_for_exit(&mut session.process, WITHIN).expect("the session ends");
        assert!(status.success(), "a session without a fault succeeds: {status}");
        assert_eq!(
            session.processes(),
            [""; 0],
            "processes of a session that has ended"
        );
        assert!(
            !fs::exists(&session.dir).unwrap(),
            "{} is left of a session that has ended",
            session.dir
        );

        let mut session = Driven::start();
        session.wait_for("state:");
        assert!(
            session.processes().len() > crate::world::NODES,
            "the processes of a session are found"
        );
        session.process.kill().unwrap();
        session.process.wait().unwrap();
        until_within(WITHIN, "the processes of a killed session end", || {
            session.processes().is_empty().then_some(())
        });
        fs::remove_dir_all(&session.dir).unwrap();
    });
}

impl Driven {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["live::a_session", "--exact", "--nocapture"]);
        command.env(SESSION, "1");
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = sender.send(line);
            }
        });
        let mut session = Driven {
            keys: process.stdin.take().unwrap(),
            process,
            lines,
            dir: String::new(),
        };
        let line = session.wait_for("starting PostgreSQL");
        let (_, dir) = line.rsplit_once(" in ").unwrap();
        session.dir = dir.to_owned();
        session
    }

    fn press(&mut self, keys: &str) {
        writeln!(self.keys, "{keys}").unwrap();
    }

    /// The next line with this text.
    fn wait_for(&mut self, part: &str) -> String {
        self.wait_until(part, |line| line.contains(part))
    }

    /// The next line of which this is true.
    fn wait_until(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + WITHIN;
        let mut said = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("the session did not say `{what}`, but {said:#?}");
            };
            if is_wanted(&line) {
                return line;
            }
            said.push(line);
        }
    }

    /// The number of a node that owns shards and that clients use: it may own some before it is ready.
    fn node_with_shards(&mut self) -> String {
        loop {
            let line = self.wait_for("state:");
            let mut nodes = line.split("node ").skip(1);
            let is_used = |node: &&str| !node.contains(": 0 shards") && !node.contains("not ready");
            if let Some((number, _)) = nodes.find(is_used).and_then(|node| node.split_once(':')) {
                return number.to_owned();
            }
        }
    }

    /// The command lines of processes that work in the directory of the session.
    fn processes(&self) -> Vec<String> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        // A process may end meanwhile.
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(&self.dir)).collect()
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        // It has ended, unless the test fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
