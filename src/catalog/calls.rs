//! API calls of one organization, counted per calendar month.
//!
//! Like the last use of a key, the counts are ahead of the log: each request increments an atomic, and about once a
//! second a command makes the changed totals durable. Replaying a total never lowers a count.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// A calendar month, represented by its first day, in days since 1970-01-01 UTC.
pub type MonthDay = u32;

/// Months kept: the current one and some around it, in case the clock was ahead or is set back.
const MONTHS: usize = 4;
/// If the clock is set back by up to this much, calls count for the earliest month that has a count. If it is set back
/// further, the earlier clock is assumed to have been wrong.
const SET_BACK_DAYS_MAX: u32 = 366;

/// A month in the upper bits and its calls in the lower ones, so that both are updated atomically. 0 is a free slot.
const CALLS_BITS: u32 = 40;
const CALLS_MAX: u64 = (1 << CALLS_BITS) - 1;

/// The calls of an organization. Updated by requests, and by the catalog when totals are replayed.
#[derive(Debug, Default)]
pub struct CallCounts {
    months: [AtomicU64; MONTHS],
    /// Held while a month gets its slot, so that no month gets two.
    placing: Mutex<()>,
    unsaved: AtomicBool,
}

/// The count of an organization in a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonthCalls {
    /// The month that is counted: that of the clock, unless it was set back.
    pub month: MonthDay,
    /// Calls counted in it.
    pub calls: u64,
}

impl CallCounts {
    /// Counts a call in `month`, unless `calls_max` are counted already. Returns the new count.
    ///
    /// # Errors
    /// All calls of the month are used up; the error holds the count.
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
                // Another month took the slot concurrently.
                Err(_) => {}
            }
        }
    }

    /// The count that a call in `month` would increment.
    pub fn standing(&self, month: MonthDay) -> MonthCalls {
        let month = self.counted_month(month);
        let calls = self
            .totals()
            .find(|it| it.month == month)
            .map_or(0, |it| it.calls);
        MonthCalls { month, calls }
    }

    /// Whether the last call is the first one since [`CallCounts::save`], so that the organization must be queued for
    /// saving.
    pub fn is_first_unsaved(&self) -> bool {
        // Load first, so that all but one request per second write nothing here. Sequentially consistent with `save`:
        // either this sees that the totals were taken, or they were taken with this call included.
        !self.unsaved.load(Ordering::SeqCst) && !self.unsaved.swap(true, Ordering::SeqCst)
    }

    /// Returns the totals to be made durable. Later calls count as unsaved.
    pub fn save(&self) -> impl Iterator<Item = MonthCalls> {
        self.unsaved.swap(false, Ordering::SeqCst);
        self.totals()
    }

    /// The counts of all months that have any, in no particular order.
    pub fn totals(&self) -> impl Iterator<Item = MonthCalls> {
        let packed = self.months.iter().map(|place| place.load(Ordering::SeqCst));
        packed.filter(|packed| *packed != 0).map(unpacked)
    }

    /// The totals in order of the months.
    pub(super) fn by_month(&self) -> Vec<(MonthDay, u64)> {
        let mut months: Vec<_> = self.totals().map(|it| (it.month, it.calls)).collect();
        months.sort_unstable();
        months
    }

    /// Restores a durable total; never lowers a count.
    pub(super) fn restore(&self, total: MonthCalls) {
        let packed = packed(total);
        let raise = |found| (unpacked(found).month == total.month && found < packed).then_some(packed);
        // Fails if the count is at least as high already.
        let _ = self
            .place(total.month)
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, raise);
    }

    /// The month of the clock, or the earliest counted month if that is later. A clock that is set back past the end of
    /// a month therefore finds no unused month.
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
        // A free slot counts as most distant. If there is none, replace the month that is most distant from this one.
        let distance = |place: &&AtomicU64| match place.load(Ordering::SeqCst) {
            0 => u32::MAX,
            packed => unpacked(packed).month.abs_diff(month),
        };
        let place = self.months.iter().max_by_key(distance);
        let place = place.unwrap_or(&self.months[0]);
        place.store(packed(MonthCalls { month, calls: 0 }), Ordering::SeqCst);
        place
    }
}

pub(super) fn packed(it: MonthCalls) -> u64 {
    u64::from(it.month) << CALLS_BITS | it.calls.min(CALLS_MAX)
}

pub(super) fn unpacked(packed: u64) -> MonthCalls {
    MonthCalls {
        month: (packed >> CALLS_BITS) as MonthDay,
        calls: packed & CALLS_MAX,
    }
}
