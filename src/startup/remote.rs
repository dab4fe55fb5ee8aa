//! Starts and stops the publishing of checkpoints, as configured by `storage.remote`.

use std::sync::Arc;
use std::time::Duration;

use disk::StdDisk;

use super::StartupError;
use crate::checkpoint::{Layout, Publish};
use crate::clock::Clock;
use crate::config::Config;
use crate::remote::{Epochs, PublisherOptions, Publishing, THE_SHARD};

/// How long a stop waits for the last checkpoint to be published. If it is not, the data directory has it, and the next
/// start publishes it.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The handle of the thread that publishes, and what gives it the checkpoints.
type Started = (Publishing, Box<dyn Publish>);

/// Starts publishing, if there is a URL. The object store need not be reachable.
///
/// # Errors
/// The URL is invalid, or the operating system cannot start a thread.
pub(super) fn start(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<Started>, StartupError> {
    let Some(url) = &config.storage.remote else {
        return Ok(None);
    };
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let store = objects::open(url, environment).map_err(|error| StartupError::Remote(error.into()))?;
    let options = PublisherOptions {
        store,
        disk: Arc::new(StdDisk),
        layout: Layout::of(&config.storage.data_dir),
        clock: Arc::clone(clock),
        shard: THE_SHARD,
        epochs: Epochs::Taken,
        taken_over: None,
    };
    let started = Publishing::start(options, config.storage.remote_period);
    started
        .map(Some)
        .map_err(|error| StartupError::Remote(error.into()))
}

/// Waits for the last checkpoint to be published, for a bounded time.
pub(super) async fn stop(publishing: Publishing) {
    let stopped = tokio::task::spawn_blocking(move || publishing.stop(STOP_WITHIN)).await;
    if !stopped.is_ok_and(|all| all) {
        tracing::warn!("the last checkpoint is not published yet: the next start does that");
    }
}
