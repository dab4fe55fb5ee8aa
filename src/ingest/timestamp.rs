//! Parses timestamps of requests: ISO 8601 text → UTC nanoseconds. `crate::timestamp` writes them. Called by the ingest
//! bodies for points and by the query for its range.
//!
//! Accepted are `YYYY-MM-DD` (midnight UTC) and `YYYY-MM-DDTHH:MM`, optionally followed by `:SS`, then optionally by
//! `.` and 1 to 9 digits, then by `Z`, `±HH`, `±HHMM`, `±HH:MM` or nothing, which means UTC. `T` and `Z` may be lower
//! case. Other forms of ISO 8601 (basic, hour only, week and ordinal dates, a comma, `24:00`, fractions of a minute)
//! and the leap second are refused: the time of a point is never guessed.

use crate::clock::SECOND_NS;

const DAY_SECONDS: i64 = 86_400;
/// 1678-01-01T00:00:00Z: the first full year in the range of 64-bit nanoseconds.
const FIRST_SECOND: i64 = -9_214_560_000;
/// The earliest timestamp, in UTC nanoseconds.
pub const FIRST_NS: i64 = FIRST_SECOND * SECOND_NS;
/// 2262-01-01T00:00:00Z: 2261 is the last full year.
const END_SECOND: i64 = 9_214_646_400;

/// Why a text is not a valid timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimestampFault {
    /// None of the accepted forms.
    #[error("must be an ISO 8601 date-time such as 2026-01-31T12:00:00Z")]
    Form,
    /// The form is valid, but the date, time of day or offset does not exist.
    #[error("must be a date, time of day and offset that exist; hours end at 23, seconds at 59")]
    Value,
    /// Outside the years 1678 to 2261, in UTC.
    #[error("must lie within the years 1678 to 2261, in UTC")]
    Range,
}

/// Parses `text` to UTC nanoseconds since 1970-01-01.
#[inline]
pub fn parse(text: impl AsRef<[u8]>) -> Result<i64, TimestampFault> {
    let text = text.as_ref();
    match common_form(text) {
        Some((timestamp_ns, length)) if length == text.len() => Ok(timestamp_ns),
        _ => any_form(text),
    }
}

/// Parses `YYYY-MM-DDTHH:MM:SSZ`, with or without a fraction, at the start of `text`; the form that most clients send.
/// Returns the time and the length. All checks are combined; the reason for a failure is left to [`any_form`].
#[inline(always)]
pub(super) fn common_form(text: &[u8]) -> Option<(i64, usize)> {
    let (fixed, behind) = text.split_first_chunk::<19>()?;
    let second_ns = whole_seconds(fixed)?;
    if let Some(b'Z') = behind.first() {
        return Some((second_ns, 20));
    }
    let (mut fraction, mut scale_ns, mut length) = (0, SECOND_NS, 20);
    for byte in behind.strip_prefix(b".")? {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 || scale_ns == 1 {
            let complete = *byte == b'Z' && length > 20;
            return complete.then_some((second_ns + fraction * scale_ns, length + 1));
        }
        (fraction, scale_ns, length) = (fraction * 10 + i64::from(digit), scale_ns / 10, length + 1);
    }
    None
}

/// `YYYY-MM-DDTHH:MM:SS`
#[inline(always)]
fn whole_seconds(text: &[u8; 19]) -> Option<i64> {
    let [date, day, clock] = [0, 8, 11].map(|from| text[from..].first_chunk::<8>());
    let date = pairs(date?, b"0000-00-")?;
    let day = i64::from(pairs(day?, b"00T00:00")?[0]);
    let clock = pairs(clock?, b"00:00:00")?;
    let (year, month) = (i64::from(date[0]) * 100 + i64::from(date[2]), i64::from(date[5]));
    let (hour, minute, second) = (i64::from(clock[0]), i64::from(clock[3]), i64::from(clock[6]));
    let exists = is_date(year, month, day) && hour < 24 && minute < 60 && second < 60;
    if !exists || !(1678..2262).contains(&year) {
        return None;
    }
    let of_day = hour * 3_600 + minute * 60 + second;
    Some((days_from_civil(year, month, day) * DAY_SECONDS + of_day) * SECOND_NS)
}

