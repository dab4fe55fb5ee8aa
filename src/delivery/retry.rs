//! When a failed delivery is tried again. Pure.

use std::time::Duration;

use crate::catalog::RetryConfig;

/// The wait after this many attempts (at least one); `None` if no retries are left.
pub(super) fn backoff(retry: RetryConfig, attempts: u8) -> Option<Duration> {
    if attempts > retry.max_retries {
        return None;
    }
    let seconds = retry
        .backoff_multiplier
        .powi(i32::from(attempts.saturating_sub(1)));
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// The rest of a wait that an earlier process started. `due_ns` and `now_ns` are UTC nanoseconds of a clock that may
/// have been set since, so the result is capped at the backoff of this attempt.
pub(super) fn remaining(retry: RetryConfig, attempts: u8, due_ns: i64, now_ns: i64) -> Duration {
    let step = match attempts {
        0 => Duration::ZERO,
        _ => backoff(retry, attempts).unwrap_or_default(),
    };
    let left = u64::try_from(due_ns.saturating_sub(now_ns)).unwrap_or_default();
    Duration::from_nanos(left).min(step)
}

/// The time `wait` after `now_ns`, UTC nanoseconds.
pub(super) fn after(now_ns: i64, wait: Duration) -> i64 {
    now_ns.saturating_add(i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;

    fn config(max_retries: u8, backoff_multiplier: f64) -> RetryConfig {
        RetryConfig {
            max_retries,
            backoff_multiplier,
        }
    }

    #[test]
    fn delays_grow_by_the_multiplier_until_the_last_attempt() {
        let waits = |retry| (1..=12).map_while(move |attempts| backoff(retry, attempts));
        for (retry, seconds) in [
            (RetryConfig::default(), &[1.0, 2.0, 4.0][..]),
            (config(0, 2.0), &[]),
            (config(1, 10.0), &[1.0]),
            (config(4, 1.0), &[1.0, 1.0, 1.0, 1.0]),
            (config(3, 1.5), &[1.0, 1.5, 2.25]),
            (
                config(10, 10.0),
                &[1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9],
            ),
        ] {
            let waits: Vec<f64> = waits(retry).map(|wait| wait.as_secs_f64()).collect();
            assert_eq!(waits, seconds);
        }
    }

    #[test]
    fn a_clock_change_never_extends_a_delay_beyond_its_step() {
        let retry = RetryConfig::default();
        let now_ns = 1_000 * SECOND_NS;
        for (attempts, due_ns, seconds) in [
            (0, now_ns, 0.0),
            (0, i64::MAX, 0.0),
            (1, now_ns + SECOND_NS / 2, 0.5),
            (2, now_ns + SECOND_NS / 2, 0.5),
            (2, now_ns - SECOND_NS, 0.0),
            (2, i64::MIN, 0.0),
            // The clock was set back by an hour, or to its minimum.
            (2, now_ns + 3_600 * SECOND_NS, 2.0),
            (3, i64::MAX, 4.0),
            // Retries were disabled in the meantime: the pending attempt is made at once.
            (9, now_ns + SECOND_NS, 0.0),
        ] {
            let wait = remaining(retry, attempts, due_ns, now_ns);
            assert_eq!(wait.as_secs_f64(), seconds, "{attempts} {due_ns}");
        }
        assert_eq!(after(5, Duration::from_nanos(7)), 12);
        assert_eq!(after(5, Duration::MAX), i64::MAX);
    }
}
