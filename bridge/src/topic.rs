//! Patterns of topics: which messages a pattern takes, and which levels become the source and dimensions. Pure.

use std::fmt;

use crate::config::NAME_CHARACTERS_MAX;
use crate::line;

/// The placeholder whose level names the source.
const SOURCE: &str = "source";
/// MQTT's bound for a topic (MQTT 5, section 1.5.4), and so for a filter.
const TOPIC_BYTES_MAX: usize = 65_535;

/// A topic as the configuration writes it, such as `plant/{site}/{source}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    levels: Vec<Level>,
    /// Takes all further levels, none included. Stands behind `levels`.
    rest: Option<Level>,
    /// The name of the source, unless a level has it.
    source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Level {
    /// Must be equal.
    Literal(String),
    /// `+`, or `#` at the end: anything, which is not kept.
    Any,
    /// `{name}`, or `{name...}` at the end.
    Dimension(String),
    /// `{source}`, or `{source...}` at the end.
    Source,
}

/// What a topic says about its messages.
#[derive(Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Name of the source; may be empty, as levels of topics may.
    pub source: &'a str,
    /// Names and values in the order of the pattern. A value may be empty.
    pub dimensions: Vec<(&'a str, &'a str)>,
}

/// Why a pattern is not valid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is empty or longer than a topic may be.
    #[error("a topic has 1 to {TOPIC_BYTES_MAX} bytes")]
    Length,
    /// A placeholder or wildcard is only a part of a level.
    #[error("{0:?}: a placeholder or wildcard stands for a whole level, as in plant/{{site}}/{{source}}")]
    PartOfLevel(String),
    /// `#` or `{name...}` stands before another level.
    #[error("{0:?} stands for all further levels, so it must be the last one")]
    NotLast(String),
    /// The name cannot be that of a dimension.
    #[error(
        "{0:?} cannot name a dimension: 1 to 128 characters, no control character, no backslash at the end"
    )]
    Name(String),
    /// A name occurs more than once.
    #[error("{{{0}}} stands more than once")]
    Twice(String),
    /// Neither a level nor the member `source` names the source.
    #[error("nothing names the source: write {{source}} for one of the levels, or add source = \"NAME\"")]
    NoSource,
    /// A level and the member `source` name the source.
    #[error("both {{source}} and source = {0:?} name the source: remove one of them")]
    TwoSources(String),
    /// The source's name cannot be written as a measurement.
    #[error(
        "source = {0:?}: 1 to 128 characters, no control character, no # at the start, no backslash at the end"
    )]
    Source(String),
    /// `$share/…` would need a place of its own in the pattern.
    #[error(
        "shared subscriptions ($share/…) are not supported: the order of a source's messages would be lost"
    )]
    Shared,
}

impl Pattern {
    /// Reads a pattern. Levels are separated by `/`; a level is a text, `+`, `{name}`, or at the end `#` or `{name...}`.
    /// `source` names the source of all its messages.
    ///
    /// # Errors
    /// See [`PatternError`].
    pub fn parse(topic: &str, source: Option<&str>) -> Result<Self, PatternError> {
        if topic.is_empty() || topic.len() > TOPIC_BYTES_MAX {
            return Err(PatternError::Length);
        }
        if topic.starts_with("$share/") {
            return Err(PatternError::Shared);
        }
        let mut pattern = Self {
            levels: Vec::new(),
            rest: None,
            source: source.map(str::to_owned),
        };
        for text in topic.split('/') {
            if let Some(rest) = &pattern.rest {
                return Err(PatternError::NotLast(rest.to_string() + "..."));
            }
            match rest_of(text) {
                Some("") => pattern.rest = Some(Level::Any),
                Some(name) => pattern.rest = Some(Level::named(name)?),
                None => pattern.levels.push(Level::parse(text)?),
            }
        }
        pattern.check_names()?;
        Ok(pattern)
    }

    fn all(&self) -> impl Iterator<Item = &Level> {
        self.levels.iter().chain(&self.rest)
    }

