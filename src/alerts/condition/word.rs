//! What boolean and string fields are compared with.

use winnow::Parser;
use winnow::combinator::{alt, repeat};
use winnow::token::any;

use super::refusal::{Parsed, Refusal};
use super::token::{Kind, Token, Tokens, is_one_of, phrase};

/// Words that say that more follows than a text, or that its negation or choice is meant.
const NOT_FIRST: &str = "not|no|never|neither|either|any|anything|something|nothing|one|both|always|still|again|like|\
                         unlike|also|only|and|or|at|about|almost";
const NOT_LATER: &str = "and|or|but|nor|for|in|within|during|over|under|above|below|since|until|till|unless|while|when|\
                         whenever|if|then|than|every|after|before|not|again|by|is|are|has|have|does";

/// True or false, in one of the words for it.
pub(super) fn boolean(input: &mut Tokens<'_>) -> Parsed<bool> {
    let start = *input;
    alt((
        phrase("true|yes|on|open|opened|active|enabled|1").value(true),
        phrase("false|no|off|closed|shut|inactive|disabled|0").value(false),
    ))
    .parse_next(input)
    .map_err(|_: Refusal| {
        Refusal::expected(
            &start,
            "true or false (or on, off, yes, no, open, closed, active, inactive, enabled, disabled, 1, 0)",
        )
    })
}

/// A text in quotes, or plain words as they are written.
pub(super) fn text<'t>(input: &mut Tokens<'t>) -> Parsed<&'t str> {
    let quoted = any.verify_map(|token: &'t Token<'t>| match token.kind {
        Kind::Quoted(inside) => Some(inside),
        _ => None,
    });
    alt((quoted, plain)).parse_next(input)
}

fn plain<'t>(input: &mut Tokens<'t>) -> Parsed<&'t str> {
    let start = *input;
    let first = any.verify(|token: &&Token<'_>| is_plain(token) && !is_one_of(token, NOT_FIRST));
    let later = any.verify(|token: &&Token<'_>| is_plain(token) && !is_one_of(token, NOT_LATER));
    (first, repeat::<_, _, (), _, _>(0.., alt((later.void(), point))))
        .take()
        .verify_map(|taken: &'t [Token<'t>]| Some(taken.first()?.text_to(taken.last()?)))
        .parse_next(input)
        .map_err(|_: Refusal| Refusal::expected(&start, "a text, in quotes unless it is plain words,"))
}

/// A point or colon within a text, not at the end of a sentence.
fn point(input: &mut Tokens<'_>) -> Parsed<()> {
    match &**input {
        [point, next, ..] if point.touches(next) && is_plain(next) => phrase(".|:").parse_next(input),
        _ => Err(Refusal::unexpected(input)),
    }
}

fn is_plain(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Word | Kind::Numeral => true,
        Kind::Quoted(_) => false,
        Kind::Sign => is_one_of(token, "-|+|#|%|@") || token.text().chars().all(is_picture),
    }
}

/// A character that is no punctuation: a degree sign, an arrow, an emoji.
fn is_picture(c: char) -> bool {
    !c.is_ascii()
        && !matches!(c, '≤'..='≧' | '⩽' | '⩾' | '≠' | '«' | '»' | '‐'..='⁞' | '、'..='】' | '！'..='｠')
}