/// Parses eight bytes at once. They must be digits where `form` has a zero, and equal where it has a separator. In the
/// result, the byte of each digit holds the two-digit number that it forms with the next one.
#[inline(always)]
fn pairs(text: &[u8; 8], form: &'static [u8; 8]) -> Option<[u8; 8]> {
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    let values = u64::from_le_bytes(*text) ^ u64::from_le_bytes(*form);
    // Sets the high bit of digits above 9 and of separators that differ. A carry into the next byte only occurs from a
    // byte whose high bit is already set.
    let excess = u64::from_le_bytes(form.map(|byte| if byte == b'0' { 0x7f - 9 } else { 0x7f }));
    if (values.wrapping_add(excess) | values) & HIGHS != 0 {
        return None;
    }
    Some((values * 10 + (values >> 8)).to_le_bytes())
}

fn any_form(text: &[u8]) -> Result<i64, TimestampFault> {
    let [y1, y2, y3, y4, b'-', month1, month2, b'-', day1, day2, rest @ ..] = text else {
        return Err(TimestampFault::Form);
    };
    let year = two(*y1, *y2)? * 100 + two(*y3, *y4)?;
    let (month, day) = (two(*month1, *month2)?, two(*day1, *day2)?);
    if !is_date(year, month, day) {
        return Err(TimestampFault::Value);
    }
    let midnight = days_from_civil(year, month, day) * DAY_SECONDS;
    let (h1, h2, m1, m2, rest) = match rest {
        [] => return in_range(midnight, 0),
        [b'T' | b't', h1, h2, b':', m1, m2, rest @ ..] => (*h1, *h2, *m1, *m2, rest),
        _ => return Err(TimestampFault::Form),
    };
    let (hour, minute) = (two(h1, h2)?, two(m1, m2)?);
    let minutes = below(24, hour)? * 60 + below(60, minute)?;
    let (second, rest) = match rest {
        [b':', s1, s2, rest @ ..] => (below(60, two(*s1, *s2)?)?, rest),
        _ => return in_range(midnight + minutes * 60 - offset_seconds(rest)?, 0),
    };
    let (fraction_ns, rest) = match rest {
        [b'.', rest @ ..] => fraction(rest)?,
        _ => (0, rest),
    };
    in_range(
        midnight + minutes * 60 + second - offset_seconds(rest)?,
        fraction_ns,
    )
}

#[inline(always)]
fn is_date(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=days).contains(&day)
}

/// Days from 1970-01-01 to a Gregorian date in year 0 or later. Years start in March; five months from there have 153
/// days.
#[inline(always)]
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let early = month <= 2;
    let (year, march_month) = (year - i64::from(early), if early { month + 9 } else { month - 3 });
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * march_month + 2) / 5 + day - 1 - 719_468
}

/// Parses the digits after the dot as nanoseconds. Returns them and the rest.
fn fraction(text: &[u8]) -> Result<(i64, &[u8]), TimestampFault> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A dot without digits is not ISO 8601; a tenth digit would be lost.
    if !(1..=9).contains(&length) {
        return Err(TimestampFault::Form);
    }
    let (digits, rest) = text.split_at(length);
    let digits = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
    let fraction_ns = digits.fold(0, |ns, digit| ns * 10 + i64::from(digit - b'0'));
    Ok((fraction_ns, rest))
}

/// The offset of local time from UTC; an empty text means UTC.
fn offset_seconds(text: &[u8]) -> Result<i64, TimestampFault> {
    let (sign, hour, minute) = match *text {
        [] | [b'Z' | b'z'] => return Ok(0),
        [sign, h1, h2] => (sign, two(h1, h2)?, 0),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => (sign, two(h1, h2)?, two(m1, m2)?),
        _ => return Err(TimestampFault::Form),
    };
    let seconds = below(24, hour)? * 3_600 + below(60, minute)? * 60;
    match sign {
        b'+' => Ok(seconds),
        b'-' => Ok(-seconds),
        _ => Err(TimestampFault::Form),
    }
}

#[inline(always)]
fn two(tens: u8, ones: u8) -> Result<i64, TimestampFault> {
    match (tens, ones) {
        (b'0'..=b'9', b'0'..=b'9') => Ok(i64::from((tens - b'0') * 10 + (ones - b'0'))),
        _ => Err(TimestampFault::Form),
    }
}

#[inline(always)]
fn below(end: i64, value: i64) -> Result<i64, TimestampFault> {
    (value < end).then_some(value).ok_or(TimestampFault::Value)
}

fn in_range(second: i64, fraction_ns: i64) -> Result<i64, TimestampFault> {
    if !(FIRST_SECOND..END_SECOND).contains(&second) {
        return Err(TimestampFault::Range);
    }
    Ok(second * SECOND_NS + fraction_ns)
}

#[cfg(test)]
#[path = "timestamp_tests.rs"]
mod tests;