    fn check_names(&self) -> Result<(), PatternError> {
        let mut names: Vec<&str> = self.all().filter_map(Level::name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PatternError::Twice(pair[0].to_owned()));
        }
        match (&self.source, names.contains(&SOURCE)) {
            (None, true) => Ok(()),
            (None, false) => Err(PatternError::NoSource),
            (Some(name), true) => Err(PatternError::TwoSources(name.clone())),
            (Some(name), false) if is_name(name) && !name.starts_with('#') => Ok(()),
            (Some(name), false) => Err(PatternError::Source(name.clone())),
        }
    }

    /// The filter to subscribe to.
    pub fn filter(&self) -> String {
        let levels = self.levels.iter().map(|level| match level {
            Level::Literal(text) => text.as_str(),
            Level::Any | Level::Dimension(_) | Level::Source => "+",
        });
        levels
            .chain(self.rest.iter().map(|_| "#"))
            .collect::<Vec<_>>()
            .join("/")
    }

    /// What this topic says, or none if the pattern does not take it.
    pub fn matches<'a>(&'a self, topic: &'a str) -> Option<Origin<'a>> {
        // As for a broker (MQTT 5, section 4.7.2): a wildcard at the start does not take $SYS and the like.
        if topic.starts_with('$') && !matches!(self.levels.first(), Some(Level::Literal(_))) {
            return None;
        }
        let mut origin = Origin {
            source: self.source.as_deref().unwrap_or_default(),
            dimensions: Vec::new(),
        };
        let mut remaining = Some(topic);
        for level in &self.levels {
            let (text, behind) = match remaining?.split_once('/') {
                Some((text, behind)) => (text, Some(behind)),
                None => (remaining?, None),
            };
            remaining = behind;
            level.take(text, &mut origin)?;
        }
        match (&self.rest, remaining) {
            (Some(rest), remaining) => rest.take(remaining.unwrap_or_default(), &mut origin)?,
            (None, None) => {}
            (None, Some(_)) => return None,
        }
        Some(origin)
    }
}

/// The name in `{name...}`, empty for `#`.
fn rest_of(text: &str) -> Option<&str> {
    match text {
        "#" => Some(""),
        _ => text.strip_prefix('{')?.strip_suffix("...}"),
    }
}

fn is_name(name: &str) -> bool {
    let characters = name.chars().count();
    (1..=NAME_CHARACTERS_MAX).contains(&characters) && line::is_writable(name)
}

impl Level {
    fn parse(text: &str) -> Result<Self, PatternError> {
        if text == "+" {
            return Ok(Self::Any);
        }
        if let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            return Self::named(name);
        }
        if text.contains(['+', '#', '{', '}']) {
            return Err(PatternError::PartOfLevel(text.to_owned()));
        }
        Ok(Self::Literal(text.to_owned()))
    }

    fn named(name: &str) -> Result<Self, PatternError> {
        if name == SOURCE {
            return Ok(Self::Source);
        }
        if !is_name(name) || name.contains(['{', '}']) {
            return Err(PatternError::Name(name.to_owned()));
        }
        Ok(Self::Dimension(name.to_owned()))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) | Self::Any => None,
            Self::Dimension(name) => Some(name),
            Self::Source => Some(SOURCE),
        }
    }

    /// Takes the text of a level, or nothing if it is another literal.
    fn take<'a>(&'a self, text: &'a str, origin: &mut Origin<'a>) -> Option<()> {
        match self {
            Self::Literal(literal) => return (literal == text).then_some(()),
            Self::Any => {}
            Self::Dimension(name) => origin.dimensions.push((name, text)),
            Self::Source => origin.source = text,
        }
        Some(())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => f.write_str(text),
            Self::Any => f.write_str("#"),
            Self::Dimension(name) => write!(f, "{{{name}}}"),
            Self::Source => write!(f, "{{{SOURCE}}}"),
        }
    }
}
