//! A server with any configuration, whose output is recorded.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::process::wait_for_exit;

const WITHIN: Duration = Duration::from_secs(60);

/// A running server, killed when dropped.
pub struct LoggedServer {
    /// `http://127.0.0.1:1234`
    pub base: String,
    child: Child,
    log: Arc<Mutex<String>>,
}

impl LoggedServer {
    /// Starts the server; returns when it prints its address.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::start_until(command, "listening on ")
    }

    /// Starts the server; returns when it prints its address and begins to recover.
    #[track_caller]
    pub fn recovering(command: &mut Command) -> Self {
        Self::start_until(command, "recovering; /health answers on ")
    }

    #[track_caller]
    fn start_until(command: &mut Command, words: &'static str) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (log, (address_sender, bases)) = (Arc::new(Mutex::new(String::new())), channel());
        let (kept, stderr) = (Arc::clone(&log), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some((_, base)) = line.split_once(words) {
                    let end = |c: char| c.is_whitespace() || c == '"';
                    // The channel is closed after the first line.
                    let _ = address_sender.send(base.split(end).next().unwrap_or_default().to_owned());
                }
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let base = bases.recv_timeout(WITHIN);
        let server = Self {
            base: base.clone().unwrap_or_default(),
            child,
            log,
        };
        assert!(
            base.is_ok(),
            "the server should have started; it said: {}",
            server.log()
        );
        server
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGTERM and waits for the process.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        wait_for_exit(&mut self.child, WITHIN).unwrap()
    }
}

impl Drop for LoggedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
