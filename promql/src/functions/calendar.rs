//! Parts of dates, in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `hour`, `day_of_week` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calendar {
    Minute,
    Hour,
    DayOfWeek,
    DayOfMonth,
    DayOfYear,
    DaysInMonth,
    Month,
    Year,
}

impl Calendar {
    pub(crate) fn named(name: &str) -> Option<Calendar> {
        Some(match name {
            "minute" => Calendar::Minute,
            "hour" => Calendar::Hour,
            "day_of_week" => Calendar::DayOfWeek,
            "day_of_month" => Calendar::DayOfMonth,
            "day_of_year" => Calendar::DayOfYear,
            "days_in_month" => Calendar::DaysInMonth,
            "month" => Calendar::Month,
            "year" => Calendar::Year,
            _ => return None,
        })
    }

    /// The part of the date of an instant in seconds since 1970, whose fraction is cut off; NaN outside of the years
    /// -9999 to 9999.
    pub(crate) fn of(self, seconds: f64) -> f64 {
        if seconds.is_nan() {
            return f64::NAN;
        }
        let Ok(instant) = Timestamp::from_second(seconds as i64) else {
            return f64::NAN;
        };
        let date = TimeZone::UTC.to_datetime(instant);
        match self {
            Calendar::Minute => f64::from(date.minute()),
            Calendar::Hour => f64::from(date.hour()),
            Calendar::DayOfWeek => f64::from(date.weekday().to_sunday_zero_offset()),
            Calendar::DayOfMonth => f64::from(date.day()),
            Calendar::DayOfYear => f64::from(date.day_of_year()),
            Calendar::DaysInMonth => f64::from(date.days_in_month()),
            Calendar::Month => f64::from(date.month()),
            Calendar::Year => f64::from(date.year()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_date_in_utc() {
        // 2024-02-29T13:45:10Z, a Thursday.
        let seconds = 1_709_214_310.0;
        let cases = [
            ("minute", 45.0),
            ("hour", 13.0),
            ("day_of_week", 4.0),
            ("day_of_month", 29.0),
            ("day_of_year", 60.0),
            ("days_in_month", 29.0),
            ("month", 2.0),
            ("year", 2024.0),
        ];
        for (name, expected) in cases {
            assert_eq!(Calendar::named(name).unwrap().of(seconds), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_date_has_no_parts() {
        for seconds in [f64::NAN, f64::INFINITY, 1e300] {
            assert!(Calendar::Year.of(seconds).is_nan());
        }
    }
}
