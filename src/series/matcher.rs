//! Conditions on the labels of a series.

use regex::{Regex, RegexBuilder};

/// Size of a compiled pattern in bytes; larger ones are refused.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A condition on the value of a dimension; `None` stands for a series without the dimension.
#[derive(Clone, Debug, PartialEq)]
pub enum Matcher {
    /// One of these.
    In(Box<[Option<Box<str>>]>),
    /// None of these.
    NotIn(Box<[Option<Box<str>>]>),
    /// A value that the pattern matches as a whole.
    Matches(Pattern),
    /// No value, or one that the pattern does not match.
    NotMatches(Pattern),
}

/// A text that is different for different matchers.
impl std::fmt::Display for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sorted = |values: &[Option<Box<str>>]| {
            let mut values = values.to_vec();
            values.sort_unstable();
            values.dedup();
            values
        };
        match self {
            Matcher::In(values) => write!(f, "in {:?}", sorted(values)),
            Matcher::NotIn(values) => write!(f, "not in {:?}", sorted(values)),
            Matcher::Matches(pattern) => write!(f, "matches {:?}", pattern.text),
            Matcher::NotMatches(pattern) => write!(f, "does not match {:?}", pattern.text),
        }
    }
}

/// The condition of a matcher, or its opposite.
pub(super) struct Wanted<'m> {
    /// The values that pass; `None` if a pattern decides.
    pub(super) texts: Option<Vec<&'m str>>,
    pattern: Option<&'m Pattern>,
    /// Whether series without the dimension pass.
    pub(super) absent: bool,
}

impl Wanted<'_> {
    pub(super) fn passes(&self, value: Option<&str>) -> bool {
        match (value, &self.texts) {
            (None, _) => self.absent,
            (Some(value), Some(texts)) => texts.contains(&value),
            (Some(value), None) => self.pattern.is_some_and(|pattern| pattern.matches(value)),
        }
    }
}

impl Matcher {
    /// Whether a series with this value passes.
    pub fn passes(&self, value: Option<&str>) -> bool {
        let (wanted, is_complement) = self.positive();
        wanted.passes(value) != is_complement
    }

    /// The number of values that are looked up, if only series with one of them pass.
    pub fn looked_up(&self) -> Option<usize> {
        match self {
            Matcher::In(values) if !values.contains(&None) => Some(values.len()),
            _ => None,
        }
    }

    /// What is looked up, and whether those series pass that are not found.
    pub(super) fn positive(&self) -> (Wanted<'_>, bool) {
        match self {
            Matcher::In(values) => (wanted(values), false),
            Matcher::NotIn(values) => (wanted(values), true),
            Matcher::Matches(pattern) => (matching(pattern), false),
            Matcher::NotMatches(pattern) => (matching(pattern), true),
        }
    }
}

fn wanted(values: &[Option<Box<str>>]) -> Wanted<'_> {
    Wanted {
        texts: Some(values.iter().flatten().map(|value| &**value).collect()),
        pattern: None,
        absent: values.contains(&None),
    }
}

fn matching(pattern: &Pattern) -> Wanted<'_> {
    Wanted {
        texts: None,
        pattern: Some(pattern),
        absent: false,
    }
}

/// A regular expression that matches a whole value.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Box<str>,
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// Parses RE2's syntax as far as the `regex` crate has it. `\d`, `\w`, `\s` and `\b` are ASCII; `.` matches
    /// everything but a newline, unless `dot_matches_newline`.
    ///
    /// # Errors
    /// A description of what is wrong with it.
    pub fn parse(text: &str, dot_matches_newline: bool) -> Result<Self, String> {
        let build = |text: &str| {
            RegexBuilder::new(text)
                .size_limit(PATTERN_BYTES_MAX)
                .dot_matches_new_line(dot_matches_newline)
                .build()
        };
        let translated = translated(text);
        // By itself first: what closes the group around it is not a pattern.
        let regex = build(&translated).and_then(|_| build(&format!(r"\A(?:{translated})\z")));
        let regex = regex.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                format!("is too large a program, over {PATTERN_BYTES_MAX} bytes")
            }
            // The message draws the pattern over several lines; the last one says what is wrong.
            error => {
                let message = error.to_string();
                let reason = message.lines().last().unwrap_or_default();
                format!(
                    "is no regular expression of RE2's syntax: {}",
                    reason.trim_start_matches("error: ")
                )
            }
        })?;
        Ok(Pattern {
            text: text.into(),
            regex,
        })
    }

    /// The text that was parsed.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches the whole value.
    pub fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }
}

