//! The reference evaluator: `tidewatch evaluate` polls the service for rules that are due, reads their windows, judges
//! them and posts one verdict for each.
//!
//! It is a client like any other: it speaks HTTP with an integration key, and shares with the server nothing but words
//! for ids and moments. It keeps no state: what it was about when it died becomes due again when its claim ends.
//! Called by the command line and the demo, which also speaks through its [`Client`].

mod calls;
mod client;
mod judge;
mod pace;
mod rounds;
mod rule;
mod stop;
#[cfg(test)]
mod tests;
mod window;

use std::fmt;
use std::time::Duration;

pub use client::{Client, Credential, NoReply, Reply, Request};
pub use pace::Pace;
pub use stop::{Stop, Stopper};

use calls::Calls;
use rounds::Rounds;

/// How an evaluator works.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Most rules asked for in one poll.
    pub limit: usize,
    /// How long a listed rule is kept from other evaluators; as long as this one tries.
    pub claim: Duration,
    /// Time between polls while nothing more is due.
    pub poll: Duration,
    /// Rules judged at once.
    pub concurrency: usize,
    /// Ends when nothing more is due.
    pub once: bool,
    /// Waits between attempts.
    pub pace: Pace,
}

/// Why an evaluator ends other than by being told to.
#[derive(Debug)]
pub enum EvaluatorError {
    /// The address or the key cannot be used.
    Service(String),
    /// The service refuses the key.
    Refused(String),
    /// A poll got no list.
    Poll(String),
}

impl fmt::Display for EvaluatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(fault) => f.write_str(fault),
            Self::Refused(message) => write!(
                f,
                "the service refuses the key ({message}); an evaluator needs an integration key, svc_i_…"
            ),
            Self::Poll(cause) => write!(
                f,
                "the service does not list what is due ({cause}); is --url right?"
            ),
        }
    }
}

impl std::error::Error for EvaluatorError {}

/// Evaluates for the service at `url` until told to stop, then finishes what is in work.
///
/// # Errors
/// The address or the key cannot be used or is refused, or a poll is not answered by a list.
pub async fn run(url: &str, key: &str, options: Options, stop: Stop) -> Result<(), EvaluatorError> {
    let client = Client::new(url, Credential::Key(key)).map_err(EvaluatorError::Service)?;
    tracing::info!(url, ?options, "evaluating");
    let calls = Calls::new(client, options.pace, stop.clone());
    Rounds::new(calls, options, stop).run().await?;
    tracing::info!("stopped");
    Ok(())
}
