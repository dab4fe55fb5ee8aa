//! Splits text into tokens: words, numerals, quoted texts and signs. Phrases match tokens, so the grammar does not deal
//! with white space and case.

use winnow::Parser;
use winnow::ascii::digit1;
use winnow::combinator::{alt, delimited, opt, peek, preceded, repeat, terminated};
use winnow::error::{EmptyError, ParserError};
use winnow::stream::{LocatingSlice, TokenSlice};
use winnow::token::{any, one_of, take_till, take_while};

use super::refusal::{Parsed, Refusal};

/// Far more than a condition needs. Longer texts are refused, which bounds the parser's work.
pub(super) const TOKENS_MAX: usize = 1_024;

/// Longer quoted texts are not recognized, so that unclosed quotes cost little.
const QUOTED_CHARS_MAX: usize = 4_096;

/// The rest of a condition that is not parsed yet.
pub(super) type Tokens<'t> = TokenSlice<'t, Token<'t>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub kind: Kind<'t>,
    /// Byte offset in the condition.
    pub start: usize,
    pub end: usize,
    /// The condition from this token on.
    pub onward: &'t str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// Starts with a letter or `_`; continues with digits too, and with apostrophes before letters.
    Word,
    /// Digits with points, commas and an exponent, without a sign. Not necessarily a valid number.
    Numeral,
    /// The text between the quotes.
    Quoted(&'t str),
    /// Any other character, or a comparison of several characters.
    Sign,
}

impl<'t> Token<'t> {
    /// As written.
    pub fn text(&self) -> &'t str {
        &self.onward[..self.end - self.start]
    }

    /// The text from this token to the end of `last`.
    pub fn text_to(&self, last: &Self) -> &'t str {
        &self.onward[..last.end - self.start]
    }

    /// Whether it is this keyword, in any case. A `~` after the keyword stands for an optional "s". A quoted text is no
    /// keyword.
    pub fn is(&self, keyword: &str) -> bool {
        let plain = |c: char| if c == '’' { '\'' } else { c.to_ascii_lowercase() };
        let spells = |text: &str, keyword: &str| text.chars().map(plain).eq(keyword.chars());
        let text = self.text();
        let spelled = match keyword.strip_suffix('~') {
            Some(stem) => [Some(text), text.strip_suffix(['s', 'S'])]
                .into_iter()
                .flatten()
                .any(|text| spells(text, stem)),
            None => spells(text, keyword),
        };
        spelled && !matches!(self.kind, Kind::Quoted(_))
    }

    /// Whether `next` follows without white space.
    pub fn touches(&self, next: &Self) -> bool {
        self.end == next.start
    }
}

/// Splits a text into tokens; `None` if there are more than [`TOKENS_MAX`].
pub(super) fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let token = token.with_span().map(|(kind, place)| Token {
        kind,
        start: place.start,
        end: place.end,
        onward: &text[place.start..],
    });
    terminated(repeat(0..=TOKENS_MAX, preceded(blank, token)), blank)
        .parse(LocatingSlice::new(text))
        .ok()
}

/// Matches one of the phrases of `pattern`, the longest. `; ` separates phrases, a space the words of a phrase, and `|`
/// alternatives for one word; `?` after them makes the word optional, and `~` after one of them its final "s". Patterns
/// are in lower case, with straight apostrophes.
pub(super) fn phrase<'t>(pattern: &'static str) -> impl Parser<Tokens<'t>, (), Refusal> {
    move |input: &mut Tokens<'t>| {
        let rests = pattern.split("; ").map(|words| after_words(words, *input));
        let best = rests.reduce(|one, other| match (one, other) {
            (Ok(one), Ok(other)) => Ok(if other.len() < one.len() { other } else { one }),
            (Err(one), Err(other)) => Err(one.or(other)),
            (found @ Ok(_), Err(_)) | (Err(_), found @ Ok(_)) => found,
        });
        *input = best.unwrap_or_else(|| Err(Refusal::unexpected(input)))?;
        Ok(())
    }
}

