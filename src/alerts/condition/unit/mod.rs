//! Units after numbers. A field with a unit accepts that unit in any spelling; a field without one accepts any unit in
//! `table`. Nothing is converted, and no other word is taken for a unit.
//!
//! ```text
//! unit    = product {("/" | "per") product} | ("/" | "per") product
//! product = factor {["·" | "*" | "-"] factor}
//! factor  = word ["^" ["-"] digit] | ("square" | "cubic") word | degrees | percent | currency
//! ```

mod table;

use winnow::Parser;
use winnow::combinator::{alt, opt, preceded, repeat};
use winnow::stream::Stream;
use winnow::token::any;

use super::field::{Names, ends_with_a_token};
use super::refusal::{Parsed, Refusal};
use super::token::{Kind, Token, Tokens, longest, phrase, tokens};
use table::{AMBIGUOUS, CURRENCIES, Factor, PHRASES, factor};

/// The units that the numbers of a field may have.
pub(super) struct Units<'s> {
    own: Option<&'s str>,
    names: &'s Names<'s>,
}

/// A currency sign before an amount.
#[derive(Clone, Copy)]
pub(super) struct Currency(Factor);

/// The unit found after a number.
enum Found {
    Own,
    Other(Unit),
}

impl<'s> Units<'s> {
    /// `own` is the field's unit. A word that is a field name is not taken for another unit.
    pub fn of(own: Option<&'s str>, names: &'s Names<'s>) -> Self {
        let own = own.map(str::trim).filter(|own| !own.is_empty());
        Self { own, names }
    }

    /// Parses the optional unit of a number to compare with. Percent is accepted whatever the field's unit is.
    pub fn of_amount(&self, currency: Option<Currency>, input: &mut Tokens<'_>) -> Parsed<()> {
        let start = *input;
        match self.found(currency, input) {
            Some(Found::Other(unit)) if self.own.is_some() && !unit.is_percent() => {
                Err(Refusal::other_unit(&start))
            }
            _ => Ok(()),
        }
    }

    /// Parses the optional unit of a change, except percent. A unit of time or a rate must be the field's own: "rises
    /// by 5 °C per minute" is not a change of a temperature, while "rises by 5 requests per second" is a change of a
    /// rate.
    pub fn of_change(&self, currency: Option<Currency>, input: &mut Tokens<'_>) -> Parsed<()> {
        let start = *input;
        match self.found(currency, input) {
            Some(Found::Other(unit)) if unit.is_rate() => Err(Refusal::because(&start, RATE)),
            Some(Found::Other(unit)) if unit.is_time() => Err(Refusal::because(&start, DURATION)),
            Some(Found::Other(_)) if self.own.is_some() => Err(Refusal::other_unit(&start)),
            _ => Ok(()),
        }
    }

    /// Parses a possible unit. The longest match counts: "m/s" is not the "m" of a field.
    fn found(&self, currency: Option<Currency>, input: &mut Tokens<'_>) -> Option<Found> {
        let start = *input;
        let mut rest = *input;
        let known = match currency {
            Some(currency) => Some(Unit::of_currency(currency, &mut rest)),
            None => unit.parse_next(&mut rest).ok(),
        };
        let length = start.len() - rest.len();
        let is_own = known.as_ref().is_some_and(|unit| self.is_own(unit));
        let written = self
            .own
            .filter(|_| currency.is_none())
            .and_then(|own| match known {
                Some(_) => ends_with_a_token(&start, own).filter(|written| *written >= length),
                None => ends_with_a_token(&start, own).or_else(|| in_another_case(&start, own)),
            });
        if let Some(length) = written {
            input.next_slice(length);
            return Some(Found::Own);
        }
        let known = known?;
        if is_own {
            *input = rest;
            return Some(Found::Own);
        }
        let taken = &start[..length];
        let is_ambiguous = matches!(taken, [word] if AMBIGUOUS.contains(&word.text()));
        let names_a_field = (0..length).any(|place| !self.names.at(&start[place..]).is_empty());
        if is_ambiguous || names_a_field {
            return None;
        }
        *input = rest;
        Some(Found::Other(known))
    }

    fn is_own(&self, unit: &Unit) -> bool {
        self.own.and_then(Unit::written).is_some_and(|own| own.is(unit))
    }
}

const RATE: &str = "this may be a rate of change, which is not understood; where the field itself is a rate, write its \
                    unit as the schema does";
const DURATION: &str = "this may be a duration, which is no part of a condition; where the field itself is a time, give \
                        it its unit in the schema";

/// "%", "percent" or "per cent", as used in changes.
pub(super) fn percent(input: &mut Tokens<'_>) -> Parsed<()> {
    alt((phrase("%|percent|pct"), phrase("per cent"))).parse_next(input)
}

/// A currency sign before an amount.
pub(super) fn currency(input: &mut Tokens<'_>) -> Parsed<Currency> {
    longest(CURRENCIES).map(Currency).parse_next(input)
}

/// A unit in a form that can be compared.
struct Unit(Vec<Factor>);

impl Unit {
    /// The unit as written in a schema, if it is known.
    fn written(text: &str) -> Option<Self> {
        let tokens = tokens(text)?;
        let mut input = Tokens::new(&tokens);
        let unit = unit.parse_next(&mut input).ok()?;
        input.is_empty().then_some(unit)
    }

    /// A currency, with the "per …" that may follow the number.
    fn of_currency(Currency(currency): Currency, input: &mut Tokens<'_>) -> Self {
        let mut factors = vec![currency];
        if let Ok(more) = per.parse_next(input) {
            factors.extend(more);
        }
        Self(factors)
    }

