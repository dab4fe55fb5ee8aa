//! How long to wait before a retry. Pure: the random number is an argument.

use std::time::Duration;

/// Upper limit for `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// Exponential backoff with an upper limit.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Maximum wait after the first failure.
    pub first: Duration,
    /// Maximum wait after any failure.
    pub longest: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}

impl Pace {
    /// The wait after the `failures`-th consecutive failure, counted from 1. Its upper half is random: `chance` is a
    /// uniform 64-bit number, so that evaluators that failed together do not retry together. A `Retry-After` of the
    /// service replaces the lower half.
    pub fn wait(&self, failures: u32, retry_after: Option<Duration>, chance: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = self.first.saturating_mul(1 << doublings).min(self.longest);
        let drawn = (whole / 2).mul_f64(chance as f64 / u64::MAX as f64);
        match retry_after {
            Some(asked) => asked.min(RETRY_AFTER_MAX) + drawn,
            None => whole / 2 + drawn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        first: Duration::from_millis(500),
        longest: Duration::from_secs(30),
    };

    #[test]
    fn waits_double_up_to_the_cap() {
        let longest: Vec<u128> = (1..=9)
            .map(|failures| PACE.wait(failures, None, u64::MAX).as_millis())
            .collect();
        assert_eq!(
            longest,
            [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]
        );
        assert_eq!(PACE.wait(u32::MAX, None, u64::MAX), PACE.longest);
    }

    #[test]
    fn chance_moves_the_upper_half_only() {
        for failures in 1..10 {
            let longest = PACE.wait(failures, None, u64::MAX);
            assert_eq!(PACE.wait(failures, None, 0), longest / 2, "{failures}");
            let middle = PACE.wait(failures, None, u64::MAX / 2);
            assert!(longest / 2 < middle && middle < longest, "{failures}: {middle:?}");
        }
    }

    #[test]
    fn what_the_service_asks_for_is_never_undercut_and_bounded() {
        for (failures, chance) in [(1, 0), (1, u64::MAX), (9, 0), (9, u64::MAX)] {
            let asked = Duration::from_secs(7);
            let wait = PACE.wait(failures, Some(asked), chance);
            assert!(asked <= wait && wait <= asked + PACE.longest, "{wait:?}");
            let endless = Some(Duration::from_secs(1 << 40));
            assert!(PACE.wait(failures, endless, chance) <= RETRY_AFTER_MAX + PACE.longest);
        }
    }
}
