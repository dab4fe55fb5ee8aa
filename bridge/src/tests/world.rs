//! A broker, a service, and a bridge between them that tests start, stop and kill.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use evaluator::Backoff;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::broker::{Broker, Publication, publish};
use super::service::{KEY, Service};
use crate::config::Config;
use crate::counts::Counts;
use crate::{BridgeError, Counted, run_with};

const PATIENCE: Duration = Duration::from_secs(60);
/// Both versions of MQTT, as the configuration names them.
pub const VERSIONS: [&str; 2] = ["3.1.1", "5"];

/// Broker and service.
pub struct World {
    pub broker: Broker,
    pub service: Service,
    version: &'static str,
    /// Further members of `[broker]`.
    pub members: String,
    /// Further sections.
    pub sections: String,
}

/// A bridge under way. It is killed with the value.
pub struct Running {
    task: JoinHandle<Result<(), BridgeError>>,
    counts: Rc<Counts>,
    stop: CancellationToken,
}

impl World {
    pub async fn new(version: &'static str) -> Self {
        Self {
            broker: Broker::start(),
            service: Service::start().await,
            version,
            members: String::new(),
            sections: "[[topics]]\ntopic = 'plant/{site}/{source}'\n".to_owned(),
        }
    }

    pub fn config(&self) -> Config {
        let Self {
            broker,
            service,
            version,
            members,
            sections,
        } = self;
        let text = format!(
            "[api]\nurl = '{}'\nkey = '{KEY}'\nbucket = 'the plant'\n\
             [broker]\nurl = 'mqtt://127.0.0.1:{}'\nclient_id = 'bridge'\nversion = '{version}'\n{members}\n{sections}",
            service.url, broker.port
        );
        Config::parse(&text, None, Path::new("bridge.toml")).unwrap()
    }

    pub fn bridge(&self) -> Running {
        Running::start(self.config())
    }

    /// Starts a bridge and stops it after its subscription, so that the broker keeps whatever is published from then on.
    pub async fn subscribe(&self) {
        let bridge = self.bridge();
        bridge.until(|counted| counted.connections == 1).await;
        bridge.stop().await.unwrap();
    }

    pub async fn publish(&self, messages: Vec<Publication>) {
        publish(self.broker.port, messages).await;
    }
}

impl Running {
    pub fn start(config: Config) -> Self {
        let backoff = Backoff {
            first: Duration::from_millis(5),
            max: Duration::from_millis(20),
        };
        // Shown with the output of a test that fails.
        let _ = tracing_subscriber::fmt().with_test_writer().try_init();
        let stop = CancellationToken::new();
        let counts = Rc::new(Counts::default());
        let (counting, stopping) = (Rc::clone(&counts), stop.clone());
        let task = actix_web::rt::spawn(async move { run_with(config, backoff, &counting, stopping).await });
        Self { task, counts, stop }
    }

    /// Waits until something holds of what it has counted.
    pub async fn until(&self, holds: impl Fn(Counted) -> bool) {
        let started = Instant::now();
        while !holds(self.counts.now()) {
            assert!(started.elapsed() < PATIENCE, "{:?}", self.counts.now());
            tokio::task::yield_now().await;
        }
    }

    /// Ends it as a kill would: no further instruction is executed.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    /// Stops it, and waits for its end. Returns the counts of messages.
    pub async fn stop(self) -> Result<Counted, BridgeError> {
        self.stop.cancel();
        self.end().await
    }

    /// Waits until it ends by itself. Returns the counts of messages.
    pub async fn end(self) -> Result<Counted, BridgeError> {
        let ended = tokio::time::timeout(PATIENCE, self.task).await;
        ended.expect("the bridge ends").unwrap()?;
        Ok(Counted {
            connections: 0,
            ..self.counts.now()
        })
    }
}
