//! Regular expressions as Prometheus reads them: RE2's syntax, as far as the crate `regex` has it, over whole values.

use regex::Regex;

use crate::error::Error;

/// The longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 16_384;

/// Whether `.` matches a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newlines {
    /// As in Prometheus 3.
    Matched,
    /// As in Prometheus 2.
    NotMatched,
}

/// Compiles a pattern that has to match a whole text.
pub(crate) fn compile(pattern: &str, newlines: Newlines) -> Result<Regex, Error> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(Error::bad_data(format!(
            "a regular expression has {} bytes, at most {PATTERN_BYTES_MAX} are allowed",
            pattern.len()
        )));
    }
    let flags = match newlines {
        Newlines::Matched => "s",
        Newlines::NotMatched => "",
    };
    let whole = format!(r"\A(?{flags}:{})\z", with_ascii_classes(pattern));
    Regex::new(&whole)
        .map_err(|error| Error::bad_data(format!("the regular expression {pattern:?} is refused: {error}")))
}

/// `\d`, `\w`, `\s` and `\b` know ASCII only in RE2, but Unicode in the crate.
fn with_ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str(r"[\t\n\f\r ]"),
            Some('S') => out.push_str(r"[^\t\n\f\r ]"),
            Some('b') => out.push_str(r"(?-u:\b)"),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern, Newlines::Matched).unwrap().is_match(text)
    }

    #[test]
    fn a_dot_matches_a_newline_only_as_in_prometheus_3() {
        assert!(matches("a.b", "a\nb"));
        assert!(!compile("a.b", Newlines::NotMatched).unwrap().is_match("a\nb"));
    }

    #[test]
    fn classes_know_ascii_only() {
        assert!(matches(r"\d+", "12") && !matches(r"\d+", "٣"));
        assert!(matches(r"[\w-]+", "a-b") && !matches(r"\w+", "é"));
        assert!(matches(r"[\D]", "é"));
    }

    #[test]
    fn a_pattern_that_is_too_long_or_too_large_is_refused() {
        assert!(compile(&"a".repeat(PATTERN_BYTES_MAX + 1), Newlines::Matched).is_err());
        assert!(compile("((a{1000}){1000}){1000}", Newlines::Matched).is_err());
        assert!(compile("(?=a)", Newlines::Matched).is_err());
    }
}
