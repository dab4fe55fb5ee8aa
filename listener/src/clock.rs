//! A worker's coarse clock: read a few times a second, not for each request.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often the clock is read, which is also how old the time may be.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// The time since the worker began, as of the last tick.
pub(crate) struct Ticks {
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

    /// Returns the time of the last tick.
    pub fn now(&self) -> Duration {
        self.now.get()
    }

    /// A lower bound of the time since an event noted at `then`: the event may have happened up to a tick later.
    pub fn elapsed_since(&self, then: Duration) -> Duration {
        self.now.get().saturating_sub(then + TICK)
    }

    #[cfg(test)]
    pub fn set(&self, now: Duration) {
        self.now.set(now);
    }
}
