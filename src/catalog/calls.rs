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

/// The totals of an organization at one moment, in order of the months; free places first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallTotals([u64; MONTHS]);

impl CallTotals {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// In order of the months.
    pub fn iter(&self) -> impl Iterator<Item = MonthCalls> {
        self.0
            .iter()
            .filter(|packed| **packed != 0)
            .map(|it| unpacked(*it))
    }
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

    /// The totals of this moment, whatever is counted from now on.
    pub(super) fn frozen(&self) -> CallTotals {
        let mut totals = self.months.each_ref().map(|place| place.load(Ordering::SeqCst));
        totals.sort_unstable();
        CallTotals(totals)
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