    fn is(&self, other: &Self) -> bool {
        let covers =
            |all: &[Factor], some: &[Factor]| some.iter().all(|one| all.iter().any(|a| suits(a, one)));
        self.0.len() == other.0.len() && covers(&self.0, &other.0) && covers(&other.0, &self.0)
    }

    fn is_percent(&self) -> bool {
        self.0 == [factor("%")]
    }

    fn is_rate(&self) -> bool {
        self.0.iter().any(|factor| factor.power < 0)
    }

    fn is_time(&self) -> bool {
        let times = ["s", "min", "h", "d", "week", "month", "year"];
        matches!(&*self.0, [factor] if times.contains(&factor.base))
    }
}

/// Plain degrees match any temperature unit, and an angle.
fn suits(one: &Factor, other: &Factor) -> bool {
    let unnamed = |degrees: &Factor, other: &Factor| {
        *degrees == factor("°") && ["°C", "°F", "K"].map(factor).contains(other)
    };
    one == other || unnamed(one, other) || unnamed(other, one)
}

fn unit(input: &mut Tokens<'_>) -> Parsed<Unit> {
    let mut factors = opt(product).parse_next(input)?.unwrap_or_default();
    let more: Vec<Vec<Factor>> = if factors.is_empty() {
        vec![per.parse_next(input)?]
    } else {
        repeat(0..=2, per).parse_next(input)?
    };
    factors.extend(more.into_iter().flatten());
    Ok(Unit(factors))
}

fn per(input: &mut Tokens<'_>) -> Parsed<Vec<Factor>> {
    let inverse = |factor: Factor| Factor {
        power: -factor.power,
        ..factor
    };
    preceded(phrase("/|per"), product)
        .map(|factors| factors.into_iter().map(inverse).collect())
        .parse_next(input)
}

fn product(input: &mut Tokens<'_>) -> Parsed<Vec<Factor>> {
    let mut factors = a_factor.parse_next(input)?;
    let joined = preceded(alt((phrase("·|⋅|*"), hyphen)), a_factor);
    let more: Vec<Vec<Factor>> = match factors[..] {
        [first] if ["W", "A", "V", "N"].contains(&first.base) => {
            repeat(0..=1, alt((joined, follower))).parse_next(input)?
        }
        _ => repeat(0..=2, joined).parse_next(input)?,
    };
    factors.extend(more.into_iter().flatten());
    Ok(factors)
}

/// A factor that is multiplied without a sign: "kilowatt hours", "volt amperes", "newton meters".
fn follower(input: &mut Tokens<'_>) -> Parsed<Vec<Factor>> {
    word.verify(|next: &Vec<Factor>| matches!(next[..], [next] if ["h", "A", "m", "s"].contains(&next.base)))
        .parse_next(input)
}

/// A hyphen between two words without space: "5 C-10 C" and "5 C - 10 C" are ranges.
fn hyphen(input: &mut Tokens<'_>) -> Parsed<()> {
    match &**input {
        [hyphen, next, ..] if hyphen.touches(next) && next.kind == Kind::Word => {
            phrase("-").parse_next(input)
        }
        _ => Err(Refusal::unexpected(input)),
    }
}

fn a_factor(input: &mut Tokens<'_>) -> Parsed<Vec<Factor>> {
    let raised = |power: i8| {
        move |mut factors: Vec<Factor>| {
            raise(&mut factors, power);
            factors
        }
    };
    alt((
        longest(PHRASES).map(|one| vec![one]),
        longest(CURRENCIES).map(|one| vec![one]),
        preceded(phrase("square|sq"), word).map(raised(2)),
        preceded(phrase("cubic|cu"), word).map(raised(3)),
        word,
    ))
    .parse_next(input)
}

/// A word of the table, followed by an optional power: "m", "m²", "m3", "s⁻¹", "s^-1".
fn word(input: &mut Tokens<'_>) -> Parsed<Vec<Factor>> {
    let (mut factors, power_behind) = any
        .verify(|token: &&Token<'_>| token.kind == Kind::Word)
        .verify_map(|token: &Token<'_>| {
            let letters = token
                .text()
                .trim_end_matches(|c: char| c.is_numeric() || c == '⁻');
            let power = power(&token.text()[letters.len()..])?;
            Some((table::find(letters)?, power))
        })
        .parse_next(input)?;
    let exponent = any.verify_map(|token: &Token<'_>| power(token.text()));
    let raised = preceded(phrase("^"), (opt(phrase("-")), exponent));
    if let Some((minus, exponent)) = opt(raised).parse_next(input)? {
        raise(&mut factors, if minus.is_some() { -exponent } else { exponent });
    }
    raise(&mut factors, power_behind);
    Ok(factors)
}

fn raise(factors: &mut [Factor], power: i8) {
    for factor in factors {
        factor.power *= power;
    }
}

/// The power written after a word or after "^".
fn power(text: &str) -> Option<i8> {
    match text {
        "" | "1" | "¹" => Some(1),
        "2" | "²" => Some(2),
        "3" | "³" => Some(3),
        "⁻¹" => Some(-1),
        "⁻²" => Some(-2),
        "⁻³" => Some(-3),
        _ => None,
    }
}

/// Length in tokens of the field's unit if only the case differs. A leading "m" and "M" are different prefixes.
fn in_another_case(tokens: &[Token<'_>], own: &str) -> Option<usize> {
    let written = tokens.first()?.onward.get(..own.len())?;
    let is_other_prefix = written.starts_with(['m', 'M']) && !written.starts_with(own.chars().next()?);
    let alike = written.eq_ignore_ascii_case(own) && !is_other_prefix;
    ends_with_a_token(tokens, written).filter(|_| alike)
}
