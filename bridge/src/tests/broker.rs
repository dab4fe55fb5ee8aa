//! A mosquitto of the test's own, and a publisher.

use std::collections::HashSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rumqttc::{AsyncClient, Event, MqttOptions, Outgoing, Packet, QoS};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// Debian keeps it off the path of users.
const PROGRAMS: [&str; 2] = ["mosquitto", "/usr/sbin/mosquitto"];

/// A broker that keeps its sessions on disk. It is killed with the value.
pub struct Broker {
    directory: TempDir,
    process: Option<Child>,
    pub port: u16,
}

impl Broker {
    pub fn start() -> Self {
        Self::with_settings(|_| "allow_anonymous true".to_owned())
    }

    /// With further lines of its configuration, which may name files in the directory.
    pub fn with_settings(settings: impl FnOnce(&Path) -> String) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path();
        let port = free_port();
        let configuration = format!(
            "listener {port} 127.0.0.1\npersistence true\npersistence_location {}/\n\
             max_queued_messages 0\nuser root\nlog_type error\n{}\n",
            path.display(),
            settings(path)
        );
        fs::write(path.join("mosquitto.conf"), configuration).unwrap();
        let mut broker = Self {
            directory,
            process: None,
            port,
        };
        broker.run();
        broker
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts it, and waits until it accepts connections.
    pub fn run(&mut self) {
        let spawn = |program: &&str| {
            Command::new(program)
                .arg("-c")
                .arg(self.directory.path().join("mosquitto.conf"))
                .stdin(Stdio::null())
                .spawn()
                .ok()
        };
        let process = PROGRAMS.iter().find_map(spawn);
        self.process = Some(process.expect("mosquitto is installed: tests/needs mosquitto"));
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < PATIENCE, "mosquitto accepts connections");
            std::thread::yield_now();
        }
    }

    /// Stops it as its service manager would: it writes its sessions first.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let ended = Command::new("kill")
                .args(["-TERM", &process.id().to_string()])
                .status();
            assert!(ended.unwrap().success());
            process.wait().unwrap();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A message to publish.
#[derive(Clone)]
pub struct Publication {
    pub topic: String,
    pub payload: Vec<u8>,
    pub qos: QoS,
    pub retain: bool,
}

impl Publication {
    pub fn new(topic: &str, payload: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            payload: payload.as_bytes().to_vec(),
            qos: QoS::AtLeastOnce,
            retain: false,
        }
    }
}

/// Publishes all, and returns when the broker has acknowledged each. Survives a broker that restarts.
pub async fn publish(port: u16, messages: Vec<Publication>) {
    let mut options = MqttOptions::new("publisher", "127.0.0.1", port);
    options
        .set_clean_session(false)
        .set_max_packet_size(4 << 20, 4 << 20);
    let all = messages.len();
    let to_acknowledge = messages
        .iter()
        .filter(|message| message.qos != QoS::AtMostOnce)
        .count();
    let (client, mut events) = AsyncClient::new(options, 10);
    let sending = async {
        for message in messages {
            let Publication {
                topic,
                payload,
                qos,
                retain,
            } = message;
            client.publish(topic, qos, retain, payload).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    let polling = async {
        let (mut sent, mut acknowledged) = (0, 0);
        while sent < all || acknowledged < to_acknowledge {
            match events.poll().await {
                Ok(Event::Incoming(Packet::PubAck(_))) => acknowledged += 1,
                Ok(Event::Outgoing(Outgoing::Publish(_))) => sent += 1,
                Ok(_) => {}
                // The broker restarts.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let both = async {
        tokio::select! {
            () = sending => {}
            () = polling => {}
        }
    };
    tokio::time::timeout(PATIENCE, both)
        .await
        .expect("the broker acknowledges");
}

/// Distinct lines.
pub fn distinct(lines: &[String]) -> HashSet<&str> {
    lines.iter().map(String::as_str).collect()
}
