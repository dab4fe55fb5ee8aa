//! All accepted and refused forms of timestamps, and a round trip over the whole range.

use super::*;
use crate::timestamp::format_timestamp_ns;

/// A text, and the same time in the form of the API.
const READ: &[(&str, &str)] = &[
    ("2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z"),
    ("2026-01-01t00:00:01z", "2026-01-01T00:00:01Z"),
    ("2026-01-01T00:00:01", "2026-01-01T00:00:01Z"),
    ("2026-01-01", "2026-01-01T00:00:00Z"),
    ("2026-01-01T13:45", "2026-01-01T13:45:00Z"),
    ("2026-01-01T13:45Z", "2026-01-01T13:45:00Z"),
    ("2026-01-01t13:45z", "2026-01-01T13:45:00Z"),
    ("2026-01-01T13:45+02", "2026-01-01T11:45:00Z"),
    ("2026-01-01T13:45+0230", "2026-01-01T11:15:00Z"),
    ("2026-01-01T13:45+02:30", "2026-01-01T11:15:00Z"),
    ("2026-01-01T13:45-02:30", "2026-01-01T16:15:00Z"),
    ("2026-01-01T00:00:01+02", "2025-12-31T22:00:01Z"),
    ("2026-01-01T00:00:01+0200", "2025-12-31T22:00:01Z"),
    ("2026-01-01T00:00:01+02:00", "2025-12-31T22:00:01Z"),
    ("2026-01-01T00:00:01-23:59", "2026-01-01T23:59:01Z"),
    ("2026-01-01T00:00:01+00:00", "2026-01-01T00:00:01Z"),
    ("2026-01-01T00:00:01-00:00", "2026-01-01T00:00:01Z"),
    ("2026-01-01T00:00:01.5Z", "2026-01-01T00:00:01.500Z"),
    ("2026-01-01T00:00:01.5", "2026-01-01T00:00:01.500Z"),
    ("2026-01-01T00:00:01.500000Z", "2026-01-01T00:00:01.500Z"),
    ("2026-01-01T00:00:01.0Z", "2026-01-01T00:00:01Z"),
    ("2026-01-01T00:00:01.123456789Z", "2026-01-01T00:00:01.123456789Z"),
    (
        "2026-01-01T00:00:01.000000001+05:30",
        "2025-12-31T18:30:01.000000001Z",
    ),
    ("2026-01-01T00:00:01.12345-01", "2026-01-01T01:00:01.123450Z"),
    ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
    ("2000-02-29", "2000-02-29T00:00:00Z"),
    ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ("1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999Z"),
    ("1678-01-01T00:00:00Z", "1678-01-01T00:00:00Z"),
    ("1677-12-31T23:00:00-01:00", "1678-01-01T00:00:00Z"),
    ("2261-12-31T23:59:59.999999999Z", "2261-12-31T23:59:59.999999999Z"),
    ("2262-01-01T00:59:59+01", "2261-12-31T23:59:59Z"),
];

const FORMS_REFUSED: &[&str] = &[
    "",
    " ",
    "now",
    "1767225601",
    "1767225601000",
    "2026",
    "2026-01",
    "2026-1-1",
    "2026-01-01T",
    "2026-01-01T00",
    "2026-01-01T00Z",
    "2026-01-01T00+02",
    "2026-01-01T00:0",
    "2026-01-01T00:00:",
    "2026-01-01T00:00:0",
    "2026-01-01T00:00:1Z",
    "2026-01-01Z",
    "2026-01-01+02:00",
    "2026-01-01 00:00:01Z",
    "2026-01-01_00:00:01Z",
    "2026-01-01T00:00:01 Z",
    " 2026-01-01T00:00:01Z",
    "2026-01-01T00:00:01Z ",
    "2026-01-01T00:00:01Z\n",
    "2026-01-01T00:00:01ZZ",
    "2026-01-01T00:00:01Z+00:00",
    "2026-01-01T00:00:01UTC",
    "2026-01-01T00:00:01[Europe/Berlin]",
    "2026-01-01T00:00:01.Z",
    "2026-01-01T00:00:01.",
    "2026-01-01T00:00:01,5Z",
    "2026-01-01T00:00:01.1234567890Z",
    "2026-01-01T00:00:01.-5Z",
    "2026-01-01T00:00.5Z",
    "2026-01-01T00:00:01+2",
    "2026-01-01T00:00:01+020",
    "2026-01-01T00:00:01+02:0",
    "2026-01-01T00:00:01+02:",
    "2026-01-01T00:00:01+02:00:00",
    "2026-01-01T00:00:01*02:00",
    "2026-01-01T00:00:01+0a:00",
    "2026-01-01T00-00-01Z",
    "2026/01/01T00:00:01Z",
    "01-01-2026T00:00:01Z",
    "20260101T000000Z",
    "20260101",
    "2026-01-01T000000Z",
    "2026-W01-1T00:00:01Z",
    "2026-001T00:00:01Z",
    "+002026-01-01T00:00:01Z",
    "-2026-01-01T00:00:01Z",
    "Thu, 01 Jan 2026 00:00:01 GMT",
    "２026-01-01T00:00:01Z",
    "2026-01-01T00:00:01\u{2212}02:00",
];

