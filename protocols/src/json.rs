//! Writes numbers and strings as the API writes them, so that a label is spelled alike whichever way it came.

use crate::bytewise::{below, equal};

/// Above this not every integer is a double.
const INTEGER_MAX: f64 = (1u64 << 53) as f64;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends the shortest text that parses to a finite `value`, integers without `.0`; or the string that the JSON of
/// protobuf has for it.
pub(crate) fn write_number(value: f64, out: &mut Vec<u8>) {
    let integer = value as i64;
    if value.abs() <= INTEGER_MAX && (integer as f64).to_bits() == value.to_bits() {
        write_integer(integer, out);
    } else if value.is_finite() {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
        out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
    } else if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else {
        let text: &[u8] = if value > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        };
        out.extend_from_slice(text);
    }
}

/// Appends an integer.
pub(crate) fn write_integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends `text` in quotes with the minimum of escapes. It is not checked to be UTF-8.
#[inline]
pub(crate) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    write_inside(text, out);
    out.push(b'"');
}

/// Appends `text` as it stands inside of a JSON string.
#[inline]
pub(crate) fn write_inside(text: &[u8], out: &mut Vec<u8>) {
    match is_plain(text) {
        true => out.extend_from_slice(text),
        false => write_escaped(text, out),
    }
}

/// Whether JSON escapes no byte of a text, as is so for nearly every label. Eight bytes are looked at in one step; the
/// last step overlaps the one before.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<8>() {
        let (words, _) = text.as_chunks::<8>();
        return !escapes(u64::from_le_bytes(*last))
            && !words.iter().any(|word| escapes(u64::from_le_bytes(*word)));
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let halves = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return !escapes(halves[0] | halves[1] << 32);
    }
    // Not by way of an array: reading a word that was just written byte by byte stalls.
    !text
        .iter()
        .any(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'))
}

/// Whether a byte is a control character, a quote or a backslash.
#[inline]
const fn escapes(word: u64) -> bool {
    below(word, b' ') | equal(word, b'"') | equal(word, b'\\') != 0
}

#[cold]
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{write_number, write_string};

    #[test]
    fn strings_are_what_serde_json_reads_and_escaped_only_where_needed() {
        let characters = [
            "a", "é", "日", "\"", "\\", "\n", "\r", "\t", "\0", "\u{1f}", "\u{7f}", " ", "/", "\u{80}",
        ];
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let text: String = (0..random.usize(0..24))
                .map(|_| match random.u8(0..20) {
                    0 => characters[random.usize(..characters.len())],
                    _ => "x",
                })
                .collect();
            let mut json = Vec::new();
            write_string(text.as_bytes(), &mut json);
            assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
            let escapes = text
                .chars()
                .filter(|c| matches!(c, '"' | '\\') || *c < ' ')
                .count();
            assert_eq!(escapes == 0, json.len() == text.len() + 2, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_spelled_as_the_api_spells_them() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (2.5, "2.5"),
            (1e3, "1000"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e21, "1e+21"),
            (0.005, "0.005"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            let mut json = Vec::new();
            write_number(number, &mut json);
            assert_eq!(String::from_utf8(json).unwrap(), text);
        }
    }
}
