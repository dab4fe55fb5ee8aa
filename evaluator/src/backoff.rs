//! How long to wait before a retry. Pure: the random number is an argument.

use std::time::Duration;

/// Upper limit for `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// Exponential backoff with an upper limit.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Maximum delay after the first failure.
    pub first: Duration,
    /// Maximum delay after any failure.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            max: Duration::from_secs(30),
        }
    }
}

impl Backoff {
    /// The delay after the `failures`-th consecutive failure, counted from 1. Its upper half is jitter, so that
    /// evaluators that failed together do not retry together: `random` is uniform from 0 to 1. A `Retry-After` of the
    /// service replaces the lower half.
    pub fn delay(&self, failures: u32, retry_after: Option<Duration>, random: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let half = self.first.saturating_mul(1 << doublings).min(self.max) / 2;
        let lower = retry_after.map_or(half, |requested| requested.min(RETRY_AFTER_MAX));
        lower + half.mul_f64(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff {
        first: Duration::from_millis(500),
        max: Duration::from_secs(30),
    };

    #[test]
    fn waits_double_up_to_the_cap() {
        let longest: Vec<u128> = (1..=9)
            .map(|failures| BACKOFF.delay(failures, None, 1.0).as_millis())
            .collect();
        assert_eq!(
            longest,
            [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]
        );
        assert_eq!(BACKOFF.delay(u32::MAX, None, 1.0), BACKOFF.max);
    }

    #[test]
    fn jitter_moves_the_upper_half_only() {
        for failures in 1..10 {
            let longest = BACKOFF.delay(failures, None, 1.0);
            assert_eq!(BACKOFF.delay(failures, None, 0.0), longest / 2, "{failures}");
            let middle = BACKOFF.delay(failures, None, 0.5);
            assert!(longest / 2 < middle && middle < longest, "{failures}: {middle:?}");
        }
    }

    #[test]
    fn retry_after_is_a_lower_bound_and_itself_bounded() {
        for (failures, random) in [(1, 0.0), (1, 1.0), (9, 0.0), (9, 1.0)] {
            let asked = Duration::from_secs(7);
            let wait = BACKOFF.delay(failures, Some(asked), random);
            assert!(asked <= wait && wait <= asked + BACKOFF.max, "{wait:?}");
            let endless = Some(Duration::from_secs(1 << 40));
            assert!(BACKOFF.delay(failures, endless, random) <= RETRY_AFTER_MAX + BACKOFF.max);
        }
    }
}
