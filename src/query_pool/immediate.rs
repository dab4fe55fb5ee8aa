//! Decides whether a query may run on the thread of its request. Such a query is small and all of it is on this machine,
//! but its time is an estimate, and a page of a file may have to be read from the disk. So a turn that takes too long is
//! followed by a pause, in which all queries are queued.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::turn::IMMEDIATE_TURN_MAX;

/// The length of a pause, in lengths of the turn before it: such turns take at most a fiftieth of the time.
const PAUSE_FACTOR: u32 = 50;

/// The pause that is going on, if any.
pub(super) struct Immediate {
    began: Instant,
    /// The end of the last pause, in microseconds since `began`.
    paused_until_us: AtomicU64,
}

impl Immediate {
    pub(super) fn new(began: Instant) -> Self {
        Immediate {
            began,
            paused_until_us: AtomicU64::new(0),
        }
    }

    /// Whether a query may run now.
    pub(super) fn may_run(&self, now: Instant) -> bool {
        self.since_began_us(now) >= self.paused_until_us.load(Relaxed)
    }

    /// Notes that a turn took this long and has ended now.
    pub(super) fn ran(&self, took: Duration, now: Instant) {
        if took > IMMEDIATE_TURN_MAX {
            let until = self.since_began_us(now + took * PAUSE_FACTOR);
            self.paused_until_us.fetch_max(until, Relaxed);
        }
    }

    fn since_began_us(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_micros() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_takes_too_long_is_followed_by_a_pause_in_proportion() {
        let began = Instant::now();
        let immediate = Immediate::new(began);
        let at = |ms| began + Duration::from_millis(ms);
        assert!(immediate.may_run(began));
        immediate.ran(IMMEDIATE_TURN_MAX, at(10));
        assert!(immediate.may_run(at(10)), "in time");
        immediate.ran(Duration::from_millis(20), at(100));
        assert!(!immediate.may_run(at(100)));
        immediate.ran(Duration::from_millis(6), at(110));
        assert!(
            !immediate.may_run(at(1_099)),
            "a shorter pause does not end a longer one"
        );
        assert!(immediate.may_run(at(1_100)));
    }
}
