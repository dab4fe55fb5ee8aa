//! Numbers: single values, ranges and changes.

use winnow::Parser;
use winnow::ascii::{digit0, digit1};
use winnow::combinator::{alt, eof, not, opt, repeat};
use winnow::stream::LocatingSlice;
use winnow::token::{any, take_while};

use super::operator::{RANGE, operator};
use super::refusal::{Parsed, Refusal, Why};
use super::token::{Kind, Token, Tokens, exponent, is_one_of, phrase};
use super::unit::{self, Units};
use crate::catalog::{ConditionValue, FieldType, Operator};

/// Parses the operator and value of a number field, and whether the value is in percent.
pub(super) fn compared(
    units: &Units<'_>,
    input: &mut Tokens<'_>,
) -> Parsed<(Operator, ConditionValue, bool)> {
    // "temperature 5 or more".
    let bound = |input: &mut Tokens<'_>| Ok((amount(units, input)?, or_beyond(input)?));
    if let Some((value, operator)) = opt(bound).parse_next(input)? {
        return Ok((operator, ConditionValue::Number(value), false));
    }
    let operator = operator(FieldType::Number).parse_next(input)?;
    match operator {
        Operator::Between | Operator::Outside => {
            Ok((operator, ConditionValue::Range(range(units, input)?), false))
        }
        Operator::IncreasesBy | Operator::DecreasesBy => {
            let (value, percent) = change(units, input)?;
            Ok((operator, ConditionValue::Number(value), percent))
        }
        _ => {
            let value = amount(units, input)?;
            let bound = match operator {
                Operator::Eq => opt(or_beyond).parse_next(input)?,
                _ => None,
            };
            Ok((bound.unwrap_or(operator), ConditionValue::Number(value), false))
        }
    }
}

/// A number with its sign: digits, or the word "zero".
pub(super) fn number(input: &mut Tokens<'_>) -> Parsed<f64> {
    let start = *input;
    let negative = opt(alt((sign, phrase("minus").value(true))))
        .parse_next(input)?
        .unwrap_or(false);
    if opt(phrase("zero")).parse_next(input)?.is_some() {
        return Ok(0.0);
    }
    let numeral = any
        .verify(|token: &&Token<'_>| token.kind == Kind::Numeral)
        .parse_next(input)
        .map_err(|_: Refusal| Refusal::new(&start, Why::Expected("a number")))?;
    let value = value(numeral.text()).ok_or_else(|| Refusal::new(&start, Why::Because(NUMERAL)))?;
    Ok(if negative { -value } else { value })
}

const NUMERAL: &str = "a number has a point before its decimals and, if anything, commas between groups of three \
                       digits before it, as in 1.5, 1500 or 1,500, and is no larger than a double holds";

/// A sign directly before a numeral. Returns whether it is a minus.
fn sign(input: &mut Tokens<'_>) -> Parsed<bool> {
    match &**input {
        [sign, numeral, ..] if sign.touches(numeral) && is_one_of(sign, "+|-|−") => {
            let negative = !sign.is("+");
            any.value(negative).parse_next(input)
        }
        _ => Err(Refusal::unexpected(input)),
    }
}

/// The value of an unambiguous numeral. "1,5" and "1.2.3" have none.
fn value(numeral: &str) -> Option<f64> {
    let group = (',', take_while(3..=3, '0'..='9'));
    let grouped = (
        not('0'),
        take_while(1..=3, '0'..='9'),
        repeat::<_, _, (), _, _>(1.., group),
    );
    let whole = alt((grouped.void(), digit0.void()));
    (whole, opt(('.', digit1)), opt(exponent), eof)
        .void()
        .parse(LocatingSlice::new(numeral))
        .ok()?;
    let plain = numeral.replace(',', "").replace('−', "-");
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

fn amount(units: &Units<'_>, input: &mut Tokens<'_>) -> Parsed<f64> {
    let (currency, value) = (opt(unit::currency), number).parse_next(input)?;
    units.of_amount(currency, input)?;
    Ok(value)
}

/// "or more" after a number that is compared for equality, which turns it into a bound.
fn or_beyond(input: &mut Tokens<'_>) -> Parsed<Operator> {
    let more = phrase("or more|higher|greater|larger|above|over").value(Operator::Gte);
    let less = phrase("or less|lower|smaller|fewer|below|under").value(Operator::Lte);
    alt((more, less)).parse_next(input)
}

fn range(units: &Units<'_>, input: &mut Tokens<'_>) -> Parsed<[f64; 2]> {
    let low = amount(units, input)?;
    alt((phrase("and|to|..|...|…|–|—"), dash))
        .parse_next(input)
        .map_err(|_: Refusal| {
            Refusal::new(
                input,
                Why::Expected("\"and\", \"to\" or a dash between the ends of the range"),
            )
        })?;
    let high = amount(units, input)?;
    opt(phrase(RANGE)).parse_next(input)?;
    if low > high {
        return Err(Refusal::new(
            input,
            Why::Because("the lower end of a range comes first"),
        ));
    }
    Ok([low, high])
}

/// A hyphen between two numbers, with space on both sides or on neither: "5 -10" could mean something else.
fn dash(input: &mut Tokens<'_>) -> Parsed<()> {
    let before = input.previous_tokens().next();
    match (before, &**input) {
        (Some(before), [dash, after, ..]) if before.touches(dash) == dash.touches(after) => {
            phrase("-|−").parse_next(input)
        }
        _ => Err(Refusal::unexpected(input)),
    }
}

fn change(units: &Units<'_>, input: &mut Tokens<'_>) -> Parsed<(f64, bool)> {
    let (currency, value) = (opt(unit::currency), number).parse_next(input)?;
    if value <= 0.0 {
        return Err(Refusal::new(
            input,
            Why::Because("a change is by more than zero; the verb says in which direction"),
        ));
    }
    let percent = currency.is_none() && opt(unit::percent).parse_next(input)?.is_some();
    if !percent {
        units.of_change(currency, input)?;
    }
    opt(phrase("or more|greater|higher")).parse_next(input)?;
    Ok((value, percent))
}
