//! The time of a worker, as exact as its connections need it: read a few times a second, not for each request.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How old the time may be.
pub(super) const TICK: Duration = Duration::from_millis(250);

/// The time since a worker began, as of the last tick.
pub(super) struct Ticks {
    began: Instant,
    now: Cell<Duration>,
}

impl Ticks {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            now: Cell::default(),
        }
    }

    /// Reads the clock.
    pub fn tick(&self) {
        self.now.set(self.began.elapsed());
    }

    /// The time of the last tick.
    pub fn now(&self) -> Duration {
        self.now.get()
    }

    /// The time that has passed at least since what happened at `then`, which was up to a tick later than it says.
    pub fn elapsed_since(&self, then: Duration) -> Duration {
        self.now.get().saturating_sub(then + TICK)
    }

    #[cfg(test)]
    pub fn set(&self, now: Duration) {
        self.now.set(now);
    }
}
