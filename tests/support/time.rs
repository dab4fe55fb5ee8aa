//! Instants as nanoseconds since 1970 UTC, formatted as the contract requires. Computed without a date library, so that
//! the server's arithmetic is checked by an independent implementation.

use std::time::{SystemTime, UNIX_EPOCH};

pub const SECOND: i64 = 1_000_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

pub fn now_ns() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

/// UTC, `Z`, no fraction if it is zero, else the fewest of 3, 6 or 9 digits that preserve it.
pub fn timestamp(ns: i64) -> String {
    let (year, month, day) = date_of(ns.div_euclid(DAY));
    let in_day = ns.rem_euclid(DAY);
    let (hour, minute, second) = (in_day / HOUR, in_day % HOUR / MINUTE, in_day % MINUTE / SECOND);
    let fraction = match in_day % SECOND {
        0 => String::new(),
        ns if ns % 1_000_000 == 0 => format!(".{:03}", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!(".{:06}", ns / 1_000),
        ns => format!(".{ns:09}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day of the proleptic Gregorian calendar for a number of days since 1970-01-01. Computed in eras of
/// 400 years that begin on the first of March, so that the leap day is the last of a year.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let from_era_zero = days + 719_468;
    let era = from_era_zero.div_euclid(146_097);
    let day_of_era = from_era_zero.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}
