//! The reference evaluator: `tidewatch evaluate` polls the server for due rules, reads their windows, evaluates them
//! and posts one verdict each.
//!
//! It is an ordinary HTTP client with an integration key and shares no code with the server. It keeps no state: if it
//! dies, the rules in progress become due again when their claims end. Called by the command line and the demo, which
//! also uses its [`Client`].

mod api;
mod backoff;
mod backtest;
mod client;
mod condition;
mod poller;
mod rule;
#[cfg(test)]
mod tests;
mod window;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use backoff::Backoff;
pub use backtest::{Backtest, backtest};
pub use client::{Client, Credential, NoReply, Reply};

use api::Api;
use poller::Poller;

/// Settings of an evaluator.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum rules requested per poll.
    pub limit: usize,
    /// How long a listed rule is hidden from other evaluators; also the deadline for evaluating it.
    pub claim: Duration,
    /// Time between polls if nothing more is due.
    pub poll: Duration,
    /// Maximum rules evaluated concurrently.
    pub concurrency: usize,
    /// Stop once nothing more is due.
    pub once: bool,
    /// Waits between retries.
    pub backoff: Backoff,
}

/// Why an evaluator ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum EvaluatorError {
    /// The address or the key is not valid.
    #[error("{0}")]
    Service(String),
    /// The service rejected the key.
    #[error("the service refuses the key ({0}); an evaluator needs an integration key, svc_i_…")]
    Refused(String),
    /// A poll failed.
    #[error("the service does not list what is due ({0}); is --url right?")]
    Poll(String),
    /// A backtest cannot be made, or did not reach its end.
    #[error("the backtest failed: {0}")]
    Backtest(String),
}

/// Evaluates rules of the service at `url` until `stop` is cancelled, then finishes those in progress.
///
/// # Errors
/// The address or the key is not valid, the key is rejected, or a poll fails.
pub async fn run(
    url: &str,
    key: &str,
    options: Options,
    stop: CancellationToken,
) -> Result<(), EvaluatorError> {
    let client = Client::new(url, Credential::Key(key)).map_err(EvaluatorError::Service)?;
    tracing::info!(url, ?options, "evaluating");
    let api = Api::new(client, options.backoff, stop.clone());
    Poller::new(api, options, stop).run().await?;
    tracing::info!("stopped");
    Ok(())
}
