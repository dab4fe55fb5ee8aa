//! The MQTT bridge behind `tidewatch bridge mqtt`: subscribes to a broker and writes its messages as points.
//!
//! A message is acknowledged to the broker only after the service has said that its point is durable. The session is
//! persistent, so whatever is not acknowledged comes again, and repetitions do no harm where messages have a timestamp:
//! sources that the service creates for the bridge skip duplicates.
//!
//! It is a client of the HTTP API and shares no code with the server. Called by the command line.

mod batch;
mod broker;
mod config;
mod counts;
mod line;
mod payload;
mod reader;
mod relay;
mod sessions;
mod store;
#[cfg(test)]
mod tests;
mod timestamp;
mod topic;

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use evaluator::Backoff;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use config::{Config, ConfigError};
pub use counts::Counted;

use counts::Counts;
use reader::Reader;
use relay::Relay;
use sessions::Sessions;
use store::Store;

/// How long a stop waits for the service. What is not stored by then stays with the broker.
const STOP_GRACE: Duration = Duration::from_secs(10);
const LOG_PERIOD: Duration = Duration::from_secs(60);

/// Why a bridge ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The configuration is not valid.
    #[error("{0}")]
    Config(String),
    /// The service refuses all writes.
    #[error(
        "the service refuses to store ({0}); are [api] url, key and bucket right? The key must be able to write"
    )]
    Refused(String),
    /// The broker refuses the connection.
    #[error(
        "the broker refuses the connection ({0}); are [broker] version, client_id, user and password right?"
    )]
    Broker(String),
    /// The broker refuses a subscription.
    #[error("the broker does not subscribe {filter}: {reason}")]
    Subscription { filter: String, reason: String },
    /// A stop did not wait any longer for the service.
    #[error("stopped before everything was stored; the broker delivers the rest again")]
    Stopped,
}

/// Bridges until `stop` is cancelled, then stores and acknowledges what has arrived. Returns what was counted.
///
/// # Errors
/// The configuration is not valid, broker or service refuse it, or a stop ran out of time.
pub async fn run(config: Config, stop: CancellationToken) -> Result<Counted, BridgeError> {
    let counts = Rc::new(Counts::default());
    let outcome = run_with(config, Backoff::default(), &counts, stop).await;
    counts.now().log();
    outcome.map(|()| counts.now())
}

async fn run_with(
    config: Config,
    backoff: Backoff,
    counts: &Rc<Counts>,
    stop: CancellationToken,
) -> Result<(), BridgeError> {
    let Config {
        api,
        broker,
        topics,
        batch,
        linger,
    } = config;
    tracing::info!(?api, ?broker, "bridging");
    let is_drained = CancellationToken::new();
    let give_up = CancellationToken::new();
    let (outlet, arriving) = mpsc::channel(usize::from(broker.in_flight));
    let relay = Relay {
        store: Store::new(&api, backoff)?,
        bounds: batch,
        linger,
        counts,
        give_up: give_up.clone(),
    };
    let reader = Reader::new(topics, Rc::clone(counts));
    let sessions = Sessions::new(broker, reader, backoff, stop.clone(), is_drained.clone());
    let mut receiving = pin!(sessions.run(outlet));
    let mut storing = pin!(relay.run(arriving));
    let mut ending = pin!(async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
        give_up.cancel();
    });
    let mut period = tokio::time::interval(LOG_PERIOD);
    let mut logged = Counted::default();
    let (mut has_received, mut has_stored, mut is_late) = (false, false, false);
    while !has_received || !has_stored {
        tokio::select! {
            result = &mut receiving, if !has_received => match result {
                Ok(()) => has_received = true,
                Err(error) => return Err(error),
            },
            result = &mut storing, if !has_stored => match result {
                Ok(()) => {
                    has_stored = true;
                    is_drained.cancel();
                }
                Err(error) => return Err(error),
            },
            () = &mut ending, if !is_late => is_late = true,
            _ = period.tick() => {
                if counts.now() != logged {
                    logged = counts.now();
                    logged.log();
                }
            }
        }
    }
    Ok(())
}
