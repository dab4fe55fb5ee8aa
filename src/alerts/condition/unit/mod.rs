//! Units after numbers. A field with a unit accepts that unit as the schema writes it, in any case, and in every
//! spelling of `table`. A field without a unit accepts any unit of `table`. Nothing is converted.

mod table;

use winnow::Parser;
use winnow::combinator::alt;
use winnow::stream::Stream;

use super::field::Names;
use super::refusal::{Parsed, Refusal, Why};
use super::token::{Token, Tokens, is_one_of, longest, phrase, tokens};
use table::{AMBIGUOUS, CURRENCIES, SPELLINGS, SYMBOLS, TIMES};

/// The units that the numbers of a field may have.
pub(super) struct Units<'s> {
    own: Option<&'s str>,
    /// The field's unit as the table writes it, if the table has it.
    known: Option<&'static str>,
    names: &'s Names<'s>,
}

/// What follows a number.
enum Found {
    Nothing,
    Own,
    /// A unit of the table that is not the field's.
    Other(&'static str),
    /// A quotient that is not the field's unit.
    Rate,
}

impl<'s> Units<'s> {
    /// `own` is the field's unit. A word that is a field name is not taken for another unit.
    pub fn of(own: Option<&'s str>, names: &'s Names<'s>) -> Self {
        let own = own.map(str::trim).filter(|own| !own.is_empty());
        let known = own.and_then(unit_of_schema);
        Self { own, known, names }
    }

    /// Parses the optional unit of a number to compare with. Percent is accepted whatever the field's unit is.
    /// `currency` is the unit that a sign before the number gives.
    pub fn of_amount(&self, currency: Option<&'static str>, input: &mut Tokens<'_>) -> Parsed<()> {
        let start = *input;
        match self.parse(currency, input) {
            Found::Nothing | Found::Own | Found::Other("%") => Ok(()),
            Found::Other(_) | Found::Rate if self.own.is_none() => Ok(()),
            Found::Other(_) | Found::Rate => Err(Refusal::new(&start, Why::OtherUnit)),
        }
    }

    /// Parses the optional unit of a change, except percent. A unit of time or a rate must be the field's own: "rises
    /// by 5 °C per minute" is not a change of a temperature, while "rises by 5 requests per second" is a change of a
    /// rate.
    pub fn of_change(&self, currency: Option<&'static str>, input: &mut Tokens<'_>) -> Parsed<()> {
        let start = *input;
        match self.parse(currency, input) {
            Found::Rate => Err(Refusal::new(&start, Why::Because(RATE))),
            Found::Other(unit) if TIMES.contains(&unit) => Err(Refusal::new(&start, Why::Because(DURATION))),
            Found::Other(_) if self.own.is_some() => Err(Refusal::new(&start, Why::OtherUnit)),
            Found::Nothing | Found::Own | Found::Other(_) => Ok(()),
        }
    }

    fn parse(&self, currency: Option<&'static str>, input: &mut Tokens<'_>) -> Found {
        let (found, length) = self.find(currency, input);
        input.next_slice(length);
        let is_divided = input.first().is_some_and(|next| is_one_of(next, "/|per"));
        match found {
            _ if is_divided => Found::Rate,
            Found::Other(unit) if unit.contains('/') => Found::Rate,
            found => found,
        }
    }

    /// What the tokens start with, and its length in tokens. The longest match counts: "m/s" is not the "m" of a field.
    fn find(&self, currency: Option<&'static str>, tokens: &[Token<'_>]) -> (Found, usize) {
        let known = currency.map(|unit| (unit, 0)).or_else(|| longest_unit(tokens));
        let known_length = known.map_or(0, |(_, length)| length);
        let as_in_schema = self.own.filter(|_| currency.is_none()).and_then(|own| {
            written(tokens, own, str::eq)
                .filter(|length| *length >= known_length)
                .or_else(|| written(tokens, own, in_any_case).filter(|length| *length > known_length))
        });
        if let Some(length) = as_in_schema {
            return (Found::Own, length);
        }
        let Some((unit, length)) = known else {
            return (Found::Nothing, 0);
        };
        if self.known.is_some_and(|own| is_same(own, unit)) {
            return (Found::Own, length);
        }
        let is_ambiguous = matches!(&tokens[..length], [word] if AMBIGUOUS.contains(&word.text()));
        let names_a_field = (0..length).any(|place| !self.names.at(&tokens[place..]).is_empty());
        if is_ambiguous || names_a_field {
            return (Found::Nothing, 0);
        }
        (Found::Other(unit), length)
    }
}

