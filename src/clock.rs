//! The source of time. Rooms take a `Clock`, so that tests control the time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds per millisecond.
pub const MILLISECOND_NS: i64 = 1_000_000;
/// Nanoseconds per second.
pub const SECOND_NS: i64 = 1_000 * MILLISECOND_NS;
/// Nanoseconds per minute.
pub const MINUTE_NS: i64 = 60 * SECOND_NS;
/// Nanoseconds per hour.
pub const HOUR_NS: i64 = 3_600 * SECOND_NS;
/// Nanoseconds per day.
pub const DAY_NS: i64 = 86_400 * SECOND_NS;

/// A wall clock and a monotonic clock.
pub trait Clock: Send + Sync {
    /// UTC nanoseconds since the epoch.
    fn now_ns(&self) -> i64;

    /// Nanoseconds since an arbitrary moment. Never decreases, and is not affected by setting the clock.
    fn monotonic_ns(&self) -> i64;
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
        }
    }

    /// Goes on while the machine is suspended: others' leases and claims do so, too.
    fn monotonic_ns(&self) -> i64 {
        let now = clock_gettime(ClockId::Boottime);
        now.tv_sec.saturating_mul(SECOND_NS).saturating_add(now.tv_nsec)
    }
}

/// A clock that changes only on request.
#[derive(Debug)]
pub struct ManualClock {
    now_ns: AtomicI64,
    monotonic_ns: AtomicI64,
}

impl ManualClock {
    /// Creates a clock that shows `now_ns`.
    pub const fn new(now_ns: i64) -> Self {
        Self {
            now_ns: AtomicI64::new(now_ns),
            monotonic_ns: AtomicI64::new(0),
        }
    }

    /// Advances both clocks.
    pub fn advance(&self, by_ns: i64) {
        self.step(by_ns);
        self.monotonic_ns.fetch_add(by_ns, Ordering::Relaxed);
    }

    /// Sets the wall clock forward, or back if `by_ns` is negative, without advancing the monotonic clock.
    pub fn step(&self, by_ns: i64) {
        self.now_ns.fetch_add(by_ns, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> i64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn monotonic_ns(&self) -> i64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }
}
