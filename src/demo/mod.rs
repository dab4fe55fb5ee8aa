//! `tidewatch demo`: a server with sample data. Runs a server in this process, and with it an organization with a
//! simulated plant and recorded series, live points, rules, the reference evaluator and a webhook receiver.
//!
//! It uses only the public HTTP API of the server, like any other client, and none of its modules. Called by the
//! command line.

mod api;
mod feed;
mod home;
mod plant;
mod receiver;
mod rules;
mod series;
mod site;
mod welcome;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::rt::spawn;

use crate::clock::{Clock, SECOND_NS, SystemClock};
use crate::config::{self, Config, Flags};
use crate::evaluator::{self, Pace, Stop};
use crate::random;
use crate::startup::{self, StartupError, StopSignals};

use api::ApiError;
use feed::Feed;
use home::Home;
use plant::Plant;
use receiver::Receiver;
use site::Site;
use welcome::Welcome;

pub use series::LICENCE;

/// Every demo shows the same plant: its pump vibrates when the demo starts and again after eleven minutes, and its tank
/// runs low after five.
const SEED: u64 = 277;

/// The demo's settings. No file and no environment variable is read.
const SETTINGS: [(&str, &str); 3] = [
    ("accounts.default_plan", "Enterprise"),
    // The receiver runs on this machine.
    ("webhooks.allow_private_networks", "true"),
    ("log.filter", "warn,tidewatch::demo=info,actix_http=off"),
];

/// The demo's evaluator polls every second, so that due rules are evaluated at once.
const EVALUATOR: evaluator::Options = evaluator::Options {
    limit: 100,
    claim: Duration::from_secs(60),
    poll: Duration::from_secs(1),
    concurrency: 4,
    once: false,
    pace: Pace {
        first: Duration::from_millis(500),
        longest: Duration::from_secs(5),
    },
};

/// Options of the command line.
#[derive(Debug, Default)]
pub struct Options {
    /// Address and port to listen on.
    pub listen: Option<String>,
    /// A directory that is empty or absent, and is kept. Without it, a temporary directory is used.
    pub data_dir: Option<PathBuf>,
}

/// Why the demo did not start or did not end cleanly.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The directory or an option is not valid.
    #[error("{0}")]
    Options(String),
    /// The server did not start or did not stop cleanly.
    #[error("{}", server_fault(.0))]
    Server(StartupError),
    /// The operating system provides no port, signals or random bytes.
    #[error("{0}")]
    System(String),
    /// The server refused a step of the setup.
    #[error("the demo could not be set up: {0}")]
    Api(ApiError),
}

impl From<ApiError> for DemoError {
    fn from(cause: ApiError) -> Self {
        Self::Api(cause)
    }
}

/// The message for a server that did not start or stop; an address in use is the most common cause.
fn server_fault(error: &StartupError) -> String {
    match error {
        StartupError::Bind { address, source } if source.kind() == std::io::ErrorKind::AddrInUse => {
            format!(
                "something listens on {address} already; give another with --listen, or a free one with --listen {}",
                SocketAddr::new(address.ip(), 0)
            )
        }
        error => error.to_string(),
    }
}

/// Runs the demo until SIGTERM or SIGINT, then shuts down in order. Writes the address and the login to `out`.
///
/// # Errors
/// The directory or the address is not available, or the server fails to start or stop.
pub async fn run(options: Options, out: &mut dyn Write) -> Result<(), DemoError> {
    let signals = StopSignals::listen()
        .map_err(|error| DemoError::System(format!("cannot listen for signals: {error}")))?;
    let home = match &options.data_dir {
        Some(path) => Home::given(path),
        None => Home::temporary(&std::env::temp_dir(), u64::from_be_bytes(drawn()?)),
    };
    let home = home.map_err(DemoError::Options)?;
    let config = settings(options.listen, &home)?;
    startup::start_logging(&config.log);
    let secret = word()?;
    let receiver = Receiver::start(&secret)
        .map_err(|error| DemoError::System(format!("cannot start the receiver: {error}")))?;
    let server = startup::start(config, Arc::new(SystemClock))
        .await
        .map_err(DemoError::Server)?;
    let shown = show(server.address(), &receiver, &secret, &home, signals, out).await;
    // Stop the server first, so that deliveries in flight still arrive.
    let stopped = server.stop().await.map_err(DemoError::Server);
    receiver.stop().await;
    shown.and(stopped)
}

