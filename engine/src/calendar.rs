//! UTC calendar units, in integer arithmetic. Days are counted from 1970-01-01 in the proleptic Gregorian calendar; the
//! conversion of days to months is Howard Hinnant's `civil_from_days`
//! (<https://howardhinnant.github.io/date_algorithms.html>).

use crate::step::Length;

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;
const DAY_NS: i64 = 24 * HOUR_NS;
const WEEK_NS: i64 = 7 * DAY_NS;
/// The first Monday after the epoch, which was a Thursday: 1970-01-05. Weeks, and lengths that are no units, are counted
/// from it.
pub(crate) const MONDAY_NS: i64 = 4 * DAY_NS;

/// The units by which a query can group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Sixty seconds.
    Minute,
    /// Sixty minutes.
    Hour,
    /// A UTC day.
    Day,
    /// Monday to Sunday.
    Week,
    /// A calendar month.
    Month,
}

impl Unit {
    /// From the finest to the coarsest.
    pub const ALL: [Unit; 5] = [Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month];

    /// The length of the units that have a fixed one.
    fn length(self) -> Option<Length> {
        const MINUTE: Length = Length::of_ns(MINUTE_NS);
        const DAY: Length = Length::of_ns(DAY_NS);
        const WEEK: Length = Length::of_ns(WEEK_NS);
        match self {
            Unit::Minute => Some(MINUTE),
            Unit::Hour => Some(Length::HOUR),
            Unit::Day => Some(DAY),
            Unit::Week => Some(WEEK),
            Unit::Month => None,
        }
    }

    /// The same in nanoseconds.
    pub(crate) fn length_ns(self) -> Option<i64> {
        self.length().map(Length::ns)
    }

    /// Time since the start of the cell that contains `timestamp_ns`; `None` for units without a fixed length.
    #[inline]
    fn into_ns(self, timestamp_ns: i64) -> Option<i64> {
        // Divisors are constants, so that the division becomes a multiplication: this runs for every cell of a result.
        match self {
            Unit::Minute => Some(timestamp_ns.rem_euclid(MINUTE_NS)),
            Unit::Hour => Some(timestamp_ns.rem_euclid(HOUR_NS)),
            Unit::Day => Some(timestamp_ns.rem_euclid(DAY_NS)),
            Unit::Week => Some((timestamp_ns.rem_euclid(WEEK_NS) - MONDAY_NS).rem_euclid(WEEK_NS)),
            Unit::Month => None,
        }
    }

    /// Start of the cell that contains `timestamp_ns`. Saturates at the limits of 64-bit timestamps.
    #[inline]
    pub fn start_ns(self, timestamp_ns: i64) -> i64 {
        match self.into_ns(timestamp_ns) {
            Some(into_ns) => timestamp_ns.saturating_sub(into_ns),
            None => month_start_ns(month_of(timestamp_ns.div_euclid(DAY_NS))),
        }
    }

    /// Start of the cell after the one that contains `timestamp_ns`.
    pub fn next_ns(self, timestamp_ns: i64) -> i64 {
        match self.length_ns().zip(self.into_ns(timestamp_ns)) {
            // In this order, so that it saturates only if the next one is beyond the limit.
            Some((length_ns, into_ns)) => timestamp_ns.saturating_add(length_ns - into_ns),
            None => month_start_ns(month_of(timestamp_ns.div_euclid(DAY_NS)) + 1),
        }
    }

    /// Number of cells of this unit that the range touches, both ends inclusive.
    pub fn cells(self, first_ns: i64, last_ns: i64) -> u64 {
        if last_ns < first_ns {
            return 0;
        }
        match self.length() {
            Some(length) => length.cells(first_ns, last_ns),
            None => {
                let month = |ns: i64| month_of(ns.div_euclid(DAY_NS));
                (month(last_ns) - month(first_ns)) as u64 + 1
            }
        }
    }
}

/// Steps of whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dates {
    /// A number of days, counted from Monday 1970-01-05.
    Days(Length),
    /// A number of months, counted from the January of year 0.
    Months(i64),
}

impl Dates {
    /// Start of the step that contains `at_ns`. Saturates at the limits of 64-bit timestamps.
    pub(crate) fn start_ns(self, at_ns: i64) -> i64 {
        match self {
            Dates::Days(length) => length.start_ns(at_ns),
            Dates::Months(count) => month_start_ns(self.index(at_ns) * count),
        }
    }

