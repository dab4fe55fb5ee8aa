//! Matchers of labels.

use regex::Regex;

use crate::error::Error;
use crate::pattern;

/// How a matcher compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    NotMatches,
}

/// A condition on the value of one label. An absent label has the empty value.
#[derive(Clone, Debug)]
pub struct Matcher {
    name: String,
    op: MatchOp,
    value: String,
    regex: Option<Regex>,
}

impl Matcher {
    /// A matcher; a pattern that cannot be compiled is `bad_data`. Patterns match whole values.
    pub fn new(name: &str, op: MatchOp, value: &str, newlines: pattern::Newlines) -> Result<Matcher, Error> {
        let regex = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Matches | MatchOp::NotMatches => Some(pattern::compile(value, newlines)?),
        };
        Ok(Matcher {
            name: name.to_owned(),
            op,
            value: value.to_owned(),
            regex,
        })
    }

    /// The name of the label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the value is compared.
    pub fn op(&self) -> MatchOp {
        self.op
    }

    /// The value or the pattern, as it was written.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether a value satisfies it.
    pub fn matches(&self, value: &str) -> bool {
        let found = self
            .regex
            .as_ref()
            .map_or(self.value == value, |regex| regex.is_match(value));
        match self.op {
            MatchOp::Equal | MatchOp::Matches => found,
            MatchOp::NotEqual | MatchOp::NotMatches => !found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Newlines;

    fn matches(op: MatchOp, pattern: &str, value: &str) -> bool {
        Matcher::new("a", op, pattern, Newlines::Matched)
            .unwrap()
            .matches(value)
    }

    #[test]
    fn patterns_match_whole_values_and_absent_is_empty() {
        assert!(matches(MatchOp::Matches, "b.*", "bc"));
        assert!(!matches(MatchOp::Matches, "b", "bc"));
        assert!(matches(MatchOp::Matches, ".*", ""));
        assert!(matches(MatchOp::NotMatches, ".+", ""));
        assert!(matches(MatchOp::Matches, "a|b", "b"));
        assert!(!matches(MatchOp::NotEqual, "b", "b"));
    }
}
