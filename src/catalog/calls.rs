//! Calls of one organization, counted by calendar month.
//!
//! Like the last use of a key, the counts run ahead of the log: requests count with one atomic each, and about once a
//! second a command makes the totals of what changed durable. Replaying a total never lowers a count.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// A calendar month, named by its first day: days since 1970-01-01, UTC.
pub type MonthDay = u32;

/// Months remembered: this one and some around it, for a clock that is set back or was ahead.
const MONTHS: usize = 4;
/// A clock set back by up to this much finds the earliest month that was counted; further back, it had been wrong.
const SET_BACK_DAYS_MAX: u32 = 366;

/// A month in the upper bits, its calls in the lower ones, so that both change at once. 0 is a free place.
const CALLS_BITS: u32 = 40;
const CALLS_MAX: u64 = (1 << CALLS_BITS) - 1;

/// The calls of an organization. Written by requests, and by the catalog when totals are replayed.
#[derive(Debug, Default)]
pub struct CallCounts {
    months: [AtomicU64; MONTHS],
    /// Held to give a month its place, so that none has two.
    placing: Mutex<()>,
    unsaved: AtomicBool,
}

/// Where an organization stands in a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthCalls {
    /// The month that counts: the clock's, unless it was set back.
    pub month: MonthDay,
    /// Calls counted in it.
    pub calls: u64,
}

impl CallCounts {
    /// Counts a call of `month`, unless `calls_max` were counted in it before: then `Err`. Answers where the month
    /// stands.
    ///
    /// # Errors
    /// All calls of the month are used up.
    pub fn count(&self, month: MonthDay, calls_max: Option<u64>) -> Result<MonthCalls, MonthCalls> {
        let month = self.counted_month(month);
        let calls_max = calls_max.unwrap_or(u64::MAX);
        loop {
            let one_more = |found| {
                let found = unpacked(found);
                let calls = (found.calls + 1).min(CALLS_MAX);
                (found.month == month && found.calls < calls_max).then_some(MonthCalls { month, calls })
            };
            let place = self.place(month);
            match place.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |found| {
                one_more(found).map(packed)
            }) {
                Ok(before) => return one_more(before).ok_or_else(|| unpacked(before)),
                Err(found) if unpacked(found).month == month => return Err(unpacked(found)),
                // Another month took the place in this very moment.
                Err(_) => {}
            }
        }
    }

    /// Where a call of `month` would stand.
    pub fn standing(&self, month: MonthDay) -> MonthCalls {
        let month = self.counted_month(month);
        let calls = self
            .totals()
            .find(|it| it.month == month)
            .map_or(0, |it| it.calls);
        MonthCalls { month, calls }
    }

    /// Whether what was just counted is the first since [`CallCounts::save`]: it is to be told to whoever saves.
    pub fn is_first_unsaved(&self) -> bool {
        // The plain load first: all but one request a second write nothing here. Sequentially consistent with `save`:
        // either this sees that the totals were taken, or they were taken with this call in them.
        !self.unsaved.load(Ordering::SeqCst) && !self.unsaved.swap(true, Ordering::SeqCst)
    }

    /// The totals to be made durable; calls from now on are unsaved again.
    pub fn save(&self) -> impl Iterator<Item = MonthCalls> {
        self.unsaved.swap(false, Ordering::SeqCst);
        self.totals()
    }

    /// The counts of all months that have any, in no order.
    pub fn totals(&self) -> impl Iterator<Item = MonthCalls> {
        let packed = self.months.iter().map(|place| place.load(Ordering::SeqCst));
        packed.filter(|packed| *packed != 0).map(unpacked)
    }

    /// A total as it was made durable; never lowers a count.
    pub(super) fn restore(&self, total: MonthCalls) {
        let packed = packed(total);
        let raise = |found| (unpacked(found).month == total.month && found < packed).then_some(packed);
        // Fails where the count is there already.
        let _ = self
            .place(total.month)
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, raise);
    }

    /// The clock's month; but one before all that were counted is taken for the earliest of them: a clock that is set
    /// back over the end of a month finds no unused month there.
    fn counted_month(&self, month: MonthDay) -> MonthDay {
        match self.totals().map(|it| it.month).min() {
            Some(earliest) if earliest > month && earliest - month <= SET_BACK_DAYS_MAX => earliest,
            _ => month,
        }
    }

    fn place(&self, month: MonthDay) -> &AtomicU64 {
        let has_month = |place: &&AtomicU64| unpacked(place.load(Ordering::SeqCst)).month == month;
        if let Some(place) = self.months.iter().find(has_month) {
            return place;
        }
        let _placing = self.placing.lock();
        if let Some(place) = self.months.iter().find(has_month) {
            return place;
        }
        // A free place is at month 0; where there is none, the month goes that is furthest from this one.
        let distance = |place: &&AtomicU64| match place.load(Ordering::SeqCst) {
            0 => u32::MAX,
            packed => unpacked(packed).month.abs_diff(month),
        };
        let [first, others @ ..] = &self.months;
        let place = others.iter().fold(first, |most, place| {
            if distance(&place) > distance(&most) {
                place
            } else {
                most
            }
        });
        place.store(packed(MonthCalls { month, calls: 0 }), Ordering::SeqCst);
        place
    }
}

