//! The five units of `groupBy`, computed from days and dates alone.

use crate::support::time::{DAY, HOUR, MINUTE, date_of};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
}

pub const UNITS: [Unit; 5] = [Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month];

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
        }
    }

    /// The start of the unit that contains an instant, in UTC; weeks start on Monday.
    pub fn start(self, ns: i64) -> i64 {
        match self {
            Unit::Minute => ns.div_euclid(MINUTE) * MINUTE,
            Unit::Hour => ns.div_euclid(HOUR) * HOUR,
            Unit::Day => ns.div_euclid(DAY) * DAY,
            // 1970-01-01 was a Thursday, three days after its Monday.
            Unit::Week => ((ns.div_euclid(DAY) + 3).div_euclid(7) * 7 - 3) * DAY,
            Unit::Month => {
                let days = ns.div_euclid(DAY);
                let (_, _, day_of_month) = date_of(days);
                (days - day_of_month + 1) * DAY
            }
        }
    }
}

/// Midnight UTC of a date.
pub fn midnight(year: i64, month: i64, day: i64) -> i64 {
    let month_from_march = (month + 9) % 12;
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * month_from_march + 2) / 5 + day - 1;
    (era * 146_097 + day_of_era - 719_468) * DAY
}

#[test]
fn the_test_calendar_is_correct() {
    for days in -106_000..106_000 {
        let (year, month, day) = date_of(days);
        assert_eq!(midnight(year, month, day), days * DAY, "{year}-{month}-{day}");
    }
    assert_eq!(date_of(0), (1970, 1, 1));
    assert_eq!(midnight(2000, 2, 29) + DAY, midnight(2000, 3, 1));
    assert_eq!(midnight(2100, 2, 28) + DAY, midnight(2100, 3, 1));
    // Dates known to be Mondays.
    for (year, month, day) in [(2024, 1, 1), (2024, 12, 30), (2026, 11, 16), (1969, 12, 29)] {
        let monday = midnight(year, month, day);
        assert_eq!(Unit::Week.start(monday), monday);
        assert_eq!(Unit::Week.start(monday + 7 * DAY - 1), monday);
        assert_eq!(Unit::Week.start(monday - 1), monday - 7 * DAY);
    }
}
