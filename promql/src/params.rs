//! The parameters of Prometheus's API.

use jiff::Timestamp;

use crate::error::Error;
use crate::matcher::Matcher;
use crate::options::Semantics;
use crate::parse;

/// The greatest number of seconds in a parameter, before or after 1970.
const SECONDS_MAX: f64 = 1e12;

/// An instant in milliseconds since 1970: RFC 3339, or seconds as a decimal number. Parts of a millisecond are cut off.
pub fn time_ms(text: &str) -> Result<i64, Error> {
    let refused = || {
        Error::bad_data(format!(
            "cannot parse {text:?} to a valid timestamp: write RFC 3339, or seconds since 1970"
        ))
    };
    if let Ok(seconds) = text.parse::<f64>() {
        if !seconds.is_finite() || seconds.abs() > SECONDS_MAX {
            return Err(refused());
        }
        // A double does not hold decimal fractions exactly, so the milliseconds are rounded.
        return Ok((seconds * 1000.0).round() as i64);
    }
    if !has_rfc_3339_form(text) {
        return Err(refused());
    }
    let instant: Timestamp = text.parse().map_err(|_| refused())?;
    Ok(instant.as_millisecond())
}

/// A length in milliseconds: `1h30m`, or seconds as a decimal number. It may be negative only as a number.
pub fn duration_ms(text: &str) -> Result<i64, Error> {
    let refused = || {
        Error::bad_data(format!(
            "cannot parse {text:?} to a valid duration: write units such as 15s or 1h30m, or seconds"
        ))
    };
    if let Ok(seconds) = text.parse::<f64>() {
        if !seconds.is_finite() || seconds.abs() > SECONDS_MAX {
            return Err(refused());
        }
        return Ok((seconds * 1000.0).trunc() as i64);
    }
    units_ms(text).ok_or_else(refused)
}

/// The matchers of a parameter `match[]`.
pub fn selector(text: &str) -> Result<Vec<Matcher>, Error> {
    Ok(parse::selector(text, Semantics::V3.newlines())?.matchers)
}

/// `1y2w3d4h5m6s7ms`: each unit at most once, in this order.
fn units_ms(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 7] = [
        ("y", 365 * 86_400_000),
        ("w", 7 * 86_400_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    let mut rest = text;
    let mut units = &UNITS[..];
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let length = after
            .find(|char: char| !char.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(length);
        let at = units.iter().position(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(units[at].1)?)?;
        units = &units[at + 1..];
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// `2024-01-31T12:30:00`, perhaps with a fraction, and `Z` or an offset.
fn has_rfc_3339_form(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let bytes = text.as_bytes();
    let has_form = bytes.len() > FORM.len()
        && bytes.iter().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(form),
        });
    let rest = text.get(FORM.len()..).unwrap_or_default();
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let offset = fraction.trim_start_matches(|char: char| char.is_ascii_digit());
            if offset.len() == fraction.len() {
                return false;
            }
            offset
        }
        None => rest,
    };
    let is_offset = match rest.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|digit| digit.is_ascii_digit()),
        _ => false,
    };
    has_form && is_offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_or_seconds() {
        assert_eq!(time_ms("1500000000.123").unwrap(), 1_500_000_000_123);
        assert_eq!(time_ms("1.5e9").unwrap(), 1_500_000_000_000);
        assert_eq!(time_ms("-1.5").unwrap(), -1_500);
        assert_eq!(time_ms("2017-07-14T02:40:00Z").unwrap(), 1_500_000_000_000);
        assert_eq!(time_ms("2017-07-14T04:40:00.5+02:00").unwrap(), 1_500_000_000_500);
        for text in [
            "",
            "now",
            "NaN",
            "Inf",
            "1e300",
            "2017-07-14",
            "2017-07-14 02:40:00Z",
            "2017-07-14T02:40Z",
            "2017-07-14T02:40:00",
            "2017-07-14T02:40:00.Z",
            "2017-13-14T02:40:00Z",
            "2017-07-14T02:40:00+02:00[Europe/Berlin]",
            "é017-07-14T02:40:00Z",
        ] {
            assert!(time_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_units_or_seconds() {
        assert_eq!(duration_ms("15s").unwrap(), 15_000);
        assert_eq!(duration_ms("1h30m").unwrap(), 5_400_000);
        assert_eq!(duration_ms("1y2w3d4h5m6s7ms").unwrap(), 33_019_506_007);
        assert_eq!(duration_ms("0.5").unwrap(), 500);
        assert_eq!(duration_ms("-1").unwrap(), -1_000);
        assert_eq!(duration_ms("0").unwrap(), 0);
        for text in [
            "",
            "1m1h",
            "1h1h",
            "1x",
            "h",
            "1h ",
            "-1h",
            "99999999999999999y",
            "NaN",
            "1µs",
        ] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn selectors_are_matchers() {
        let matchers = selector(r#"up{job=~"a|b"}"#).unwrap();
        let names: Vec<&str> = matchers.iter().map(Matcher::name).collect();
        assert_eq!(names, ["__name__", "job"]);
        assert!(selector("rate(up[5m])").is_err());
    }
}