fn packed(it: MonthCalls) -> u64 {
    u64::from(it.month) << CALLS_BITS | it.calls.min(CALLS_MAX)
}

fn unpacked(packed: u64) -> MonthCalls {
    MonthCalls {
        month: (packed >> CALLS_BITS) as MonthDay,
        calls: packed & CALLS_MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const NOVEMBER: MonthDay = 20_758;
    const DECEMBER: MonthDay = NOVEMBER + 30;
    const OCTOBER: MonthDay = NOVEMBER - 31;
    const FAR: MonthDay = NOVEMBER + 4_000;

    fn counted(counts: &CallCounts, month: MonthDay) -> (MonthDay, u64) {
        let at = counts.count(month, None).unwrap();
        (at.month, at.calls)
    }

    #[test]
    fn each_month_has_its_own_count() {
        let counts = CallCounts::default();
        assert_eq!(
            counts.standing(NOVEMBER),
            MonthCalls {
                month: NOVEMBER,
                calls: 0
            }
        );
        assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 1));
        assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 2));
        assert_eq!(counted(&counts, DECEMBER), (DECEMBER, 1));
        assert_eq!(
            counts.standing(DECEMBER),
            MonthCalls {
                month: DECEMBER,
                calls: 1
            }
        );
    }

    #[test]
    fn what_is_refused_is_not_counted() {
        let counts = CallCounts::default();
        assert!(counts.count(NOVEMBER, Some(1)).is_ok());
        for _ in 0..3 {
            let full = MonthCalls {
                month: NOVEMBER,
                calls: 1,
            };
            assert_eq!(counts.count(NOVEMBER, Some(1)), Err(full));
        }
        assert!(
            counts.count(NOVEMBER, Some(2)).is_ok(),
            "a larger plan goes on from there"
        );
        assert!(
            counts.count(NOVEMBER, Some(1)).is_err(),
            "a smaller one is used up"
        );
    }

    #[test]
    fn a_clock_set_back_finds_the_months_as_they_were_and_no_unused_one() {
        let counts = CallCounts::default();
        counted(&counts, NOVEMBER);
        assert_eq!(
            counted(&counts, OCTOBER),
            (NOVEMBER, 2),
            "no call was made in october"
        );
        assert_eq!(counted(&counts, FAR), (FAR, 1), "the clock leaps ahead");
        assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 3), "and is put right");
        assert_eq!(
            counted(&counts, DECEMBER),
            (DECEMBER, 1),
            "the next month begins as ever"
        );
        assert_eq!(
            counted(&counts, NOVEMBER),
            (NOVEMBER, 4),
            "an hour back over its beginning"
        );
    }

    /// Made while the clock was years ahead: the organization does not wait years for its next month.
    #[test]
    fn a_clock_that_was_years_ahead_strands_nobody() {
        let counts = CallCounts::default();
        assert_eq!(counted(&counts, FAR), (FAR, 1));
        assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 1));
    }

    #[test]
    fn the_furthest_month_is_forgotten_first() {
        let counts = CallCounts::default();
        for month in [FAR, OCTOBER, NOVEMBER, DECEMBER, DECEMBER + 31] {
            counted(&counts, month);
        }
        let mut months: Vec<MonthDay> = counts.totals().map(|it| it.month).collect();
        months.sort_unstable();
        assert_eq!(months, [OCTOBER, NOVEMBER, DECEMBER, DECEMBER + 31]);
    }

    #[test]
    fn restoring_never_lowers() {
        let counts = CallCounts::default();
        counts.restore(MonthCalls {
            month: NOVEMBER,
            calls: 7,
        });
        counts.restore(MonthCalls {
            month: NOVEMBER,
            calls: 5,
        });
        assert_eq!(counted(&counts, NOVEMBER), (NOVEMBER, 8));
        counts.restore(MonthCalls {
            month: NOVEMBER,
            calls: u64::MAX,
        });
        assert_eq!(
            counts.count(NOVEMBER, None).unwrap().month,
            NOVEMBER,
            "a full counter stays in its month"
        );
    }

    #[test]
    fn the_first_call_after_saving_is_told_and_no_other() {
        let counts = CallCounts::default();
        let told = |month| {
            counted(&counts, month);
            counts.is_first_unsaved()
        };
        assert!(told(NOVEMBER));
        assert!(!told(NOVEMBER));
        assert_eq!(counts.save().map(|it| it.calls).sum::<u64>(), 2);
        assert!(told(NOVEMBER));
    }

    #[test]
    fn of_many_threads_exactly_the_plan_s_calls_pass() {
        let counts = CallCounts::default();
        let count = || {
            (0..1_000)
                .filter(|_| counts.count(NOVEMBER, Some(1_500)).is_ok())
                .count()
        };
        let passed: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 1_500);
    }
}
