//! Limits of the listener: how much memory connections may use before a handler accounts for it, and for how long.
//!
//! A connection may hold [`CROWDED_BYTES_MAX`]. The first [`ROOMY_CONNECTIONS_MAX`] have larger buffers for faster
//! bodies and HTTP/2. All connections together stay within [`CONNECTIONS_BYTES_MAX`], which limits how many may be
//! open.

use std::time::Duration;

/// Request line and headers. A longer head is answered with 431, or with 414 when the request line alone is too long.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1_024;

/// The read buffer and the write buffer of a connection, each.
pub(crate) const CROWDED_BUFFER_BYTES_MAX: usize = HEAD_BYTES_MAX;

/// The same for one of the first connections.
pub(crate) const ROOMY_BUFFER_BYTES_MAX: usize = 64 * 1_024;

/// Connections with larger buffers and HTTP/2. Later clients get HTTP/1.1, which all clients support.
pub(crate) const ROOMY_CONNECTIONS_MAX: usize = 512;

/// Open requests of one HTTP/2 connection.
pub(crate) const STREAMS_PER_CONNECTION_MAX: u32 = 100;

/// Open requests of all HTTP/2 connections together, until their answers are taken. Further ones are answered with 503.
pub(crate) const STREAMS_MAX: usize = 4_096;

/// Body bytes that one HTTP/2 request may send before a handler reads them.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 128 * 1_024;

/// The same for all requests of an HTTP/2 connection.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 256 * 1_024;

/// Unsent bytes of one HTTP/2 answer, not counting the piece that is added next.
pub(crate) const STREAM_SEND_BYTES_MAX: usize = 16 * 1_024;

/// Streams that an HTTP/2 client may open and reset at once before its connection is closed.
pub(crate) const PENDING_RESETS_MAX: usize = 20;

/// Streams of an HTTP/2 connection that may end by a client error before the connection is closed.
pub(crate) const FAULTY_STREAMS_MAX: usize = 200;

/// Encrypted bytes that are not sent yet on a TLS connection.
pub(crate) const TLS_BUFFER_BYTES_MAX: usize = 32 * 1_024;

/// Head and body of an answer up to this size are joined before they are written: copying so little is
/// cheaper than a write of two parts.
pub(crate) const JOINED_BYTES_MAX: usize = 1_024;

/// Answers are passed to the HTTP library in pieces of this size, so that progress of the client is visible.
pub(crate) const PIECE_BYTES: usize = 64 * 1_024;

/// The same for HTTP/2, where one connection may have many unsent answers.
pub(crate) const STREAM_PIECE_BYTES: usize = 16 * 1_024;

/// Bytes of an unread body that are read and discarded so that the connection can be reused. Of a longer stated length,
/// nothing is read.
pub(crate) const DRAIN_BYTES_MAX: u64 = 256 * 1_024;

/// After the connection's end was announced, the client has this long to close it and to send what it was about to
/// send.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

/// Bytes that the client may send in that time: about the largest body that is allowed.
pub(crate) const LINGER_BYTES_MAX: usize = 16 << 20;

/// The same time while the server stops.
pub(crate) const STOP_LINGER: Duration = Duration::from_secs(1);

/// While the server stops, a body that makes no progress for this long is abandoned.
pub(crate) const STOP_BODY_PATIENCE: Duration = Duration::from_secs(1);

/// Memory of one connection with small buffers.
const CROWDED_BYTES_MAX: usize = 2 * CROWDED_BUFFER_BYTES_MAX;

/// Memory of an open HTTP/2 request: its head, and of its answer what the library has and the piece that is added next. The
/// rest of an answer counts where it is made.
const STREAM_BYTES_MAX: usize = HEAD_BYTES_MAX + STREAM_SEND_BYTES_MAX + STREAM_PIECE_BYTES;

/// Memory of one of the first connections, without its open requests.
const ROOMY_BYTES_MAX: usize = CONNECTION_WINDOW_BYTES as usize + ROOMY_BUFFER_BYTES_MAX;

/// Memory of all connections.
const CONNECTIONS_BYTES_MAX: usize = 1 << 30;

/// The number of connections whose buffers fit into 1 GiB.
pub const CONNECTIONS_MAX: usize =
    (CONNECTIONS_BYTES_MAX - ROOMY_CONNECTIONS_MAX * ROOMY_BYTES_MAX - STREAMS_MAX * STREAM_BYTES_MAX)
        / CROWDED_BYTES_MAX;

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Worker threads.
    pub workers: usize,
    /// Open connections; at most [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// Time for a request's head to arrive.
    pub head_timeout: Duration,
    /// How long a connection may be idle. `None` closes it after its first answer.
    pub keep_alive: Option<Duration>,
    /// How long a client may go without taking any of its answer.
    pub quiet_max: Duration,
    /// The same for a download, if that is longer.
    pub download_quiet_max: Duration,
    /// How long requests in flight may take when the server stops.
    pub shutdown_timeout: Duration,
}
