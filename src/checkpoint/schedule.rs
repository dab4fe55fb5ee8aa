//! Decides when the next checkpoint runs: soon after a request, with exponential backoff after failures, otherwise
//! hourly.

use std::time::{Duration, Instant};

/// Expired rows and idempotency keys are processed at least this often.
const IDLE_PERIOD: Duration = Duration::from_secs(3_600);
/// Delay after the first failure. It doubles with each further one.
const RETRY_PERIOD_MIN: Duration = Duration::from_secs(2);
/// Longest delay, within which a repaired disk is noticed.
const RETRY_PERIOD_MAX: Duration = Duration::from_secs(60);

/// The state of the schedule. Time is an argument of each call.
pub(super) struct Schedule {
    due: Instant,
    /// The time between checkpoints that nobody requests.
    period: Duration,
    /// The delay after the last failure; `None` after a success.
    retry_period: Option<Duration>,
}

impl Schedule {
    /// A schedule without requests or failures, with a checkpoint at least hourly, or after `period` if that is less.
    pub(super) fn new(now: Instant, period: Option<Duration>) -> Self {
        let period = period.map_or(IDLE_PERIOD, |period| period.min(IDLE_PERIOD));
        Schedule {
            due: now + period,
            period,
            retry_period: None,
        }
    }

    /// When the next checkpoint is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// A checkpoint is requested. After a failure, requests do not shorten the delay.
    pub(super) fn ordered(&mut self, now: Instant) {
        if self.retry_period.is_none() {
            self.due = now;
        }
    }

    /// A checkpoint succeeded.
    pub(super) fn succeeded(&mut self, now: Instant) {
        *self = Schedule::new(now, Some(self.period));
    }

    /// A checkpoint failed.
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
    fn an_order_is_due_at_once_and_idle_checkpoints_hourly() {
        let began = Instant::now();
        let mut schedule = Schedule::new(began, None);
        assert_eq!(schedule.due(), began + IDLE_PERIOD);
        let now = began + Duration::from_secs(5);
        schedule.ordered(now);
        assert_eq!(schedule.due(), now);
        schedule.succeeded(now);
        assert_eq!(schedule.due(), now + IDLE_PERIOD);
    }

    #[test]
    fn a_shorter_period_holds_after_each_success() {
        let mut now = Instant::now();
        let period = Duration::from_secs(300);
        let mut schedule = Schedule::new(now, Some(period));
        for _ in 0..3 {
            assert_eq!(schedule.due(), now + period);
            now += period;
            schedule.succeeded(now);
        }
        assert_eq!(Schedule::new(now, Some(IDLE_PERIOD * 2)).due(), now + IDLE_PERIOD);
    }

    #[test]
    fn failures_back_off_regardless_of_orders() {
        let mut now = Instant::now();
        let mut schedule = Schedule::new(now, None);
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
    fn orders_during_five_seconds_cause_two_failed_attempts() {
        let began = Instant::now();
        let mut schedule = Schedule::new(began, None);
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