const VALUES_REFUSED: &[&str] = &[
    "2026-00-01",
    "2026-13-01",
    "2026-01-00",
    "2026-01-32",
    "2026-04-31",
    "2026-02-29",
    "2100-02-29",
    "1900-02-29T00:00:00Z",
    "2024-02-30",
    "2026-01-01T24:00",
    "2026-01-01T24:00:00Z",
    "2026-01-01T25:00:00Z",
    "2026-01-01T00:60Z",
    "2026-01-01T00:60:00Z",
    "2026-12-31T23:59:60Z",
    "2026-01-01T00:00:61Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+24",
    "2026-01-01T00:00:00-02:60",
    "2026-01-01T00:00:00-0260",
];

const RANGES_REFUSED: &[&str] = &[
    "0000-01-01",
    "1677-12-31T23:59:59.999999999Z",
    "1678-01-01T00:59:59+01:00",
    "2262-01-01",
    "2261-12-31T23:00:00-01:00",
    "9999-12-31T23:59:59Z",
];

#[test]
fn every_form_of_the_contract_is_parsed() {
    for (text, moment) in READ {
        let ns = parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert_eq!(format_timestamp_ns(ns).as_str(), *moment, "{text}");
    }
}

#[test]
fn every_other_form_is_refused_for_its_own_reason() {
    for (refused, fault) in [
        (FORMS_REFUSED, TimestampFault::Form),
        (VALUES_REFUSED, TimestampFault::Value),
        (RANGES_REFUSED, TimestampFault::Range),
    ] {
        for text in refused {
            assert_eq!(parse(text), Err(fault), "{text:?}");
        }
    }
}

#[test]
fn every_digit_and_separator_is_checked() {
    for text in [
        "2026-01-01T00:00:01Z",
        "2026-01-01T00:00:01.000Z",
        "2026-01-01T00:00:01",
    ] {
        for place in 0..text.len() {
            for byte in [b'/', b':', b' ', b'T', b'0' | 0x80, 0xff] {
                let mut other = text.as_bytes().to_vec();
                other[place] = byte;
                assert_eq!(
                    parse(&other).is_ok(),
                    other == text.as_bytes(),
                    "{}",
                    other.escape_ascii()
                );
            }
        }
    }
}

#[test]
fn timestamps_round_trip_to_the_nanosecond() {
    let seed = 0x7157_0001;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (first_ns, last_ns) = (FIRST_SECOND * SECOND_NS, END_SECOND * SECOND_NS - 1);
    for _ in 0..20_000 {
        let divisor = *random.choice(&[1, 1_000, 1_000_000, SECOND_NS]).unwrap();
        let ns = (random.i64(first_ns..=last_ns) / divisor * divisor).max(first_ns);
        assert_eq!(parse(format_timestamp_ns(ns).as_str()), Ok(ns));
    }
}

#[test]
fn an_offset_moves_the_moment_by_exactly_that_much() {
    let noon_ns = parse("2026-03-01T12:00:00.25Z").unwrap();
    for minutes in -1_439i64..=1_439 {
        let (sign, hour, minute) = (
            if minutes < 0 { '-' } else { '+' },
            minutes.abs() / 60,
            minutes.abs() % 60,
        );
        for text in [
            format!("2026-03-01T12:00:00.25{sign}{hour:02}{minute:02}"),
            format!("2026-03-01T12:00:00.25{sign}{hour:02}:{minute:02}"),
        ] {
            assert_eq!(parse(&text), Ok(noon_ns - minutes * 60 * SECOND_NS), "{text}");
        }
    }
}

#[test]
fn malformed_timestamps_never_panic() {
    let seed = 0x7157_0002;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..50_000 {
        let mut text = b"2026-01-01T00:00:01.123456789+02:00".to_vec();
        text.truncate(random.usize(..=text.len()));
        for _ in 0..random.usize(..3) {
            if !text.is_empty() {
                let place = random.usize(..text.len());
                text[place] = random.u8(..);
            }
        }
        if let Ok(ns) = parse(&text) {
            assert!((FIRST_SECOND * SECOND_NS..END_SECOND * SECOND_NS).contains(&ns));
        }
    }
}
