//! `tidewatch demo`: the service with something in it. A server in this process, an organization with a simulated plant
//! and recorded series, live points, rules, the reference evaluator and a receiver of webhooks.
//!
//! It reaches the server over HTTP alone, through the public API, as any client would; it never reaches into its rooms.
//! Called by the command line.

mod api;
mod feed;
mod home;
mod plant;
mod receiver;
mod rules;
mod series;
mod site;
mod welcome;

use std::fmt;
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

/// Every demo shows the same plant: its pump shakes when the demo begins and again after eleven minutes, and its tank runs
/// low after five.
const SEED: u64 = 277;

/// What the demo sets; nothing else is read, no file and no environment.
const SETTINGS: [(&str, &str); 3] = [
    ("accounts.default_plan", "Enterprise"),
    // The receiver is on this machine.
    ("webhooks.allow_private_networks", "true"),
    ("log.filter", "warn,tidewatch::demo=info,actix_http=off"),
];

/// The evaluator of the demo asks every second: what becomes due is judged at once.
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

/// What the command line says.
#[derive(Debug, Default)]
pub struct Options {
    /// Address and port to listen on.
    pub listen: Option<String>,
    /// A directory that is empty or absent, and stays; a temporary one when there is none.
    pub data_dir: Option<PathBuf>,
}

/// Why the demo does not start, or did not end well.
#[derive(Debug)]
pub enum DemoError {
    /// The directory or an option cannot be used.
    Options(String),
    /// The server does not start, or did not stop cleanly.
    Server(StartupError),
    /// The operating system gives no port, no signals, no random bytes.
    System(String),
    /// The server refuses what the demo sets up.
    Api(ApiError),
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(StartupError::Bind { address, source })
                if source.kind() == std::io::ErrorKind::AddrInUse =>
            {
                write!(
                    f,
                    "something listens on {address} already; give another with --listen, or a free one with \
                     --listen {}",
                    SocketAddr::new(address.ip(), 0)
                )
            }
            Self::Server(cause) => cause.fmt(f),
            Self::Api(cause) => write!(f, "the demo could not be set up: {cause}"),
            Self::Options(cause) | Self::System(cause) => f.write_str(cause),
        }
    }
}

impl std::error::Error for DemoError {}

impl From<ApiError> for DemoError {
    fn from(cause: ApiError) -> Self {
        Self::Api(cause)
    }
}

/// Shows the service until SIGTERM or SIGINT, then ends everything in order. `out` gets the address and the log-in.
///
/// # Errors
/// The directory or the address cannot be had, or the server does not start or stop as it should.
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
    // The server first: deliveries in flight may still arrive.
    let stopped = server.stop().await.map_err(DemoError::Server);
    receiver.stop().await;
    shown.and(stopped)
}

/// Sets everything up, says so, and lets it run until there is a signal.
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
            tracing::info!(points, took = ?began.elapsed(), "history is in");
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
    // Whoever reads it may have gone.
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

/// Where a server that listens there is reached from this machine.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

/// A secret that can be read out: `3f9c-01d2-88ab-7e40`.
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

    /// The highest vibration that a window ending so many seconds after the beginning shows.
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