const RATE: &str = "this may be a rate of change, which is not understood; where the field itself is a rate, write its \
                    unit as the schema does";
const DURATION: &str = "this may be a duration, which is no part of a condition; where the field itself is a time, give \
                        it its unit in the schema";

/// "%", "percent" or "per cent", as used in changes.
pub(super) fn percent(input: &mut Tokens<'_>) -> Parsed<()> {
    phrase("%|percent|pct; per cent").parse_next(input)
}

/// A currency sign before an amount.
pub(super) fn currency(input: &mut Tokens<'_>) -> Parsed<&'static str> {
    longest(CURRENCIES).parse_next(input)
}

/// The unit of a schema, if the table has it.
fn unit_of_schema(text: &str) -> Option<&'static str> {
    let tokens = tokens(text)?;
    let (unit, length) = longest_unit(&tokens)?;
    (length == tokens.len()).then_some(unit)
}

/// The longest unit of the table that the tokens start with, and its length in tokens.
fn longest_unit(tokens: &[Token<'_>]) -> Option<(&'static str, usize)> {
    let longest_symbol = |is_alike: fn(&str, &str) -> bool| {
        SYMBOLS
            .iter()
            .filter_map(|symbol| Some((*symbol, written(tokens, symbol, is_alike)?)))
            .max_by_key(|(_, length)| *length)
    };
    let mut rest = Tokens::new(tokens);
    let spelling = alt((longest(SPELLINGS), longest(CURRENCIES)))
        .parse_next(&mut rest)
        .ok()
        .map(|unit| (unit, tokens.len() - rest.len()));
    spelling
        .into_iter()
        .chain(longest_symbol(str::eq))
        .max_by_key(|(_, length)| *length)
        .or_else(|| longest_symbol(in_any_case).filter(|(symbol, _)| symbol.chars().nth(1).is_some()))
}

/// Plain degrees match any temperature.
fn is_same(one: &str, other: &str) -> bool {
    let is_temperature = |unit| ["°C", "°F", "K"].contains(&unit);
    one == other || (one == "°" && is_temperature(other)) || (other == "°" && is_temperature(one))
}

/// Length of `unit` in tokens, if the tokens start with it. White space is ignored.
fn written(tokens: &[Token<'_>], unit: &str, is_alike: fn(&str, &str) -> bool) -> Option<usize> {
    let mut rest = unit;
    for (place, token) in tokens.iter().enumerate() {
        let (part, after) = rest.trim_start().split_at_checked(token.text().len())?;
        if !is_alike(part, token.text()) {
            return None;
        }
        if after.is_empty() {
            return Some(place + 1);
        }
        rest = after;
    }
    None
}

/// Whether two parts of a unit differ at most in case. The prefixes "m" and "M" are different.
fn in_any_case(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) && one.starts_with('M') == other.starts_with('M')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts that a pattern of `phrase` matches.
    fn texts(pattern: &str) -> Vec<String> {
        let words = |alternatives: &str| -> Vec<String> {
            let spellings = |word: &str| match word.strip_suffix('~') {
                Some(stem) => vec![stem.to_owned(), format!("{stem}s")],
                None => vec![word.to_owned()],
            };
            alternatives.split('|').flat_map(spellings).collect()
        };
        let mut all = Vec::new();
        for phrase in pattern.split("; ") {
            let mut texts = vec![String::new()];
            for alternatives in phrase.replace('?', "|").split(' ') {
                let words = words(alternatives);
                let append = |text: &String| words.iter().map(|word| format!("{text} {word}")).collect();
                texts = texts.iter().flat_map::<Vec<String>, _>(append).collect();
            }
            all.append(&mut texts);
        }
        all
    }

    #[test]
    fn every_spelling_in_the_table_maps_to_one_unit() {
        for symbol in SYMBOLS {
            assert_eq!(unit_of_schema(symbol), Some(*symbol));
        }
        for (pattern, unit) in SPELLINGS.iter().chain(CURRENCIES) {
            for text in texts(pattern) {
                assert_eq!(unit_of_schema(&text), Some(*unit), "{text}");
                assert_eq!(unit_of_schema(&text.to_ascii_uppercase()), Some(*unit), "{text}");
            }
        }
    }
}
