//! Timestamps in API responses: UTC, `Z`, and either no fraction or the shortest of 3, 6 or 9 digits that is exact.
//! Parsing timestamps is part of the ingest room.

use std::fmt;

use jiff::Span;
use jiff::civil::Date;
use serde::{Serialize, Serializer};

use crate::clock::{DAY_NS, SECOND_NS};

/// `YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ`.
const TEXT_BYTES_MAX: usize = 30;
/// `YYYY-MM-DDTHH:MM:SS`.
const WHOLE_SECONDS_BYTES: usize = 19;

/// A formatted timestamp, stored without allocation.
#[derive(Clone, Copy)]
pub struct TimestampText {
    bytes: [u8; TEXT_BYTES_MAX],
    length: u8,
}

impl TimestampText {
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The text's bytes, all ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Formats a timestamp as in API responses. `timestamp_ns` is UTC nanoseconds since the epoch.
pub fn format_timestamp_ns(timestamp_ns: i64) -> TimestampText {
    TimestampFormatter::default().format(timestamp_ns)
}

/// Formats many timestamps efficiently: timestamps of the same day share its date.
pub struct TimestampFormatter {
    /// Days since 1970-01-01.
    day: i64,
    /// Midnight of that day.
    midnight: [u8; TEXT_BYTES_MAX],
}

impl Default for TimestampFormatter {
    fn default() -> Self {
        TimestampFormatter {
            day: 0,
            midnight: *b"1970-01-01T00:00:00.000000000Z",
        }
    }
}

impl TimestampFormatter {
    /// Formats a timestamp as in API responses. `timestamp_ns` is UTC nanoseconds since the epoch.
    pub fn format(&mut self, timestamp_ns: i64) -> TimestampText {
        let day = timestamp_ns.div_euclid(DAY_NS);
        if day != self.day {
            let date = date(day);
            self.day = day;
            // Years of i64 nanoseconds have four digits, and none is negative.
            pair(&mut self.midnight, 0, date.year() as u32 / 100);
            pair(&mut self.midnight, 2, date.year() as u32 % 100);
            pair(&mut self.midnight, 5, date.month() as u32);
            pair(&mut self.midnight, 8, date.day() as u32);
        }
        let of_day_ns = timestamp_ns.rem_euclid(DAY_NS);
        let (second, fraction_ns) = ((of_day_ns / SECOND_NS) as u32, (of_day_ns % SECOND_NS) as u32);
        let mut bytes = self.midnight;
        pair(&mut bytes, 11, second / 3_600);
        pair(&mut bytes, 14, second / 60 % 60);
        pair(&mut bytes, 17, second % 60);
        let fraction_bytes = match fraction_ns {
            0 => 0,
            ns if ns % 1_000_000 == 0 => 4,
            ns if ns % 1_000 == 0 => 7,
            _ => 10,
        };
        if fraction_bytes > 0 {
            digits(&mut bytes[20..29], fraction_ns);
        }
        let end = WHOLE_SECONDS_BYTES + fraction_bytes;
        bytes[end] = b'Z';
        TimestampText {
            bytes,
            length: end as u8 + 1,
        }
    }
}

/// A timestamp in a response: UTC nanoseconds since the epoch, serialized as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(format_timestamp_ns(self.0).as_str())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(format_timestamp_ns(self.0).as_str())
    }
}

/// Writes a two-digit number at this place.
fn pair(bytes: &mut [u8; TEXT_BYTES_MAX], place: usize, value: u32) {
    bytes[place] = b'0' + (value / 10) as u8;
    bytes[place + 1] = b'0' + (value % 10) as u8;
}

fn digits(place: &mut [u8], mut value: u32) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The date of a day, counted from 1970-01-01. Days of i64 nanoseconds are far within the range of dates.
fn date(day: i64) -> Date {
    Date::constant(1970, 1, 1).saturating_add(Span::new().days(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_is_the_shortest_exact_one() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_700_000_000_000_000_000, "2023-11-14T22:13:20Z"),
            (1_700_000_000_500_000_000, "2023-11-14T22:13:20.500Z"),
            (1_700_000_000_000_120_000, "2023-11-14T22:13:20.000120Z"),
            (1_700_000_000_000_000_007, "2023-11-14T22:13:20.000000007Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ] {
            assert_eq!(format_timestamp_ns(ns).as_str(), text);
            assert_eq!(
                serde_json::to_string(&Timestamp(ns)).unwrap(),
                format!("\"{text}\"")
            );
        }
    }

    #[test]
    fn one_formatter_formats_timestamps_of_any_days_in_any_order() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut formatter = TimestampFormatter::default();
        let mut timestamp_ns = 0i64;
        for _ in 0..2_000 {
            timestamp_ns = match random.u8(..3) {
                0 => random.i64(..),
                1 => timestamp_ns.saturating_add(random.i64(-2 * DAY_NS..2 * DAY_NS)),
                _ => timestamp_ns.saturating_add(random.i64(-100..100) * SECOND_NS),
            };
            let (shared, alone) = (formatter.format(timestamp_ns), format_timestamp_ns(timestamp_ns));
            assert_eq!(shared.as_str(), alone.as_str());
        }
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let civil = |day| {
            let date = date(day);
            (date.year(), date.month(), date.day())
        };
        let mut before = civil(-1);
        for day in 0..146_097 {
            let (year, month, date) = civil(day);
            let next = match before {
                (y, 12, 31) => (y + 1, 1, 1),
                (y, m, d) if date == 1 => {
                    let leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
                    let length = [31, 28 + i8::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
                    assert_eq!(d, length[(m - 1) as usize], "{y}-{m}");
                    (y, m + 1, 1)
                }
                (y, m, d) => (y, m, d + 1),
            };
            assert_eq!((year, month, date), next);
            before = next;
        }
    }
}
