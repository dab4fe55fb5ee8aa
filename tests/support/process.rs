//! The server under test as a child process: started on a free port with a new data directory, stopped with SIGTERM,
//! killed with SIGKILL, and restarted on the same directory.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::client::Client;

/// Allows for a debug build on two busy cores, including recovery.
const START_WITHIN: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// The operator token of all servers under test, unless the setup has another one.
pub const OPERATOR_TOKEN: &str = "operator-token-of-the-tests";

/// A server's configuration: keys of the contract's chapter 9 by their dotted names, passed in the environment.
#[derive(Clone, Default)]
pub struct Setup {
    pub variables: Vec<(String, String)>,
    /// Whether the server is killed when the thread that launches it ends, even if this process is killed.
    pub is_tied: bool,
    /// Where it listens, if that has to be the same each time that it is launched.
    pub address: Option<String>,
}

impl Setup {
    /// New organizations are unlimited, and there is an operator token: for tests with many calls.
    pub fn unlimited() -> Self {
        Self::default()
            .set("accounts.default_plan", "Enterprise")
            .set("operator.token", OPERATOR_TOKEN)
    }

    pub fn set(self, key: &str, value: &str) -> Self {
        self.environment(&variable(key), value)
    }

    /// Sets a variable of the environment that is not a key of the configuration.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// `wal.sync` → `TIDEWATCH_WAL__SYNC`
pub fn variable(key: &str) -> String {
    format!("TIDEWATCH_{}", key.replace('.', "__").to_uppercase())
}

/// The binary as a command without settings from the environment of the tests.
pub fn command(working_directory: &Path) -> Command {
    without_settings(Command::new(binary()), working_directory)
}

/// The same, killed when the thread that starts it ends. The system does not do so by itself.
fn tied_command(working_directory: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(binary());
    without_settings(command, working_directory)
}

fn binary() -> PathBuf {
    std::env::var_os("SERVER_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_tidewatch")), PathBuf::from)
}

fn without_settings(mut command: Command, working_directory: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TIDEWATCH_") {
            command.env_remove(name);
        }
    }
    command
        .env_remove("RUST_LOG")
        .env_remove("RUST_BACKTRACE")
        .current_dir(working_directory);
    command
}

pub struct Server {
    pub client: Client,
    setup: Setup,
    root: TempDir,
    running: Option<Running>,
}

struct Running {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn output_lines(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Server {
    pub fn start_with(setup: Setup) -> Self {
        let mut server = Self::stopped(setup);
        server.launch();
        server
    }

    /// A server that has not been started yet.
    pub fn stopped(setup: Setup) -> Self {
        let root = TempDir::new().unwrap_or_else(|error| panic!("no temporary directory: {error}"));
        Self {
            client: Client::new(),
            setup,
            root,
            running: None,
        }
    }

    /// The data directory; it is removed when this value is dropped.
    pub fn data_dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Changes the configuration from the next launch on.
    pub fn configure(&mut self, setup: Setup) {
        self.setup = setup;
    }

    /// Starts the binary on the data directory; returns when it prints its address.
    pub fn launch(&mut self) {
        let (running, addresses) = self.spawn();
        self.running = Some(running);
        match addresses.recv_timeout(START_WITHIN) {
            Ok(address) => self.client.point_at(&address),
            Err(RecvTimeoutError::Timeout) => {
                panic!(
                    "the server did not say `listening on http://…` within {START_WITHIN:?}\n{}",
                    tail(&self.output_lines())
                )
            }
            Err(RecvTimeoutError::Disconnected) => {
                panic!(
                    "the server ended before it printed `listening on http://…`\n{}",
                    tail(&self.output_lines())
                )
            }
        }
    }

    /// Starts the binary and kills it after that time, whether or not it is ready.
    pub fn launch_and_kill(&mut self, after: Duration) {
        let (mut running, _) = self.spawn();
        wait_for_exit(&mut running.child, after);
        self.running = Some(running);
        self.kill();
    }

    /// Sends SIGKILL: data that the server did not write is lost.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            // Errors mean that it has already ended.
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }

    /// Sends SIGTERM and waits for the process.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = Pid::from_raw(self.pid().cast_signed());
        let sent = pid.map_or(Ok(()), |pid| kill_process(pid, Signal::TERM));
        sent.unwrap_or_else(|error| panic!("cannot signal the server: {error}"));
        self.wait()
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> ExitStatus {
        let Some(mut running) = self.running.take() else {
            panic!("the server is not running")
        };
        wait_for_exit(&mut running.child, STOP_WITHIN).unwrap_or_else(|| {
            let _ = running.child.kill();
            panic!(
                "the server should have ended (contract 9: SIGTERM ends it); it still ran {STOP_WITHIN:?} later\n{}",
                tail(&running.output_lines())
            )
        })
    }

    pub fn pid(&self) -> u32 {
        self.running.as_ref().map_or_else(
            || panic!("the server is not running"),
            |running| running.child.id(),
        )
    }

    /// The lines that the running server has printed.
    pub fn output_lines(&self) -> Vec<String> {
        self.running.as_ref().map_or_else(Vec::new, Running::output_lines)
    }

    fn spawn(&self) -> (Running, Receiver<String>) {
        let mut command = if self.setup.is_tied {
            tied_command(self.root.path())
        } else {
            command(self.root.path())
        };
        command
            .args([
                "serve",
                "--listen",
                self.setup.address.as_deref().unwrap_or("127.0.0.1:0"),
            ])
            .arg("--data-dir")
            .arg(self.data_dir());
        command.envs(self.setup.variables.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));

        let log = Arc::new(Mutex::new(Vec::new()));
        let (address_sender, addresses) = channel();
        if let Some(output) = child.stdout.take() {
            follow(output, Arc::clone(&log), address_sender.clone());
        }
        if let Some(output) = child.stderr.take() {
            follow(output, Arc::clone(&log), address_sender);
        }
        (Running { child, log }, addresses)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() && self.running.is_some() {
            eprintln!("{}", tail(&self.output_lines()));
        }
        self.kill();
    }
}

/// Polls until the child has ended; `None` at the deadline.
pub fn wait_for_exit(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + within;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
            Ok(None) => return None,
            Err(error) => panic!("cannot wait for the server: {error}"),
        }
    }
}

/// Runs the command until it ends; returns its status and both outputs.
pub fn run_to_end(command: &mut Command, within: Duration) -> (ExitStatus, String) {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let status = wait_for_exit(&mut child, within);
    if status.is_none() {
        let _ = child.kill();
    }
    let output = child
        .wait_with_output()
        .unwrap_or_else(|error| panic!("no output of {command:?}: {error}"));
    let outputs = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    match status {
        Some(status) => (status, outputs),
        None => panic!("{command:?} should have ended by itself within {within:?}; it printed:\n{outputs}"),
    }
}

fn follow(output: impl Read + Send + 'static, log: Arc<Mutex<Vec<String>>>, address_sender: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("listening on http://") {
                let address = address
                    .split(|c: char| c.is_whitespace() || c == '"' || c == '\u{1b}')
                    .next();
                // The receiver is dropped after the first address.
                let _ = address_sender.send(format!("http://{}", address.unwrap_or_default()));
            }
            log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}

fn tail(lines: &[String]) -> String {
    let from = lines.len().saturating_sub(40);
    format!("the server's last words:\n{}", lines[from..].join("\n"))
}
