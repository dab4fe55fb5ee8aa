//! The clock for physical deletion. Readers hide expired rows immediately, by the wall clock. A clock that is wrong for
//! a moment must not destroy data, so bytes are removed only if they had expired at two checkpoints at least one hour
//! of monotonic time apart, and never while the wall clock disagrees with the log.

use std::collections::VecDeque;

use crate::clock::{DAY_NS, MINUTE_NS};

/// Data is removed only if it had already expired at a checkpoint at least this much monotonic time ago.
pub(super) const CONFIRMED_AFTER_NS: i64 = 60 * MINUTE_NS;
/// Minimum distance between stored readings, so that one hour of them is a bounded number.
const READING_PERIOD_NS: i64 = MINUTE_NS;
/// Largest accepted difference between the clock and the newest record of the log.
const DISAGREEMENT_MAX_NS: i64 = DAY_NS;

/// The clocks at one checkpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// UTC nanoseconds.
    pub(super) now_ns: i64,
    /// Monotonic nanoseconds.
    pub(super) monotonic_ns: i64,
}

/// The clock readings at the checkpoints of the last hour.
#[derive(Debug, Default)]
pub(super) struct DeletionClock {
    /// Oldest first. The first one is the newest reading that is at least an hour old, if there is one.
    readings: VecDeque<Reading>,
}

impl DeletionClock {
    /// Adds the reading of a checkpoint. Returns the deletion time: data that had expired by then, under the present
    /// retention, may be removed. Returns `None` when nothing may be removed. `newest_record_ns` is the time of the
    /// newest ingest.
    pub(super) fn read(&mut self, now: Reading, newest_record_ns: Option<i64>) -> Option<i64> {
        let confirmed = |reading: &Reading| now.monotonic_ns - reading.monotonic_ns >= CONFIRMED_AFTER_NS;
        while self.readings.get(1).is_some_and(confirmed) {
            self.readings.pop_front();
        }
        let before = self.readings.front().copied().filter(confirmed);
        let last = self.readings.back();
        if last.is_none_or(|last| now.monotonic_ns - last.monotonic_ns >= READING_PERIOD_NS) {
            self.readings.push_back(now);
        }
        let disagrees = |record_ns: i64| now.now_ns.abs_diff(record_ns) > DISAGREEMENT_MAX_NS as u64;
        if newest_record_ns.is_some_and(disagrees) {
            return None;
        }
        Some(before?.now_ns.min(now.now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = CONFIRMED_AFTER_NS;
    const NOON: i64 = 1_700_000_000_000_000_000;

    fn at(now_ns: i64, monotonic_ns: i64) -> Reading {
        Reading { now_ns, monotonic_ns }
    }

    #[test]
    fn rows_that_expired_an_hour_ago_may_be_deleted() {
        let mut clock = DeletionClock::default();
        assert_eq!(clock.read(at(NOON, 0), None), None, "nothing is confirmed yet");
        assert_eq!(clock.read(at(NOON + HOUR - 1, HOUR - 1), None), None);
        assert_eq!(clock.read(at(NOON + HOUR, HOUR), None), Some(NOON));
        assert_eq!(
            clock.read(at(NOON + 3 * HOUR, 3 * HOUR), None),
            Some(NOON + HOUR - 1),
            "the newest reading that is an hour old counts"
        );
    }

    #[test]
    fn a_clock_that_is_wrong_for_one_checkpoint_deletes_nothing_early() {
        let wrong = 400 * DAY_NS;
        for wrong_now in [false, true] {
            let mut clock = DeletionClock::default();
            let (before, now) = if wrong_now { (0, wrong) } else { (wrong, 0) };
            assert_eq!(clock.read(at(NOON + before, 0), None), None);
            assert_eq!(
                clock
                    .read(at(NOON + HOUR + now, HOUR), None)
                    .map(|it| it <= NOON + HOUR),
                Some(true)
            );
        }
    }

    #[test]
    fn a_clock_that_disagrees_with_the_log_deletes_nothing() {
        for (off, deletes) in [
            (0, true),
            (DAY_NS, true),
            (DAY_NS + 1, false),
            (-DAY_NS - 1, false),
        ] {
            let mut clock = DeletionClock::default();
            clock.read(at(NOON, 0), None);
            let allowed = clock.read(at(NOON + HOUR, HOUR), Some(NOON + HOUR - off));
            assert_eq!(allowed.is_some(), deletes, "off by {off}");
        }
    }

    #[test]
    fn the_number_of_readings_is_bounded() {
        let mut clock = DeletionClock::default();
        for millisecond in 0..20_000_000 {
            let ns = millisecond * 1_000_000;
            clock.read(at(NOON + ns, ns), None);
        }
        assert!(
            clock.readings.len() as i64 <= HOUR / READING_PERIOD_NS + 2,
            "{}",
            clock.readings.len()
        );
    }
}
