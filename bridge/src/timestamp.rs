//! The timestamps of messages, in the forms that the API takes: ISO 8601, UTC where no offset is given. Pure.

use jiff::civil::Date;
use jiff::tz::Offset;

/// The years that the service keeps.
const YEARS: std::ops::RangeInclusive<i16> = 1678..=2261;

/// Nanoseconds since 1970-01-01T00:00:00Z. None for anything that the API refuses: a separator other than `T`, basic
/// formats, 24:00, second 60, more than 9 digits of a fraction, a year outside of 1678 to 2261.
pub fn parse(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let date = parse_date(date)?;
    let Some(time) = time else {
        return nanoseconds(date.at(0, 0, 0, 0), Offset::UTC);
    };
    let (time, offset) = split_offset(time)?;
    let (time, fraction) = match time.split_once('.') {
        Some((time, digits)) => (time, Some(digits)),
        None => (time, None),
    };
    let mut parts = time.split(':').map(|part| number(part, 2));
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        Some(second) => second?,
        None => 0,
    };
    let is_time = parts.next().is_none() && hour < 24 && minute < 60 && second < 60;
    // Only seconds have a fraction.
    let has_place = fraction.is_none() || time.len() == "hh:mm:ss".len();
    if !is_time || !has_place {
        return None;
    }
    let nanosecond = parse_fraction(fraction.unwrap_or("0"))?;
    nanoseconds(
        date.at(hour as i8, minute as i8, second as i8, nanosecond),
        offset,
    )
}

fn parse_date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let date = Date::new(
        i16::try_from(number(year, 4)?).ok()?,
        number(month, 2)? as i8,
        number(day, 2)? as i8,
    );
    date.ok().filter(|_| parts.next().is_none())
}

/// `Z`, `+hh`, `+hhmm`, `+hh:mm`, or nothing, which is UTC.
fn split_offset(text: &str) -> Option<(&str, Offset)> {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time, Offset::UTC));
    }
    let Some(at) = text.find(['+', '-']) else {
        return Some((text, Offset::UTC));
    };
    let (time, offset) = text.split_at(at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let digits = &offset[1..];
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        _ => digits.split_once(':')?,
    };
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = sign * i32::try_from(hours * 3_600 + minutes * 60).ok()?;
    Some((time, Offset::from_seconds(seconds).ok()?))
}

/// The number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn parse_fraction(digits: &str) -> Option<i32> {
    if !(1..=9).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{digits:0<9}").parse().ok()
}

fn nanoseconds(local: jiff::civil::DateTime, offset: Offset) -> Option<i64> {
    let instant = offset.to_timestamp(local).ok()?;
    let year = Offset::UTC.to_datetime(instant).year();
    YEARS
        .contains(&year)
        .then(|| i64::try_from(instant.as_nanosecond()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_iso_8601_that_the_api_takes() {
        let cases = [
            ("1970-01-01", 0),
            ("1970-01-01T00:00Z", 0),
            ("1970-01-01t00:00:01z", 1_000_000_000),
            ("1970-01-01T00:00:01", 1_000_000_000),
            ("1970-01-01T02:00:01+02", 1_000_000_000),
            ("1970-01-01T02:30:00+0230", 0),
            ("1969-12-31T19:00:00-05:00", 0),
            ("1970-01-01T00:00:00.000000001Z", 1),
            ("1970-01-01T00:00:00.5Z", 500_000_000),
            ("2026-01-31T12:00:00.123456789Z", 1_769_860_800_123_456_789),
            ("1678-01-01T00:00:00Z", -9_214_560_000_000_000_000),
            ("2261-12-31T23:59:59.999999999Z", 9_214_646_399_999_999_999),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let cases = [
            "",
            "T",
            "now",
            "1700000000",
            "2026-1-31",
            "2026-02-30",
            "2026-01-31 12:00:00Z",
            "2026-01-31T",
            "2026-01-31T12",
            "2026-01-31T12Z",
            "20260131T120000Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:60Z",
            "2026-01-31T12:00:60Z",
            "2026-01-31T12:00:00,5Z",
            "2026-01-31T12:00.5Z",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00.1234567890Z",
            "2026-01-31T12:00:00+2",
            "2026-01-31T12:00:00+24",
            "2026-01-31T12:00:00+02:60",
            "2026-01-31T12:00:00+é0",
            "2026-01-31T12:00:00ZZ",
            "2026-01-31T12:00:00:00Z",
            "+2026-01-31T12:00:00Z",
            "1677-12-31T23:59:59Z",
            "2262-01-01T00:00:00Z",
            "2262-01-01T00:00:00+00:00",
            "2261-12-31T23:59:59-01:00",
        ];
        for text in cases {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