/// Sets up the demo, prints the welcome text and runs until a signal arrives.
async fn show(
    listening: SocketAddr,
    receiver: &Receiver,
    secret: &str,
    home: &Home,
    signals: StopSignals,
    out: &mut dyn Write,
) -> Result<(), DemoError> {
    let base = format!("http://{}", reachable(listening));
    let began = Instant::now();
    let began_s = SystemClock.now_ns().div_euclid(SECOND_NS);
    let password = word()?;
    let site = Site::set_up(&base, &password).await?;
    let feed = Rc::new(Feed::new(&base, &site, Plant::new(SEED, began_s), began_s)?);
    feed.send_newest().await?;
    rules::add_webhooks(&site.owner, receiver.address, secret).await?;
    rules::add_rules(&site).await?;

    let (stopper, stop) = Stop::new();
    let (live, live_stop) = (Rc::clone(&feed), stop.clone());
    let live = spawn(async move { live.send_live(&SystemClock, &live_stop).await });
    let history_stop = stop.clone();
    let history = spawn(async move {
        if let Some(points) = feed.send_rest(&history_stop).await {
            tracing::info!(points, took = ?began.elapsed(), "history sent");
        }
    });
    let (evaluator_base, key) = (base.clone(), site.integration_key.clone());
    let evaluating = spawn(async move {
        if let Err(error) = evaluator::run(&evaluator_base, &key, EVALUATOR, stop).await {
            tracing::error!(%error, "the evaluator has ended");
        }
    });

    let welcome = Welcome {
        base: &base,
        password: &password,
        site: &site,
        home,
    };
    // The reader may be gone.
    let _ = write!(out, "{welcome}").and_then(|()| out.flush());

    signals.received().await;
    stopper.tell();
    for task in [live, history, evaluating] {
        if let Err(panic) = task.await {
            tracing::error!(%panic, "BUG: a task of the demo panicked");
        }
    }
    Ok(())
}

fn settings(listen: Option<String>, home: &Home) -> Result<Config, DemoError> {
    let data_dir = home.path().to_str();
    let data_dir = data_dir
        .ok_or_else(|| DemoError::Options(format!("{} is not a Unicode path", home.path().display())))?;
    let flags = Flags {
        config: None,
        listen,
        data_dir: Some(data_dir.to_owned()),
    };
    let settings = SETTINGS.map(|(key, value)| (config::environment_name(key), value.to_owned()));
    config::load(&flags, settings).map_err(|error| DemoError::Options(error.to_string()))
}

/// The address by which a server with this listen address is reached from this machine.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

/// A random secret that is easy to read out, such as `3f9c-01d2-88ab-7e40`.
fn word() -> Result<String, DemoError> {
    let groups: [[u8; 2]; 4] = [drawn()?, drawn()?, drawn()?, drawn()?];
    let groups = groups.map(|[a, b]| format!("{a:02x}{b:02x}"));
    Ok(groups.join("-"))
}

fn drawn<const N: usize>() -> Result<[u8; N], DemoError> {
    random::bytes().map_err(|error| DemoError::System(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::plant::{Sample, Sensor};
    use super::rules::{VIBRATION_MAX, VIBRATION_WINDOW_S};
    use super::*;

    const BEGAN_S: i64 = 1_800_000_000;

    /// The highest vibration in the window that ends `end_s` seconds after the start.
    fn highest(end_s: i64) -> f64 {
        let plant = Plant::new(SEED, BEGAN_S);
        let seen = end_s - VIBRATION_WINDOW_S..=end_s;
        seen.map(
            |second| match plant.samples(Sensor::MainPump, BEGAN_S + second)[0] {
                Sample::Number(value) => value,
                other => panic!("{other:?}"),
            },
        )
        .fold(0.0, f64::max)
    }

    #[test]
    fn the_first_evaluation_finds_the_pump_shaking_however_long_the_start_takes() {
        for end_s in 0..=120 {
            assert!(highest(end_s) > VIBRATION_MAX, "{end_s}: {}", highest(end_s));
        }
    }

    #[test]
    fn the_pump_calms_down_and_shakes_again_within_the_first_quarter_of_an_hour() {
        let shakes: Vec<bool> = (0..15).map(|nth| highest(2 + nth * 60) > VIBRATION_MAX).collect();
        let mut turns = shakes.clone();
        turns.dedup();
        assert!(turns.starts_with(&[true, false, true]), "{shakes:?}");
    }

    #[test]
    fn what_listens_everywhere_is_reached_on_this_machine() {
        for (listening, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(reachable(listening.parse().unwrap()).to_string(), reached);
        }
    }
}
