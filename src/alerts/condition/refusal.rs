//! How far parsing got and why it failed, and the error made from the alternative that got furthest.

use winnow::error::ParserError;
use winnow::stream::Stream;

use super::field::Spelled;
use super::token::{Kind, TOKENS_MAX, Token, Tokens, is_one_of};
use crate::catalog::{Field, Schema};

/// The result of a token parser.
pub(super) type Parsed<T> = Result<T, Refusal>;

/// Why a condition was refused. Shown to its author: the message lists what is understood, and the fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The text is not understood, or the comparison does not suit the field's type.
    #[error("{0}")]
    NotUnderstood(String),
    /// The text names no field of the schema, or the name is ambiguous.
    #[error("{0}")]
    Field(String),
}

impl ConditionError {
    pub(super) fn too_long(schema: &Schema) -> Self {
        let fault = format!(
            "the condition has more than {TOKENS_MAX} words and signs; a long text to compare with goes in quotes"
        );
        Self::NotUnderstood(with_help(&fault, schema))
    }

    /// `rest` is where a field name was expected.
    pub(super) fn no_field(rest: &[Token<'_>], schema: &Schema) -> Self {
        let fault = match rest.first() {
            Some(token) => format!("no field of the data source is named at {}", excerpt(token)),
            None => String::from("the condition names no field"),
        };
        Self::Field(with_help(&fault, schema))
    }

    pub(super) fn ambiguous(candidates: &[Spelled<'_>], schema: &Schema) -> Self {
        let names: Vec<String> = candidates
            .iter()
            .map(|name| format!("{:?}", name.field.name))
            .collect();
        let fault = format!(
            "the condition may mean any of the fields {}; write the name exactly as in the schema",
            names.join(", ")
        );
        Self::Field(with_help(&fault, schema))
    }

    /// `field` is the field whose name was parsed.
    pub(super) fn refused(refusal: &Refusal, field: &Field, tokens: &[Token<'_>], schema: &Schema) -> Self {
        let rest = &tokens[tokens.len().saturating_sub(refusal.left)..];
        let place = match rest.first() {
            Some(token) => format!("at {}", excerpt(token)),
            None => String::from("at its end"),
        };
        let fault = match refusal.why {
            Why::Unexpected => format!(
                "the condition is not understood {place}{}",
                hint(tokens, rest, field)
            ),
            Why::Expected(what) => format!("the condition needs {what} {place}"),
            Why::Because(reason) => format!("the condition is refused {place}: {reason}"),
            Why::OtherUnit => {
                let unit = field.unit.as_deref().unwrap_or_default();
                format!(
                    "the condition is refused {place}: the field is in {unit}, and nothing is converted; write the \
                     number in {unit}, or without a unit"
                )
            }
        };
        Self::NotUnderstood(with_help(&fault, schema))
    }
}

/// Where and why parsing stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Number of tokens left.
    left: usize,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The next token continues no phrase.
    Unexpected,
    /// This is required here.
    Expected(&'static str),
    /// The phrase is understood up to here but not allowed; no alternative is tried.
    Because(&'static str),
    /// The unit at this position is not the field's.
    OtherUnit,
}

impl Refusal {
    /// The next token continues no phrase.
    pub fn unexpected(input: &Tokens<'_>) -> Self {
        Self::new(input, Why::Unexpected)
    }

    /// Orders refusals: the one that got furthest comes first, among equal ones the most specific.
    pub fn rank(self) -> (usize, bool) {
        (self.left, self.why == Why::Unexpected)
    }

    pub fn new(input: &Tokens<'_>, why: Why) -> Self {
        Self {
            left: input.eof_offset(),
            why,
        }
    }
}

impl<'t> ParserError<Tokens<'t>> for Refusal {
    type Inner = Self;

    fn from_input(input: &Tokens<'t>) -> Self {
        Self::unexpected(input)
    }

    fn or(self, other: Self) -> Self {
        if other.rank() < self.rank() { other } else { self }
    }

    fn is_backtrack(&self) -> bool {
        !matches!(self.why, Why::Because(_) | Why::OtherUnit)
    }

    fn into_inner(self) -> Result<Self::Inner, Self> {
        Ok(self)
    }
}

/// The condition from this token on, truncated.
fn excerpt(token: &Token<'_>) -> String {
    const CHARS_MAX: usize = 40;
    match token.onward.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &token.onward[..end])),
        None => format!("{:?}", token.onward.trim_end()),
    }
}

/// A hint for common continuations that are not supported.
fn hint(tokens: &[Token<'_>], rest: &[Token<'_>], field: &Field) -> String {
    const HINTS: &[(&str, &str)] = &[
        (
            "and|or|but|nor|,|;|&",
            " (one comparison at a time: make a rule of each; a text of several words goes in quotes)",
        ),
        (
            "for|in|within|during|over|every|since|last|per|at|on|today|tonight",
            " (durations and times of day are not part of a condition)",
        ),
        (
            "k|m|b|bn|mn|mio|mil|hundred|thousand|million|billion|trillion|x|times",
            " (write the number itself in digits, such as 10000; a unit K or M is taken when it is the field's own)",
        ),
    ];
    const NO_UNIT: &str =
        " (no unit that is known; one that the schema gives the field is taken as it is written there)";
    let Some(first) = rest.first() else {
        return String::new();
    };
    if let Some((_, hint)) = HINTS.iter().find(|(words, _)| is_one_of(first, words)) {
        return (*hint).to_owned();
    }
    let before = &tokens[..tokens.len() - rest.len()];
    let follows_number = before.last().is_some_and(|last| last.kind == Kind::Numeral);
    match &field.unit {
        _ if !follows_number || first.kind != Kind::Word => String::new(),
        Some(unit) if !unit.trim().is_empty() => format!(" (no unit that is known; the field is in {unit})"),
        _ => NO_UNIT.to_owned(),
    }
}

fn with_help(fault: &str, schema: &Schema) -> String {
    let fields: Vec<String> = schema
        .fields
        .iter()
        .map(|field| format!("{:?} ({})", field.name, field.kind.name()))
        .collect();
    format!(
        "{fault}; understood are comparisons of one field (FIELD > 30, FIELD drops below 5, FIELD is not equal to 3, \
         FIELD is open), ranges (FIELD between 10 and 20, FIELD outside 10 to 20) and changes (FIELD increases by more \
         than 5, FIELD drops by 20%); the fields are {}",
        fields.join(", ")
    )
}
