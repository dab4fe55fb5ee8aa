//! When a call is tried again, and for how long it may take.

use std::time::Duration;

/// Attempts of one call. A store that fails this often in a row is left to the caller, who has more time.
const ATTEMPTS_MAX: u32 = 4;
/// Pause after the first failure. It doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Time of an attempt that moves no data.
const ATTEMPT_TIME: Duration = Duration::from_secs(20);
/// Rate below which a transfer counts as stuck, in bytes per second.
const RATE_MIN: u64 = 512 << 10;

/// The pause before the attempt after the `failed`-th; `None` if that was the last one.
pub(crate) fn pause_after(failed: u32) -> Option<Duration> {
    let doubled = PAUSE_MIN.saturating_mul(1 << failed.saturating_sub(1).min(16));
    (failed < ATTEMPTS_MAX).then(|| doubled.min(PAUSE_MAX))
}

/// How long an attempt that moves this many bytes may take.
pub(crate) fn time_for(bytes: u64) -> Duration {
    ATTEMPT_TIME + Duration::from_secs(bytes / RATE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let pauses: Vec<_> = (1..10).map_while(pause_after).collect();
        assert_eq!(pauses, [100, 200, 400].map(Duration::from_millis));
        assert!(pause_after(u32::MAX).is_none());
    }

    #[test]
    fn a_large_transfer_has_more_time() {
        assert_eq!(time_for(0), ATTEMPT_TIME);
        assert_eq!(time_for(1 << 30), ATTEMPT_TIME + Duration::from_secs(2_048));
    }
}
