//! Values of boolean and string fields.

use winnow::Parser;
use winnow::combinator::{alt, opt, peek, preceded, repeat};
use winnow::token::any;

use super::field::Names;
use super::framing;
use super::refusal::{Parsed, Refusal, Why};
use super::token::{Kind, Token, Tokens, is_one_of, phrase};

/// Words that may continue a comparison, so as values they must be in quotes.
const NO_TEXT: &str = "not|no|never|neither|either|any|anything|something|nothing|one|both|always|still|again|like|\
                       unlike|also|only|and|or|at|about|almost|a|an|the|to|into|in|on|by|of|for|from|as|with|than|\
                       more|less|greater|higher|larger|smaller|lower|fewer|better|worse|equal|similar|identical|\
                       different|changed|changing|change|unchanged|constant|same|increasing|decreasing|rising|\
                       falling|dropping|growing|climbing|increased|decreased|null|nil|none|nan|empty|blank|missing|\
                       absent|present|undefined|defined|set|unset|it|there|that|this|once|twice|yet|ever";

/// True or false, in one of several words, optionally in quotes.
pub(super) fn boolean(input: &mut Tokens<'_>) -> Parsed<bool> {
    let start = *input;
    any.verify_map(|token: &Token<'_>| {
        let word = match token.kind {
            Kind::Quoted(inside) => inside,
            _ => token.text(),
        };
        let among = |words: &str| words.split('|').any(|one| word.eq_ignore_ascii_case(one));
        let on = among("true|yes|on|open|opened|active|enabled|1");
        (on || among("false|no|off|closed|shut|inactive|disabled|0")).then_some(on)
    })
    .parse_next(input)
    .map_err(|_: Refusal| {
        Refusal::new(&start, Why::Expected("true or false (or on, off, yes, no, open, closed, active, inactive, enabled, disabled, 1, 0)"))
    })
}

/// A text in quotes, or a single word that is not a field name.
pub(super) fn text<'t>(names: &Names<'_>, input: &mut Tokens<'t>) -> Parsed<&'t str> {
    let start = *input;
    if let Some(Token {
        kind: Kind::Quoted(inside),
        ..
    }) = start.first()
    {
        any.void().parse_next(input)?;
        return Ok(inside);
    }
    let word = word.parse_next(input).map_err(|_: Refusal| {
        Refusal::new(
            &start,
            Why::Expected("a text, in quotes unless it is a single word,"),
        )
    })?;
    let names_a_field = names.at(&start).iter().any(|name| name.tokens == word.len());
    let (Some(first), Some(last)) = (word.first(), word.last()) else {
        return Err(Refusal::unexpected(&start));
    };
    if names_a_field || (word.len() == 1 && is_one_of(first, NO_TEXT)) {
        return Err(Refusal::new(&start, Why::Because(NOT_A_TEXT)));
    }
    if peek(framing::ending).parse_next(input).is_err() {
        return Err(Refusal::new(input, Why::Because(NOT_ONE_WORD)));
    }
    Ok(first.text_to(last))
}

const NOT_A_TEXT: &str = "if this is the text to compare with, put it in quotes";
const NOT_ONE_WORD: &str = "a text to compare with is a single word of letters, digits, \"-\", \"_\" and \".\", or in \
                            quotes, and only one comparison is understood, without durations and times of day";

/// The tokens of a word, including the characters that join them.
fn word<'t>(input: &mut Tokens<'t>) -> Parsed<&'t [Token<'t>]> {
    let part = || any.verify(|token: &&Token<'_>| is_part(token)).void();
    let minus = (phrase("-"), touching);
    let more = preceded(touching, alt(((phrase("-|."), touching, part()).void(), part())));
    (opt(minus), part(), repeat::<_, _, (), _, _>(0.., more))
        .take()
        .parse_next(input)
}

/// Succeeds if there is no white space at this position.
fn touching(input: &mut Tokens<'_>) -> Parsed<()> {
    match (input.previous_tokens().next(), input.first()) {
        (Some(before), Some(next)) if before.touches(next) => Ok(()),
        _ => Err(Refusal::unexpected(input)),
    }
}

fn is_part(token: &Token<'_>) -> bool {
    let letters = |c: char| c.is_alphanumeric() || c == '_';
    match token.kind {
        Kind::Word => token.text().chars().all(letters),
        Kind::Numeral => !token.text().contains(','),
        Kind::Quoted(_) | Kind::Sign => false,
    }
}
