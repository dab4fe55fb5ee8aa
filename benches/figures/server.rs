//! The release binary as a child process, and its measurements in `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::Outcome;
use crate::client::{Connection, request};
use crate::points::FIELDS;

const START_WITHIN: Duration = Duration::from_secs(60);
/// The unit of processor times in `/proc`.
const TICKS_A_SECOND: f64 = 100.0;

/// The password of all accounts.
pub const PASSWORD: &str = "correct horse battery";
/// Name of the usual account.
pub const NAME: &str = "plant";

/// A directory on the disk of the build directory: `/tmp` may be in memory.
pub fn data_root() -> Outcome<TempDir> {
    Ok(TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?)
}

pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// Time from the start of the process until `/ready` answers 200.
    pub ready_after: Duration,
}

impl Server {
    /// Starts the server on a data directory; returns when it is ready. `settings` are config keys and values.
    pub fn start(data_dir: &Path, settings: &[(&str, &str)]) -> Outcome<Self> {
        Self::start_under(&[], data_dir, settings)
    }

    /// Starts the server under a tool that becomes neither its parent nor its process group.
    pub fn start_under(tool: &[&str], data_dir: &Path, settings: &[(&str, &str)]) -> Outcome<Self> {
        let words: Vec<&str> = tool
            .iter()
            .copied()
            .chain([env!("CARGO_BIN_EXE_tidewatch")])
            .collect();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        inherited
            .filter(|name| name.to_string_lossy().starts_with("TIDEWATCH_"))
            .for_each(|name| {
                command.env_remove(name);
            });
        for (key, value) in [("accounts.default_plan", "Enterprise")].iter().chain(settings) {
            command.env(
                format!("TIDEWATCH_{}", key.replace('.', "__").to_uppercase()),
                value,
            );
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn()?;
        let (address_sender, addresses) = channel();
        if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
            follow(out, address_sender.clone());
            follow(err, address_sender);
        }
        let mut server = Server {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            ready_after: Duration::ZERO,
        };
        server.address = wait_for_address(&addresses)?;
        server.wait_until_ready(started)?;
        server.ready_after = started.elapsed();
        Ok(server)
    }

    /// A node of a cluster listens before its shards are open.
    fn wait_until_ready(&self, started: Instant) -> Outcome<()> {
        let ready = request("GET", "/ready", "x-of: bench", b"");
        while Connection::open(self.address)?.send(&ready)?.0 != 200 {
            if started.elapsed() > START_WITHIN {
                return Err("the server does not become ready".into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// CPU time so far in seconds, of all threads, in user and kernel mode.
    pub fn cpu_seconds(&self) -> Outcome<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the name, which may contain anything, the 12th and 13th fields.
        let (_, fields) = stat.rsplit_once(')').ok_or("an unreadable /proc/<pid>/stat")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / TICKS_A_SECOND)
    }

    /// Waits until the server has no background work, so that deferred work is counted too.
    pub fn settle(&self) -> Outcome<()> {
        let mut before = self.cpu_seconds()?;
        loop {
            thread::sleep(Duration::from_millis(300));
            let now = self.cpu_seconds()?;
            if now - before < 0.015 {
                return Ok(());
            }
            before = now;
        }
    }

    pub fn resident_bytes(&self) -> Outcome<f64> {
        self.status_bytes("VmRSS:")
    }

    /// Resident memory without mapped files, in bytes.
    pub fn anonymous_bytes(&self) -> Outcome<f64> {
        self.status_bytes("RssAnon:")
    }

    fn status_bytes(&self, name: &str) -> Outcome<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kibibytes = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        let kibibytes = kibibytes.ok_or_else(|| format!("no {name} in /proc/<pid>/status"))?;
        Ok(kibibytes.trim().parse::<f64>()? * 1_024.0)
    }

    /// Number of mappings of files below a directory.
    pub fn mappings_below(&self, dir: &Path) -> Outcome<usize> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.child.id()))?;
        let dir = format!("{}/", dir.canonicalize()?.display());
        Ok(maps.lines().filter(|line| line.contains(&dir)).count())
    }

    /// Bytes passed to the system for writing: to files, and a few for its answers.
    ///
    /// `write_bytes` of `/proc` is unsuitable: on a file system with large pages, it counts up to 128 KiB for each
    /// small frame written into preallocated room of the log, although only 4 KiB reach the disk.
    pub fn written_bytes(&self) -> Outcome<f64> {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id()))?;
        let bytes = io.lines().find_map(|line| line.strip_prefix("wchar:"));
        Ok(bytes.ok_or("no wchar in /proc/<pid>/io")?.trim().parse()?)
    }

    /// Sends SIGTERM and waits for the process, which seals and closes everything.
    pub fn stop(mut self) -> Outcome<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the server ended with {status}").into())
        }
    }

    /// Sends SIGKILL.
    pub fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors mean that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(output: impl Read + Send + 'static, address_sender: Sender<Result<SocketAddr, String>>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("listening on http://") {
                let address = address.split(|c: char| c.is_whitespace() || c == '\u{1b}').next();
                // The receiver is dropped if the caller has timed out.
                let _ = address_sender.send(address.unwrap_or_default().parse().map_err(|_| line));
            } else if line.contains("WARN") || line.contains("ERROR") || line.starts_with("tidewatch:") {
                eprintln!("server: {line}");
            }
        }
    });
}

fn wait_for_address(addresses: &Receiver<Result<SocketAddr, String>>) -> Outcome<SocketAddr> {
    let address = addresses
        .recv_timeout(START_WITHIN)
        .map_err(|_| "the server did not say where it listens")?;
    Ok(address.map_err(|line| format!("no address in: {line}"))?)
}

