//! Prometheus's JSON, written into a buffer of bytes.

use crate::error::Error;
use crate::labels::Labels;
use crate::value::{Point, Value};

/// The member of an answer that has fewer entries than were found, as Prometheus words it.
pub const TRUNCATED: &[u8] = br#","warnings":["results truncated due to limit"]"#;

/// Writes the member `data` of an answer: `{"resultType":"matrix","result":[…]}`, with at most so many series.
pub fn write_value(value: &Value, series_max: usize, out: &mut Vec<u8>) {
    match value {
        Value::Scalar(point) => {
            out.extend_from_slice(br#"{"resultType":"scalar","result":["#);
            write_time(point.time_ms, out);
            out.extend_from_slice(b",\"");
            out.extend_from_slice(plain_number(point.value).as_bytes());
            out.extend_from_slice(b"\"]");
        }
        Value::String { time_ms, text } => {
            out.extend_from_slice(br#"{"resultType":"string","result":["#);
            write_time(*time_ms, out);
            out.push(b',');
            write_string(text, out);
            out.push(b']');
        }
        Value::Vector(samples) => {
            out.extend_from_slice(br#"{"resultType":"vector","result":"#);
            write_list(&samples[..samples.len().min(series_max)], out, |sample, out| {
                out.extend_from_slice(br#"{"metric":"#);
                write_labels(&sample.labels, out);
                out.extend_from_slice(br#","value":"#);
                write_point(sample.point, out);
                out.push(b'}');
            });
        }
        Value::Matrix(series) => {
            out.extend_from_slice(br#"{"resultType":"matrix","result":"#);
            write_list(&series[..series.len().min(series_max)], out, |series, out| {
                out.extend_from_slice(br#"{"metric":"#);
                write_labels(&series.labels, out);
                out.extend_from_slice(br#","values":"#);
                write_list(&series.points, out, |point, out| write_point(*point, out));
                out.push(b'}');
            });
        }
    }
    out.push(b'}');
}

/// Writes a successful answer with at most `series_max` series: `{"status":"success","data":…}`. If there are more, a warning
/// says so.
pub fn write_success(value: &Value, series_max: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"status":"success","data":"#);
    write_value(value, series_max, out);
    let series = match value {
        Value::Vector(samples) => samples.len(),
        Value::Matrix(series) => series.len(),
        Value::Scalar(_) | Value::String { .. } => 0,
    };
    if series > series_max {
        out.extend_from_slice(TRUNCATED);
    }
    out.push(b'}');
}

/// Writes an answer that says what is wrong: `{"status":"error","errorType":"…","error":"…"}`.
pub fn write_error(error: &Error, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"status":"error","errorType":"#);
    write_string(error.kind.name(), out);
    out.extend_from_slice(br#","error":"#);
    write_string(&error.message, out);
    out.push(b'}');
}

/// Writes labels as an object, in their order.
pub fn write_labels(labels: &Labels, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, label) in labels.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(&label.name, out);
        out.push(b':');
        write_string(&label.value, out);
    }
    out.push(b'}');
}

/// Writes a text as a JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
    {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn write_list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_point(point: Point, out: &mut Vec<u8>) {
    out.push(b'[');
    write_time(point.time_ms, out);
    out.extend_from_slice(b",\"");
    write_number(point.value, out);
    out.extend_from_slice(b"\"]");
}

fn write_number(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
        // The printer uses exponents for more numbers than Prometheus, never for fewer.
        if !text.contains('e') {
            out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
            return;
        }
    }
    out.extend_from_slice(number(value).as_bytes());
}

/// Seconds with three decimals, or without any when they are whole.
fn write_time(time_ms: i64, out: &mut Vec<u8>) {
    let sign = if time_ms < 0 { "-" } else { "" };
    let ms = time_ms.unsigned_abs();
    let text = match ms % 1000 {
        0 => format!("{sign}{}", ms / 1000),
        rest => format!("{sign}{}.{rest:03}", ms / 1000),
    };
    out.extend_from_slice(text.as_bytes());
}

/// A value as Prometheus's API writes it: the shortest decimal that reads back as the same double; with an exponent below
/// 1e-6 and from 1e21 on.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || !value.is_finite() || (1e-6..1e21).contains(&magnitude) {
        return plain_number(value);
    }
    let Decimal { sign, digits, point } = Decimal::shortest(value);
    let (first, rest) = digits.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    // Go writes exponents with a sign and at least two digits.
    format!("{sign}{first}{dot}{rest}e{:+03}", point - 1)
}

/// The shortest decimal without an exponent: as Prometheus writes a scalar, and a value that becomes a label.
pub(crate) fn plain_number(value: f64) -> String {
    if !value.is_finite() {
        let sign = if value > 0.0 { "+" } else { "-" };
        return if value.is_nan() {
            "NaN".to_owned()
        } else {
            format!("{sign}Inf")
        };
    }
    let Decimal { sign, digits, point } = Decimal::shortest(value);
    let length = digits.len() as i32;
    match usize::try_from(point) {
        Ok(before) if point >= length => format!("{sign}{digits:0<before$}"),
        Ok(before) if before > 0 => format!("{sign}{}.{}", &digits[..before], &digits[before..]),
        _ => {
            let zeros = point.unsigned_abs() as usize;
            format!("{sign}0.{:0<zeros$}{digits}", "")
        }
    }
}

/// A finite number: `0.digits` times ten to the power of `point`.
struct Decimal {
    sign: &'static str,
    /// Without zeros at their ends, but for zero itself, which is `0`.
    digits: String,
    point: i32,
}

impl Decimal {
    /// The fewest digits that read back as the same double; of two decimals that are equally near the even one, as in Go.
    fn shortest(value: f64) -> Decimal {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value.abs());
        let (number, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let written = format!("{whole}{fraction}");
        let digits = written.trim_start_matches('0');
        if digits.is_empty() {
            let digits = "0".to_owned();
            return Decimal {
                sign,
                digits,
                point: 1,
            };
        }
        let zeros = (written.len() - digits.len()) as i32;
        // The printer's own exponent is always a number.
        let exponent: i32 = exponent.parse().unwrap_or(0);
        Decimal {
            sign,
            digits: digits.trim_end_matches('0').to_owned(),
            point: whole.len() as i32 - zeros + exponent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Sample, Series};

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        write_value(value, usize::MAX, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_go_does() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.25e-7, "1.25e-07"),
            (-1e300, "-1e+300"),
            (5e-324, "5e-324"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
            (123_456_789.5, "123456789.5"),
            (0.001_25, "0.00125"),
            (-120.0, "-120"),
            (7_254_894_757_301_549.0 / 4.0, "1813723689325387.2"),
            (0.000_001, "0.000001"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
            let mut out = Vec::new();
            write_number(value, &mut out);
            assert_eq!(out, expected.as_bytes());
        }
        assert_eq!(plain_number(1e21), "1000000000000000000000");
        assert_eq!(plain_number(1.25e-7), "0.000000125");
    }

    #[test]
    fn answers_have_prometheus_shape() {
        let labels = Labels::from_pairs([("__name__", "up"), ("a", "say \"hi\"\n\u{1}")]);
        let point = Point {
            time_ms: 1_500,
            value: 2.0,
        };
        let vector = Value::Vector(vec![Sample {
            labels: labels.clone(),
            point,
        }]);
        assert_eq!(
            written(&vector),
            r#"{"resultType":"vector","result":[{"metric":{"__name__":"up","a":"say \"hi\"\n\u0001"},"value":[1.500,"2"]}]}"#
        );
        let matrix = Value::Matrix(vec![Series {
            labels: Labels::empty(),
            points: vec![
                point,
                Point {
                    time_ms: -2_000,
                    ..point
                },
            ],
        }]);
        assert_eq!(
            written(&matrix),
            r#"{"resultType":"matrix","result":[{"metric":{},"values":[[1.500,"2"],[-2,"2"]]}]}"#
        );
        assert_eq!(
            written(&Value::Scalar(point)),
            r#"{"resultType":"scalar","result":[1.500,"2"]}"#
        );
        let text = "a".to_owned();
        assert_eq!(
            written(&Value::String { time_ms: 7, text }),
            r#"{"resultType":"string","result":[0.007,"a"]}"#
        );
    }

    #[test]
    fn errors_have_their_type() {
        let mut out = Vec::new();
        write_error(&Error::bad_data("a \"b\""), &mut out);
        assert_eq!(
            out,
            br#"{"status":"error","errorType":"bad_data","error":"a \"b\""}"#
        );
    }
}