/// What follows the words of one phrase.
fn after_words<'t>(words: &'static str, mut input: Tokens<'t>) -> Parsed<Tokens<'t>> {
    for keywords in words.split(' ') {
        let word = |keywords| any.verify(move |token: &&Token<'_>| is_one_of(token, keywords));
        match keywords.strip_suffix('?') {
            Some(optional) => opt(word(optional)).void().parse_next(&mut input)?,
            None => word(keywords).void().parse_next(&mut input)?,
        }
    }
    Ok(input)
}

/// Matches the longest phrase of a table, whatever the order of its rows, and returns its meaning.
pub(super) fn longest<'t, T: Copy>(
    table: &'static [(&'static str, T)],
) -> impl Parser<Tokens<'t>, T, Refusal> {
    move |input: &mut Tokens<'t>| {
        let found = table
            .iter()
            .filter_map(|(pattern, meaning)| {
                let mut rest = *input;
                phrase(pattern).parse_next(&mut rest).ok()?;
                Some((rest, *meaning))
            })
            .min_by_key(|(rest, _)| rest.len());
        let (rest, meaning) = found.ok_or_else(|| Refusal::unexpected(input))?;
        *input = rest;
        Ok(meaning)
    }
}

/// Whether the token is one of `keywords`, separated by `|`.
pub(super) fn is_one_of(token: &Token<'_>, keywords: &str) -> bool {
    keywords.split('|').any(|keyword| token.is(keyword))
}

type Text<'t> = LocatingSlice<&'t str>;
type Lexed<T> = winnow::Result<T, EmptyError>;

fn blank(input: &mut Text<'_>) -> Lexed<()> {
    take_while(0.., char::is_whitespace).void().parse_next(input)
}

fn token<'t>(input: &mut Text<'t>) -> Lexed<Kind<'t>> {
    alt((
        quoted.map(Kind::Quoted),
        comparison.value(Kind::Sign),
        numeral.value(Kind::Numeral),
        word.value(Kind::Word),
        any.value(Kind::Sign),
    ))
    .parse_next(input)
}

fn quoted<'t>(input: &mut Text<'t>) -> Lexed<&'t str> {
    let between = |open: char, close: char| delimited(open, take_till(0..=QUOTED_CHARS_MAX, close), close);
    alt((
        between('"', '"'),
        between('\'', '\''),
        between('`', '`'),
        between('“', '”'),
        between('„', '“'),
        between('‘', '’'),
        between('«', '»'),
    ))
    .parse_next(input)
}

fn comparison(input: &mut Text<'_>) -> Lexed<()> {
    alt((">=", "<=", "==", "!=", "<>", "...", ".."))
        .void()
        .parse_next(input)
}

fn numeral(input: &mut Text<'_>) -> Lexed<()> {
    let groups = repeat::<_, _, (), _, _>(0.., (one_of([',', '.']), digit1));
    let digits = alt(((digit1, groups).void(), ('.', digit1).void()));
    (digits, opt(exponent)).void().parse_next(input)
}

/// The exponent of a numeral.
pub(super) fn exponent(input: &mut Text<'_>) -> Lexed<()> {
    (one_of(['e', 'E']), opt(one_of(['+', '-', '−'])), digit1)
        .void()
        .parse_next(input)
}

fn word(input: &mut Text<'_>) -> Lexed<()> {
    let starts = |c: char| c.is_alphabetic() || c == '_';
    // Superscript digits are numeric, but the superscript minus is not.
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '⁻');
    let apostrophe = (one_of(['\'', '’']), peek(one_of(char::is_alphabetic)));
    let part = alt((take_while(1.., goes_on).void(), apostrophe.void()));
    (one_of(starts), repeat::<_, _, (), _, _>(0.., part))
        .void()
        .parse_next(input)
}