/// An organization and its credential as a header line.
pub struct Account {
    connection: Connection,
    pub credential: String,
    /// The bearer token of its user, as a header line.
    pub bearer: String,
}

impl Account {
    pub fn sign_up(server: &Server, name: &str) -> Outcome<Self> {
        let mut connection = Connection::open(server.address)?;
        let body = json!({"email": format!("{name}@example.com"), "password": PASSWORD,
            "name": "Ada", "organizationName": name});
        let answer = connection.json("POST", "/api/auth/signup", "x-of: bench", &body)?;
        let bearer = format!("authorization: Bearer {}", text(&answer, "/token")?);
        let body = json!({"name": "bench", "type": "admin"});
        let answer = connection.json("POST", "/api/organization/keys", &bearer, &body)?;
        let credential = format!("x-api-key: {}", text(&answer, "/apiKey/key")?);
        Ok(Account {
            connection,
            credential,
            bearer,
        })
    }

    /// The same account on a restarted server.
    pub fn on(self, server: &Server) -> Outcome<Self> {
        Ok(Account {
            connection: Connection::open(server.address)?,
            ..self
        })
    }

    pub fn bucket(&mut self, name: &str) -> Outcome<String> {
        let body = json!({ "name": name });
        let answer = self
            .connection
            .json("POST", "/api/buckets", &self.credential, &body)?;
        text(&answer, "/bucket/_id")
    }

    pub fn source(&mut self, bucket: &str, name: &str) -> Outcome<String> {
        let number = json!({"type": "number"});
        let schema: serde_json::Map<_, _> = FIELDS
            .iter()
            .map(|field| ((*field).to_owned(), number.clone()))
            .collect();
        let body = json!({"name": name, "schema": schema});
        let path = format!("/api/buckets/{bucket}/sources");
        let answer = self.connection.json("POST", &path, &self.credential, &body)?;
        text(&answer, "/dataSource/_id")
    }

    /// Creates a source with one boolean field, `on`.
    pub fn states(&mut self, bucket: &str, name: &str) -> Outcome<String> {
        let body = json!({"name": name, "schema": {"on": {"type": "boolean"}}});
        let path = format!("/api/buckets/{bucket}/sources");
        let answer = self.connection.json("POST", &path, &self.credential, &body)?;
        text(&answer, "/dataSource/_id")
    }

    pub fn sources(&mut self, bucket: &str, count: usize) -> Outcome<Vec<String>> {
        (0..count)
            .map(|index| self.source(bucket, &format!("source {index}")))
            .collect()
    }

    /// Creates a webhook for triggers.
    pub fn webhook(&mut self, receiver: SocketAddr) -> Outcome<String> {
        self.webhook_of(receiver, &["alert.triggered"])
    }

    pub fn webhook_of(&mut self, receiver: SocketAddr, events: &[&str]) -> Outcome<String> {
        let body = json!({"url": format!("http://{receiver}/"), "events": events});
        let answer = self
            .connection
            .json("POST", "/api/webhooks", &self.credential, &body)?;
        text(&answer, "/webhook/_id")
    }

    pub fn set_webhook(&mut self, id: &str, status: &str) -> Outcome<()> {
        let path = format!("/api/webhooks/{id}");
        let body = json!({ "status": status });
        self.connection
            .json("PATCH", &path, &self.credential, &body)
            .map(drop)
    }

    /// The ids of a bucket's oldest rules.
    pub fn rules(&mut self, bucket: &str, count: usize) -> Outcome<Vec<String>> {
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            let limit = (count - ids.len()).min(1_000);
            let path = format!("/api/buckets/{bucket}/alerts?limit={limit}&offset={}", ids.len());
            let request = request("GET", &path, &self.credential, b"");
            let answer: serde_json::Value = serde_json::from_slice(self.connection.send_ok(&request)?)?;
            let listed = answer["alertRules"]
                .as_array()
                .filter(|listed| !listed.is_empty());
            for rule in listed.ok_or("fewer rules than were created")? {
                ids.push(text(rule, "/_id")?);
            }
        }
        Ok(ids)
    }

    pub fn batch(&self, body: &[u8]) -> Vec<u8> {
        request("POST", "/api/data/batch", &self.credential, body)
    }

    /// A batch compressed by gzip at its default level, as most agents send it.
    pub fn gzip_batch(&self, body: &[u8]) -> Outcome<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body)?;
        let headers = format!("{}\r\ncontent-encoding: gzip", self.credential);
        Ok(request("POST", "/api/data/batch", &headers, &encoder.finish()?))
    }

    pub fn single(&self, body: &[u8]) -> Vec<u8> {
        request("POST", "/api/data", &self.credential, body)
    }

    pub fn query(&self, body: &serde_json::Value) -> Vec<u8> {
        request(
            "POST",
            "/api/data/query",
            &self.credential,
            body.to_string().as_bytes(),
        )
    }
}

fn text(value: &serde_json::Value, pointer: &str) -> Outcome<String> {
    let found = value.pointer(pointer).and_then(serde_json::Value::as_str);
    Ok(found
        .ok_or_else(|| format!("no {pointer} in {value}"))?
        .to_owned())
}

/// Number of files below a directory. Files may appear and disappear meanwhile.
pub fn files_below(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let counts = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_below(&entry.path()),
        _ => 1,
    });
    counts.sum()
}

/// Total size of all files below a directory: their lengths, and their allocated bytes.
pub fn bytes_below(dir: &Path) -> Outcome<(u64, u64)> {
    let mut sum = (0, 0);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let (len, allocated) = if metadata.is_dir() {
            bytes_below(&entry.path())?
        } else {
            (metadata.len(), metadata.blocks() * 512)
        };
        sum = (sum.0 + len, sum.1 + allocated);
    }
    Ok(sum)
}
