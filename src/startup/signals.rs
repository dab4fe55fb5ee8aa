//! The signals that ask a process to stop, or to read its certificate again.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, heard instead of ending the process.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The operating system gives no signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first of them and names it.
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

/// SIGHUP, heard instead of ending the process.
pub(super) struct ReloadSignals(Signal);

impl ReloadSignals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The operating system gives no signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Waits for the next one.
    pub async fn received(&mut self) {
        self.0.recv().await;
    }
}
