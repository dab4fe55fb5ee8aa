//! Text → tokens: words, numerals, quoted texts and signs. Phrases are matched against tokens, so that white space
//! and case are no matter of the grammar.

use winnow::Parser;
use winnow::ascii::digit1;
use winnow::combinator::{alt, delimited, opt, peek, preceded, repeat, terminated};
use winnow::error::EmptyError;
use winnow::stream::{LocatingSlice, TokenSlice};
use winnow::token::{any, one_of, take_till, take_while};

use super::refusal::Refusal;

/// Far more than a condition has. A longer text is refused, so that what the grammar does is bounded.
pub(super) const TOKENS_MAX: usize = 1_024;

/// Longer texts in quotes are not understood, so that quotes that nobody closes cost little.
const QUOTED_CHARS_MAX: usize = 4_096;

/// What is still to be read of a condition.
pub(super) type Tokens<'t> = TokenSlice<'t, Token<'t>>;

/// A word, numeral, quoted text or sign of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub kind: Kind<'t>,
    /// Where in the condition it stands, in bytes.
    pub start: usize,
    pub end: usize,
    /// The condition from this token on.
    pub onward: &'t str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// A letter or `_`, then also digits, and apostrophes before letters.
    Word,
    /// Digits with points, commas and an exponent, without a sign; it need not be a number.
    Numeral,
    /// What stands between the quotes.
    Quoted(&'t str),
    /// Any other character, or a comparison of several.
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

    /// Whether nothing stands between the two.
    pub fn touches(&self, next: &Self) -> bool {
        self.end == next.start
    }
}

/// The keyword, in any case; what is in quotes is none.
impl PartialEq<str> for Token<'_> {
    fn eq(&self, keyword: &str) -> bool {
        let plain = |c: char| if c == '’' { '\'' } else { c.to_ascii_lowercase() };
        !matches!(self.kind, Kind::Quoted(_)) && self.text().chars().map(plain).eq(keyword.chars())
    }
}

/// The tokens of a text; `None` when there are more than a condition can have.
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

/// The words of `pattern` one after the other, `|` between words that may stand for each other. Whoever calls writes
/// them in lower case, with straight apostrophes.
pub(super) fn phrase<'t>(pattern: &'static str) -> impl Parser<Tokens<'t>, (), Refusal> {
    move |input: &mut Tokens<'t>| {
        for keywords in pattern.split(' ') {
            any.verify(|token: &&Token<'_>| is_one_of(token, keywords))
                .parse_next(input)?;
        }
        Ok(())
    }
}

/// The longest phrase of a table, hence whatever the order of its rows.
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

/// Whether the token is one of `keywords`, which `|` stands between.
pub(super) fn is_one_of(token: &Token<'_>, keywords: &str) -> bool {
    keywords.split('|').any(|keyword| *token == *keyword)
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

/// Of a numeral.
pub(super) fn exponent(input: &mut Text<'_>) -> Lexed<()> {
    (one_of(['e', 'E']), opt(one_of(['+', '-', '−'])), digit1)
        .void()
        .parse_next(input)
}

fn word(input: &mut Text<'_>) -> Lexed<()> {
    let starts = |c: char| c.is_alphabetic() || c == '_';
    // Superscripts are numeric, their minus is not.
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '⁻');
    let apostrophe = (one_of(['\'', '’']), peek(one_of(char::is_alphabetic)));
    let part = alt((take_while(1.., goes_on).void(), apostrophe.void()));
    (one_of(starts), repeat::<_, _, (), _, _>(0.., part))
        .void()
        .parse_next(input)
}
