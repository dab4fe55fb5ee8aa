//! Signals that ask the process to stop.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives SIGTERM and SIGINT, which then no longer end the process.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Starts to listen.
    ///
    /// # Errors
    /// The operating system cannot deliver signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first of them and returns its name.
    pub async fn received(mut self) -> &'static str {
        poll_fn(|context| {
            if self.terminate.poll_recv(context).is_ready() {
                return Poll::Ready("SIGTERM");
            }
            self.interrupt.poll_recv(context).map(|_| "SIGINT")
        })
        .await
    }
}
