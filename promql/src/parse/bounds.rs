//! What is refused before the grammar sees a text.
//!
//! The grammar is recursive, quadratic in the number of operators, and panics on durations that are no finite number.

use std::borrow::Cow;

use crate::error::Error;

/// The longest question, in bytes.
pub const QUERY_BYTES_MAX: usize = 65_536;

/// How deep an expression may be nested.
pub const NESTING_MAX: usize = 200;

/// How many operators a question may have.
pub const OPERATORS_MAX: usize = 1_000;

/// The longest duration, in seconds: 290 years, as far as Prometheus counts nanoseconds.
const SECONDS_MAX: f64 = 290.0 * 365.0 * 86_400.0;

/// The text as the grammar is to read it.
///
/// `offset 0s` becomes `offset 0`, which the grammar takes.
pub(super) fn check(query: &str) -> Result<Cow<'_, str>, Error> {
    if query.len() > QUERY_BYTES_MAX {
        return Err(Error::bad_data(format!(
            "the query has {} bytes, at most {QUERY_BYTES_MAX} are allowed",
            query.len()
        )));
    }
    let mut nesting: usize = 0;
    let mut operators: usize = 0;
    let mut brackets = false;
    let mut after_offset = false;
    let mut zeros = Vec::new();
    let bytes = query.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        at += 1;
        match bytes[from] {
            b'#' => at = find(bytes, at, |byte| matches!(byte, b'\n' | b'\r')),
            quote @ (b'"' | b'\'' | b'`') => at = after_string(bytes, at, quote),
            b'(' => nesting += 1,
            b')' => nesting = nesting.saturating_sub(1),
            b'[' => brackets = true,
            b']' => brackets = false,
            byte if byte.is_ascii_whitespace() => continue,
            byte @ (b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'=' | b'!' | b'<' | b'>' | b'@') => {
                operators += 1;
                // A sign stands between `offset` and its duration.
                if matches!(byte, b'+' | b'-') {
                    continue;
                }
            }
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') => {
                at = after_word(bytes, from);
                let word = &query[from..at];
                if is_operator(word) {
                    operators += 1;
                }
                if after_offset || brackets {
                    duration(word)?;
                }
                if after_offset && is_zero_duration(word) {
                    zeros.push(from..at);
                }
                after_offset = word.eq_ignore_ascii_case("offset");
                continue;
            }
            _ => {}
        }
        after_offset = false;
        bound("is nested", nesting, NESTING_MAX)?;
        bound("has operators", operators, OPERATORS_MAX)?;
    }
    bound("has operators", operators, OPERATORS_MAX)?;
    if zeros.is_empty() {
        return Ok(Cow::Borrowed(query));
    }
    let mut text = query.to_owned();
    for zero in zeros.into_iter().rev() {
        text.replace_range(zero, "0");
    }
    Ok(Cow::Owned(text))
}

fn bound(what: &str, count: usize, count_max: usize) -> Result<(), Error> {
    if count > count_max {
        return Err(Error::bad_data(format!(
            "the query {what} more than {count_max} times: split it"
        )));
    }
    Ok(())
}

fn is_operator(word: &str) -> bool {
    ["and", "or", "unless", "atan2"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
}

fn find(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let found = bytes[from..].iter().position(|byte| wanted(*byte));
    found.map_or(bytes.len(), |length| from + length)
}

fn after_string(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A word, or a number with the sign of its exponent.
fn after_word(bytes: &[u8], from: usize) -> usize {
    let number = bytes[from].is_ascii_digit() || bytes[from] == b'.';
    let hexadecimal = bytes
        .get(from + 1)
        .is_some_and(|byte| matches!(byte, b'x' | b'X'));
    let mut at = from + 1;
    while at < bytes.len() {
        let exponent = number && !hexadecimal && matches!(bytes[at - 1], b'e' | b'E');
        let signed = exponent && matches!(bytes[at], b'+' | b'-');
        if !(bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'_' | b'.') || signed) {
            break;
        }
        at += 1;
    }
    at
}

/// Refuses what stands for a duration and is not finite, or longer than [`SECONDS_MAX`].
fn duration(word: &str) -> Result<(), Error> {
    let refused = || {
        Err(Error::bad_data(format!(
            "parse error: the duration {word} is out of range"
        )))
    };
    if let Ok(seconds) = word.parse::<f64>() {
        return if seconds.is_finite() && seconds <= SECONDS_MAX {
            Ok(())
        } else {
            refused()
        };
    }
    // `1h30m`: the grammar takes a number that does not fit for zero.
    let mut digits = word
        .split(|char: char| !char.is_ascii_digit())
        .filter(|digits| !digits.is_empty());
    if word.starts_with(|char: char| char.is_ascii_digit())
        && digits.any(|digits| digits.parse::<u32>().is_err())
    {
        return refused();
    }
    Ok(())
}

fn is_zero_duration(word: &str) -> bool {
    word.len() > 1
        && word.starts_with('0')
        && word.ends_with(|char: char| char.is_ascii_alphabetic())
        && word
            .bytes()
            .all(|byte| byte == b'0' || byte.is_ascii_alphabetic() && byte != b'x' && byte != b'X')
}