/// The pattern with ASCII classes in place of Perl's, and with characters escaped that mean something within brackets to
/// the `regex` crate alone.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    let mut is_in_class = false;
    // A bracket that closes is a character at the beginning of a class.
    let mut is_at_start = false;
    while let Some(character) = characters.next() {
        let was_at_start = std::mem::take(&mut is_at_start);
        match character {
            '\\' => match characters.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str(r"[\t\n\f\r ]"),
                Some('S') => out.push_str(r"[^\t\n\f\r ]"),
                Some('b') if !is_in_class => out.push_str(r"(?-u:\b)"),
                Some(escaped) => out.extend(['\\', escaped]),
                None => out.push('\\'),
            },
            '[' if !is_in_class => {
                is_in_class = true;
                is_at_start = true;
                out.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if characters.peek() == Some(&':') => {
                // A named class, such as [:alpha:].
                out.push('[');
                for inner in characters.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if is_in_class && was_at_start => out.push_str(r"\]"),
            ']' => {
                is_in_class = false;
                out.push(']');
            }
            '[' | '&' | '~' if is_in_class => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, value: &str) -> bool {
        let pattern = Pattern::parse(pattern, false);
        pattern.unwrap_or_else(|fault| panic!("{fault}")).matches(value)
    }

    #[test]
    fn a_pattern_matches_whole_values() {
        assert!(matches("a|ab", "ab"));
        assert!(!matches("a", "ab") && !matches("b", "ab"));
        assert!(matches("", "") && !matches("", "a"));
        assert!(!matches("a.b", "a\nb") && matches("(?s)a.b", "a\nb") && matches("(?i)AB", "ab"));
        assert!(!matches("a$", "a\n"));
    }

    #[test]
    fn classes_are_ascii_and_brackets_are_those_of_re2() {
        assert!(matches(r"\d+", "42") && !matches(r"\d", "٣"));
        assert!(matches(r"\w+", "a_1") && !matches(r"\w", "é") && matches(r"\W", "é"));
        assert!(matches(r"[\d.]+", "1.5") && matches(r"[^\s]", "x") && !matches(r"\s", "\u{a0}"));
        assert!(matches(r".*\bb.*", "a b") && matches("é.", "éa"));
        assert!(
            matches("[[]", "[")
                && matches("[a&&b]+", "a&b")
                && matches("[]a]+", "]a")
                && matches("[^]]", "x")
        );
        assert!(matches("[[:alpha:]]+", "ab") && !matches("[[:digit:]]", "a"));
    }

    #[test]
    fn what_re2_does_not_have_is_refused() {
        for wrong in [
            "a(?=b)",
            "(a)\\1",
            "(",
            "a)|(b",
            "[",
            "*",
            "a{2,1}",
            "(?:x{1000}){1000}",
        ] {
            assert!(Pattern::parse(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_complement_is_exact() {
        let text = |text: &str| Some(Box::from(text));
        for (values, found) in [
            (vec![text("a")], [true, false, false]),
            (vec![None], [false, false, true]),
            (vec![text("a"), None], [true, false, true]),
        ] {
            let values: Box<[_]> = values.into();
            let is_in = Matcher::In(values.clone());
            let is_not_in = Matcher::NotIn(values);
            for (value, passes) in [Some("a"), Some("b"), None].into_iter().zip(found) {
                assert_eq!(is_in.passes(value), passes);
                assert_eq!(is_not_in.passes(value), !passes);
            }
        }
        let pattern = Pattern::parse(".*", false).unwrap();
        assert!(!Matcher::Matches(pattern.clone()).passes(None));
        assert!(Matcher::NotMatches(pattern).passes(None));
    }
}
