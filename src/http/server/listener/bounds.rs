//! The bounds of the listener: what connections may make the process hold before a handler counts it, and for how long.
//!
//! A connection alone may hold [`CROWDED_BYTES_MAX`]; the first [`ROOMY_CONNECTIONS_MAX`] have room for faster bodies and
//! for HTTP/2. All together they stay within [`CONNECTIONS_BYTES_MAX`], which limits how many may be open.

use std::time::Duration;

use crate::config::ServerConfig;
use crate::open_files;

/// A request line and its headers. Longer ones are 431, or 414 where the request line alone is longer.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1_024;

/// What is read ahead of a connection, and what is written ahead of its client, each.
pub(super) const CROWDED_BUFFER_BYTES_MAX: usize = HEAD_BYTES_MAX;

/// The same of one of the first connections.
pub(super) const ROOMY_BUFFER_BYTES_MAX: usize = 64 * 1_024;

/// Connections with larger buffers and HTTP/2. A client that comes later gets HTTP/1.1, which all of them speak.
pub(super) const ROOMY_CONNECTIONS_MAX: usize = 512;

/// Requests that one HTTP/2 connection may have open.
pub(super) const STREAMS_PER_CONNECTION_MAX: u32 = 100;

/// Requests that run for all HTTP/2 connections together. Those beyond are 503.
pub(super) const STREAMS_MAX: usize = 8_192;

/// What one HTTP/2 request may send of its body before a handler reads it.
pub(super) const STREAM_WINDOW_BYTES: u32 = 128 * 1_024;

/// The same of all requests of an HTTP/2 connection.
pub(super) const CONNECTION_WINDOW_BYTES: u32 = 256 * 1_024;

/// What waits of one HTTP/2 answer for its client, beside the piece that goes in next.
pub(super) const STREAM_SEND_BYTES_MAX: usize = 32 * 1_024;

/// Streams that an HTTP/2 client may open and reset at once before its connection ends.
pub(super) const PENDING_RESETS_MAX: usize = 20;

/// Streams of an HTTP/2 connection that may end by a fault of the client before its connection ends.
pub(super) const FAULTY_STREAMS_MAX: usize = 200;

/// Encrypted bytes that wait for the client of a TLS connection.
pub(super) const TLS_BUFFER_BYTES_MAX: usize = 32 * 1_024;

/// An answer goes to the HTTP library in pieces of this size, so that it shows whether its client takes them.
pub(super) const PIECE_BYTES: usize = 64 * 1_024;

/// The same with HTTP/2, where many answers of one connection wait at a time.
pub(super) const STREAM_PIECE_BYTES: usize = 16 * 1_024;

/// What is read and thrown away of a body that nobody asked for, so that its connection can be used again.
pub(super) const DRAIN_BYTES_MAX: usize = 256 * 1_024;

/// A client that was told that the connection ends has this long to end it, and to send what it was about to send.
pub(super) const LINGER: Duration = Duration::from_secs(5);

/// What it may send meanwhile: about the largest body there is.
pub(super) const LINGER_BYTES_MAX: usize = 16 << 20;

/// The same time while the server stops.
pub(super) const STOP_LINGER: Duration = Duration::from_secs(1);

/// A body of which nothing comes for so long is given up when the server stops.
pub(super) const STOP_BODY_PATIENCE: Duration = Duration::from_secs(1);

/// What one connection may hold in a crowd.
const CROWDED_BYTES_MAX: usize = 2 * CROWDED_BUFFER_BYTES_MAX;

/// What one of the first connections may hold, the heads of its running requests not counted.
const ROOMY_BYTES_MAX: usize = CONNECTION_WINDOW_BYTES as usize + ROOMY_BUFFER_BYTES_MAX;

/// What all connections may hold.
const CONNECTIONS_BYTES_MAX: usize = 1 << 30;

/// Connections for whose buffers there is room.
const CONNECTIONS_MAX: usize =
    (CONNECTIONS_BYTES_MAX - ROOMY_CONNECTIONS_MAX * ROOMY_BYTES_MAX - STREAMS_MAX * HEAD_BYTES_MAX)
        / CROWDED_BYTES_MAX;

/// The limits of a server, from its configuration and from what the operating system allows.
#[derive(Clone, Debug)]
pub(in crate::http) struct Limits {
    /// Threads that serve.
    pub workers: usize,
    /// Open connections.
    pub connections_max: usize,
    /// Time for a request's head to arrive.
    pub head_timeout: Duration,
    /// Time that a connection may be idle; `None`: it ends with its first answer.
    pub keep_alive: Option<Duration>,
    /// Time in which a client has to take something of its answer.
    pub quiet_max: Duration,
    /// Time for requests in flight when the server stops.
    pub shutdown_timeout: Duration,
}

impl Limits {
    /// Those of the whole server.
    pub fn of(config: &ServerConfig, workers: usize) -> Self {
        let allowed = open_files::connections_allowed().min(CONNECTIONS_MAX);
        Self {
            workers,
            connections_max: config.connections_max.min(allowed),
            head_timeout: config.head_timeout,
            keep_alive: Some(config.keep_alive),
            // A client may pause as long as it may be idle, send a head and take an answer, all three together.
            quiet_max: config.keep_alive + config.head_timeout + config.write_timeout,
            shutdown_timeout: config.shutdown_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_default_number_of_connections_fits_into_their_memory() {
        let configured = Config::default().server.connections_max;
        assert!(configured <= CONNECTIONS_MAX, "{CONNECTIONS_MAX}");
    }

    #[test]
    fn more_connections_than_there_is_memory_for_are_not_allowed() {
        let mut config = Config::default().server;
        config.connections_max = 1_000_000;
        assert!(Limits::of(&config, 1).connections_max <= CONNECTIONS_MAX);
        config.connections_max = 1;
        assert_eq!(Limits::of(&config, 1).connections_max, 1);
    }
}
