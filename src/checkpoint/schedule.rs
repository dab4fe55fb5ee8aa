//! When the next checkpoint is tried: soon when one is ordered, later and later while they fail, else once an hour.

use std::time::{Duration, Instant};

/// Retention and forgotten idempotency keys are looked after at least this often.
const IDLE_PERIOD: Duration = Duration::from_secs(3_600);
/// After a failure the disk gets this long before the next try, after each further one twice as long as before.
const RETRY_PERIOD_MIN: Duration = Duration::from_secs(2);
/// A disk that works again is found out about within this time.
const RETRY_PERIOD_MAX: Duration = Duration::from_secs(60);

/// Decides it; told what happens, with the time.
pub(super) struct Schedule {
    due: Instant,
    /// The wait behind the last failure; `None` after a success.
    retry_period: Option<Duration>,
}

impl Schedule {
    /// Nothing was ordered and nothing has failed.
    pub(super) fn new(now: Instant) -> Self {
        Schedule {
            due: now + IDLE_PERIOD,
            retry_period: None,
        }
    }

    /// When the next one is due; orders come before.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Somebody wants one. While they fail, that does not hasten the next try.
    pub(super) fn ordered(&mut self, now: Instant) {
        if self.retry_period.is_none() {
            self.due = now;
        }
    }

    /// One is done.
    pub(super) fn succeeded(&mut self, now: Instant) {
        *self = Schedule::new(now);
    }

    /// One failed.
    pub(super) fn failed(&mut self, now: Instant) {
        let period = self
            .retry_period
            .map_or(RETRY_PERIOD_MIN, |last| (last * 2).min(RETRY_PERIOD_MAX));
        self.retry_period = Some(period);
        self.due = now + period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_due_at_once_and_nothing_else_within_the_hour() {
        let began = Instant::now();
        let mut schedule = Schedule::new(began);
        assert_eq!(schedule.due(), began + IDLE_PERIOD);
        let now = began + Duration::from_secs(5);
        schedule.ordered(now);
        assert_eq!(schedule.due(), now);
        schedule.succeeded(now);
        assert_eq!(schedule.due(), now + IDLE_PERIOD);
    }

    #[test]
    fn failures_are_tried_again_later_and_later_whoever_orders() {
        let mut now = Instant::now();
        let mut schedule = Schedule::new(now);
        schedule.ordered(now);
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            schedule.failed(now);
            let due = now + Duration::from_secs(seconds);
            schedule.ordered(now);
            schedule.ordered(now + Duration::from_millis(1));
            assert_eq!(schedule.due(), due);
            now = due;
        }
        schedule.succeeded(now);
        schedule.failed(now);
        assert_eq!(
            schedule.due(),
            now + RETRY_PERIOD_MIN,
            "a success makes good for the failures before it"
        );
    }

    #[test]
    fn five_seconds_of_orders_see_two_failed_tries() {
        let began = Instant::now();
        let mut schedule = Schedule::new(began);
        let mut tries = 0;
        for millisecond in 0..5_000 {
            let now = began + Duration::from_millis(millisecond);
            schedule.ordered(now);
            if schedule.due() <= now {
                tries += 1;
                schedule.failed(now);
            }
        }
        assert_eq!(tries, 2, "at 0 s and 2 s; the next is due at 6 s");
    }
}
