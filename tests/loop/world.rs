//! A server within this process, with its own data directory and clock.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidewatch::catalog::Plan;
use tidewatch::clock::ManualClock;
use tidewatch::config::{Config, SyncMode};
use tidewatch::startup;
use tokio::sync::oneshot;

use crate::client::{Answer, Client};
use crate::given::{Account, Bucket};
use crate::receiver::{Receiver, status};
use crate::time::{HOUR, SECOND, now_ns};
use crate::watch::Evaluator;

/// The start of every world: the last full hour.
pub static START: LazyLock<i64> = LazyLock::new(|| now_ns() / HOUR * HOUR);

const START_WITHIN: Duration = Duration::from_secs(60);

pub struct World {
    pub clock: Arc<ManualClock>,
    pub client: Client,
    configure: Box<dyn Fn(&mut Config)>,
    directory: TempDir,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The initial state of most tests of this binary.
pub struct Scene {
    pub world: World,
    pub account: Account,
    pub bucket: Bucket,
    /// A source with the number field `level`.
    pub source: String,
    pub evaluator: Evaluator,
}

impl World {
    fn start(configure: impl Fn(&mut Config) + 'static) -> Self {
        let mut world = Self {
            clock: Arc::new(ManualClock::new(*START)),
            client: Client::new(),
            configure: Box::new(configure),
            directory: TempDir::new().unwrap(),
            running: None,
        };
        world.launch();
        world
    }

    /// Advances the clock and elapsed time.
    pub fn advance(&self, seconds: i64) {
        self.clock.advance(seconds * SECOND);
    }

    /// Changes the clock without elapsed time.
    pub fn step(&self, seconds: i64) {
        self.clock.step(seconds * SECOND);
    }

    /// Stops in order and starts again, with the clock changed in between.
    pub fn restart(&mut self, step_seconds: i64) {
        self.stop();
        self.step(step_seconds);
        self.launch();
    }

    /// Where the server keeps its data.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn launch(&mut self) {
        let mut config = Config::defaults().unwrap();
        config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.server.workers = 1;
        config.storage.data_dir = self.data_dir();
        // Crashes are tested elsewhere.
        config.wal.sync = SyncMode::Never;
        config.accounts.default_plan = Plan::Enterprise;
        config.webhooks.allow_private_networks = true;
        (self.configure)(&mut config);
        let clock = Arc::clone(&self.clock);
        let (stop, stopped) = oneshot::channel();
        let (address_sender, address) = mpsc::channel();
        let thread = thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let running = startup::start(config, clock).await.unwrap();
                address_sender.send(running.address()).unwrap();
                // The other end is dropped by a test that panicked: the server stops then, too.
                let _ = stopped.await;
                running.stop().await.unwrap();
            });
        });
        let address = address
            .recv_timeout(START_WITHIN)
            .unwrap_or_else(|error| panic!("the server did not start: {error}"));
        self.client.point_at(&format!("http://{address}"));
        self.running = Some(Running { stop, thread });
    }

    /// Stops in order, with a last checkpoint.
    pub fn stop(&mut self) {
        let running = self.running.take().unwrap();
        running.stop.send(()).unwrap();
        running.thread.join().unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            let _ = running.stop.send(());
            // A panic of the server's thread must not become a second panic.
            let _ = running.thread.join();
        }
    }
}

/// A receiver that answers every request with 200.
pub fn receiver() -> Receiver {
    Receiver::answering(|_, _| status(200))
}

pub fn scene() -> Scene {
    scene_with(|_| {})
}

/// The same with other settings.
pub fn scene_with(configure: impl Fn(&mut Config) + 'static) -> Scene {
    let world = World::start(configure);
    let account = Account::sign_up(&world.client);
    let bucket = account.bucket("tides");
    Scene {
        source: bucket.source("gauge", &["level"]),
        evaluator: account.evaluator(),
        world,
        account,
        bucket,
    }
}

impl Scene {
    /// Creates a rule over `level` with an evaluation block of this interval and dwell.
    #[track_caller]
    pub fn rule(&self, name: &str, interval_seconds: i64, dwell_seconds: i64) -> String {
        self.bucket.rule(&json!({
            "dataSourceId": self.source, "name": name, "naturalLanguageQuery": "level is above 5",
            "evaluation": {
                "intervalSeconds": interval_seconds, "windowSeconds": 300, "dwellSeconds": dwell_seconds,
                "inputs": [{"key": "x", "field": "level"}], "parameters": {},
            },
        }))
    }

    /// Sends a request with the admin key; `Value::Null` sends no body.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let request = self.world.client.request(method, path).key(&self.account.admin);
        if body.is_null() {
            request.send()
        } else {
            request.json(body).send()
        }
    }

    /// PATCHes a rule; returns the result.
    #[track_caller]
    pub fn patch(&self, rule: &str, body: &Value) -> Value {
        let answer = self.call("PATCH", &format!("/api/alerts/{rule}"), body);
        answer.expect(200, "contract 6: PATCH /api/alerts/:id")["alertRule"].clone()
    }
}
