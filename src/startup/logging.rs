//! Log messages on standard error.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogConfig, LogFormat};

/// Starts logging to standard error. A second call has no effect.
pub fn start_logging(config: &LogConfig) {
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr);
    let registry = tracing_subscriber::registry().with(config.filter.clone());
    let _ = match config.format {
        LogFormat::Text => registry.with(lines.with_ansi(stderr().is_terminal())).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
}
