//! A Prometheus of this machine, on a free port of 127.0.0.1, with an empty database.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub struct Prometheus {
    process: Child,
    address: String,
    agent: ureq::Agent,
    _directory: TempDir,
}

/// An answer of the API as it came.
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Prometheus {
    /// Starts it and waits until it serves; none, with a message, when it is not installed.
    pub fn start() -> Option<Prometheus> {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("prometheus.yml");
        std::fs::write(&config, "global: {}\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("127.0.0.1:{port}");
        let started = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--web.enable-remote-write-receiver")
            .arg("--storage.tsdb.retention.time=100y")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(error) => {
                println!(
                    "skipped: prometheus does not start ({error}); `tests/needs prometheus` installs it"
                );
                return None;
            }
        };
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("Server is ready to receive web requests") {
            line.clear();
            assert_ne!(
                log.read_line(&mut line).unwrap(),
                0,
                "prometheus ended before it served"
            );
        }
        // It must not block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .new_agent();
        Some(Prometheus {
            process,
            address,
            agent,
            _directory: directory,
        })
    }

    pub fn version(&self) -> String {
        let url = format!("http://{}/api/v1/status/buildinfo", self.address);
        let body = self
            .agent
            .get(&url)
            .call()
            .unwrap()
            .body_mut()
            .read_to_string()
            .unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        body["data"]["version"].as_str().unwrap().to_owned()
    }

    pub fn write(&self, body: &[u8]) {
        let url = format!("http://{}/api/v1/write", self.address);
        let mut response = self
            .agent
            .post(&url)
            .header("Content-Encoding", "snappy")
            .send(body)
            .unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        assert!(response.status().is_success(), "{}: {text}", response.status());
    }

    pub fn ask(&self, path: &str, params: &[(&str, &str)]) -> Answer {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let mut response = self.agent.post(&url).send_form(params.iter().copied()).unwrap();
        let status = response.status().as_u16();
        let text = response
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_to_string()
            .unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{params:?}: {error}: {text}"));
        Answer { status, body }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