    /// Start of the step after the one that contains `at_ns`.
    pub(crate) fn next_ns(self, at_ns: i64) -> i64 {
        match self {
            Dates::Days(length) => length.next_ns(at_ns),
            Dates::Months(count) => month_start_ns((self.index(at_ns) + 1) * count),
        }
    }

    /// Number of steps that the range touches, both ends inclusive.
    pub(crate) fn cells(self, first_ns: i64, last_ns: i64) -> u64 {
        match last_ns < first_ns {
            true => 0,
            false => (self.index(last_ns) - self.index(first_ns)) as u64 + 1,
        }
    }

    fn index(self, at_ns: i64) -> i64 {
        match self {
            Dates::Days(length) => length.index(at_ns),
            Dates::Months(count) => month_of(at_ns.div_euclid(DAY_NS)).div_euclid(count),
        }
    }
}

/// Months from year 0 to the month of a day.
fn month_of(days: i64) -> i64 {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months are counted from March, so that a leap day is the last of its year.
    let month_from_march = (5 * day_of_year + 2) / 153;
    (year_of_era + era * 400) * 12 + month_from_march + 2
}

fn month_start_ns(month: i64) -> i64 {
    let from_march = month - 2;
    let (year, month_from_march) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468).saturating_mul(DAY_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(days: i64) -> i64 {
        days * DAY_NS
    }

    #[test]
    fn weeks_begin_on_monday() {
        // 1970-01-05 was a Monday.
        assert_eq!(Unit::Week.start_ns(day(4)), day(4));
        assert_eq!(Unit::Week.start_ns(day(4) - 1), day(-3));
        assert_eq!(Unit::Week.next_ns(day(4)), day(11));
    }

    #[test]
    fn months_follow_leap_years_and_centuries() {
        // 2000-02-01 is day 10,988 and 2000-02-29 day 11,016; 1900-02-01 is day -25,536.
        assert_eq!(
            Unit::Month.start_ns(day(11_016)),
            day(10_988),
            "2000-02-29 belongs to February"
        );
        assert_eq!(
            Unit::Month.next_ns(day(11_016)),
            day(11_017),
            "2000 was a leap year"
        );
        assert_eq!(Unit::Month.start_ns(day(0)), day(0));
        assert_eq!(Unit::Month.start_ns(day(0) - 1), day(-31));
        assert_eq!(Unit::Month.next_ns(day(-31)), day(0));
        assert_eq!(
            Unit::Month.next_ns(day(-25_536)),
            day(-25_508),
            "1900 had no 29 February"
        );
    }

    #[test]
    fn every_cell_begins_at_the_end_of_the_previous() {
        for unit in Unit::ALL {
            let mut at = unit.start_ns(day(-800));
            for _ in 0..200 {
                let next = unit.next_ns(at);
                assert!(next > at);
                assert_eq!(unit.start_ns(next), next);
                assert_eq!(unit.start_ns(next - 1), at);
                assert_eq!(unit.cells(at, next - 1), 1);
                assert_eq!(unit.cells(at, next), 2);
                at = next;
            }
        }
    }

    #[test]
    fn a_cell_that_begins_before_time_ends_where_it_would() {
        for unit in [Unit::Minute, Unit::Hour, Unit::Day, Unit::Week] {
            let next = unit.next_ns(i64::MIN);
            assert_eq!(unit.start_ns(next), next);
            assert_eq!(unit.next_ns(next - 1), next);
        }
    }

    #[test]
    fn cells_are_counted_up_to_the_ends_of_time() {
        let edges = [
            i64::MIN,
            i64::MIN + 1,
            -1,
            0,
            1,
            MONDAY_NS - 1,
            MONDAY_NS,
            i64::MAX - 1,
            i64::MAX,
        ];
        for (length, origin, unit) in [
            (MINUTE_NS, 0, Unit::Minute),
            (HOUR_NS, 0, Unit::Hour),
            (DAY_NS, 0, Unit::Day),
            (WEEK_NS, MONDAY_NS, Unit::Week),
        ] {
            let (length, origin) = (i128::from(length), i128::from(origin));
            let index = |ns: i64| (i128::from(ns) - origin).div_euclid(length);
            for (at, first) in edges.iter().enumerate() {
                for last in &edges[at..] {
                    let count = index(*last) - index(*first) + 1;
                    assert_eq!(
                        i128::from(unit.cells(*first, *last)),
                        count,
                        "{unit:?} {first} {last}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        for unit in Unit::ALL {
            for edge in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                assert!(unit.start_ns(edge) <= edge || edge < i64::MIN + 32 * DAY_NS);
                assert!(unit.next_ns(edge) >= edge || edge > 0);
            }
        }
    }
}
