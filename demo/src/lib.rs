//! The contents of `tidewatch demo`: an organization with a simulated plant and recorded series, live points, rules,
//! a board, the reference evaluator and a webhook receiver.
//!
//! It uses only the public HTTP API of the server, like any other client. Called by the command line, which starts the
//! server on [`Demo::data_dir`].

mod api;
mod board;
mod data_dir;
mod feed;
mod plant;
mod receiver;
mod rules;
mod series;
mod site;
mod welcome;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use evaluator::Backoff;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use api::ApiError;
use data_dir::DataDir;
use feed::Feed;
use plant::Plant;
use receiver::Receiver;
use series::Series;
use site::Site;

/// Every demo shows the same plant: its pump vibrates when the demo starts and again after eleven minutes, and its tank
/// runs low after five.
const SEED: u64 = 277;

/// The demo's evaluator polls every second, so that due rules are evaluated at once.
const EVALUATOR: evaluator::Options = evaluator::Options {
    limit: 100,
    claim: Duration::from_secs(60),
    poll: Duration::from_secs(1),
    concurrency: 4,
    once: false,
    backoff: Backoff {
        first: Duration::from_millis(500),
        max: Duration::from_secs(5),
    },
};

/// Why the demo did not start.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A directory is not usable.
    #[error("{0}")]
    Directory(String),
    /// No port for the receiver.
    #[error("cannot start the receiver: {0}")]
    Receiver(std::io::Error),
    /// No random bytes for a password.
    #[error("the operating system gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
    /// The server refused a step of the setup.
    #[error("the demo could not be set up: {0}")]
    Api(#[from] ApiError),
}

/// A demo whose server is not started yet.
pub struct Demo {
    data_dir: DataDir,
    series: Vec<Series>,
    receiver: Receiver,
    /// Signs the deliveries to the receiver.
    secret: String,
}

impl Demo {
    /// Chooses the data directory, reads the recorded series and starts the receiver. A given `data_dir` must be empty
    /// or absent, and is kept; the default is a temporary directory. The default for `series`, the directory of the
    /// recorded series, is where the repository and the packages have it.
    ///
    /// # Errors
    /// A directory is not usable, or no port is available.
    pub fn prepare(data_dir: Option<&Path>, series: Option<&Path>) -> Result<Self, DemoError> {
        let secret = random_password()?;
        Ok(Self {
            data_dir: DataDir::choose(data_dir).map_err(DemoError::Directory)?,
            series: series::read(series).map_err(DemoError::Directory)?,
            receiver: Receiver::start(&secret).map_err(DemoError::Receiver)?,
            secret,
        })
    }

    /// The directory for the server's data.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir.path
    }

    /// Sets up the organization on the server that listens on `listen`, writes the address and the login to `out`, and
    /// runs until `signal` is ready.
    ///
    /// # Errors
    /// The server refuses a step of the setup.
    pub async fn run<T>(
        &self,
        listen: SocketAddr,
        signal: impl Future<Output = T>,
        out: &mut dyn Write,
    ) -> Result<(), DemoError> {
        let base = format!("http://{}", reachable(listen));
        let start = Instant::now();
        let start_s = Timestamp::now().as_second();
        if self.series.is_empty() {
            tracing::warn!("there are no recorded series: --series names their directory");
        }
        let password = random_password()?;
        let site = Site::set_up(&base, &password, &self.series).await?;
        let plant = Plant::new(SEED, start_s);
        let feed = Feed::new(&base, &site, plant, &self.series, start_s)?;
        feed.send_newest().await?;
        rules::add_webhooks(&site.owner, self.receiver.address, &self.secret).await?;
        rules::add_rules(&site).await?;
        let board = board::add_board(&site).await?;

        let text = welcome::text(&base, &password, &site, &board, &self.data_dir);
        // The reader may be gone.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());

        let stop = CancellationToken::new();
        let send_history = async {
            if let Some(points) = feed.send_history(&stop).await {
                tracing::info!(points, took = ?start.elapsed(), "history sent");
            }
        };
        let evaluate = async {
            let evaluator = evaluator::run(&base, &site.integration_key, EVALUATOR, stop.clone());
            if let Err(error) = evaluator.await {
                tracing::error!(%error, "the evaluator has ended");
            }
        };
        let wait_for_signal = async {
            signal.await;
            stop.cancel();
        };
        tokio::join!(feed.send_live(&stop), send_history, evaluate, wait_for_signal);
        Ok(())
    }

    /// Stops the receiver and removes a temporary data directory. Called after the server has stopped, so that
    /// deliveries in flight still arrive.
    pub async fn end(self) {
        self.receiver.stop().await;
        self.data_dir.end();
    }
}

/// The address by which a server with this listen address is reached from this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// A random secret that is easy to read out, such as `3f9c-01d2-88ab-7e40`.
fn random_password() -> Result<String, getrandom::Error> {
    let random = getrandom::u64()?;
    let groups = [48, 32, 16, 0].map(|shift| format!("{:04x}", (random >> shift) as u16));
    Ok(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::plant::{Sample, Sensor};
    use super::rules::{VIBRATION_MAX, VIBRATION_WINDOW_S};
    use super::*;

    const START_S: i64 = 1_800_000_000;

    /// The highest vibration in the window that ends `end_s` seconds after the start.
    fn highest(end_s: i64) -> f64 {
        let plant = Plant::new(SEED, START_S);
        let seconds = end_s - VIBRATION_WINDOW_S..=end_s;
        let values = seconds.map(
            |second| match plant.samples(Sensor::MainPump, START_S + second)[0] {
                Sample::Number(value) => value,
                other => panic!("{other:?}"),
            },
        );
        values.fold(0.0, f64::max)
    }

    #[test]
    fn the_first_evaluation_finds_the_pump_shaking_after_any_start_time() {
        for end_s in 0..=120 {
            assert!(highest(end_s) > VIBRATION_MAX, "{end_s}: {}", highest(end_s));
        }
    }

    #[test]
    fn the_pump_calms_down_and_shakes_again_within_15_minutes() {
        let shakes: Vec<bool> = (0..15).map(|nth| highest(2 + nth * 60) > VIBRATION_MAX).collect();
        let mut turns = shakes.clone();
        turns.dedup();
        assert!(turns.starts_with(&[true, false, true]), "{shakes:?}");
    }

    #[test]
    fn a_server_that_listens_everywhere_is_reached_on_this_machine() {
        for (listen, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), reached);
        }
    }
}
