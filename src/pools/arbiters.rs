//! Threads with event loops, on which actors and tasks run.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Arbiter, ArbiterHandle};
use tokio::runtime::Builder;

/// Threads with event loops. They end when this is dropped.
pub struct Arbiters {
    arbiters: Vec<Arbiter>,
    next: AtomicUsize,
}

impl Arbiters {
    /// Starts the threads, at least one. Must be called within an actix system.
    ///
    /// # Errors
    /// A thread or its event loop cannot be made.
    pub fn start(threads: usize) -> io::Result<Self> {
        let start = |_| Arbiter::try_with_tokio_rt(|| Builder::new_current_thread().enable_all().build());
        Ok(Arbiters {
            arbiters: (0..threads.max(1)).map(start).collect::<io::Result<_>>()?,
            next: AtomicUsize::new(0),
        })
    }

    /// One of the threads, in turn.
    pub fn next(&self) -> ArbiterHandle {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.arbiters[turn % self.arbiters.len()].handle()
    }
}

impl Drop for Arbiters {
    fn drop(&mut self) {
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
    }
}
