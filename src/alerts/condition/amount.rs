//! Numbers, alone, as a range or as a change.

use winnow::Parser;
use winnow::ascii::{digit0, digit1};
use winnow::combinator::{alt, eof, not, opt, preceded, repeat};
use winnow::error::EmptyError;
use winnow::stream::LocatingSlice;
use winnow::token::{any, take_while};

use super::operator::range_noun;
use super::refusal::{Parsed, Refusal};
use super::token::{Kind, Token, Tokens, exponent, is_one_of, phrase};
use super::unit;
use crate::catalog::{ConditionValue, Operator};

/// What a number field is compared with, and whether that is in percent; `unit` is the field's.
pub(super) fn compared(
    operator: Operator,
    unit: Option<&str>,
    input: &mut Tokens<'_>,
) -> Parsed<(Operator, ConditionValue, bool)> {
    match operator {
        Operator::Between | Operator::Outside => {
            let limits = range(unit, input)?;
            Ok((operator, ConditionValue::Range(limits), false))
        }
        Operator::IncreasesBy | Operator::DecreasesBy => {
            let (value, percent) = change(unit, input)?;
            Ok((operator, ConditionValue::Number(value), percent))
        }
        _ => {
            let value = amount(unit, input)?;
            let operator = or_beyond(operator, input)?;
            Ok((operator, ConditionValue::Number(value), false))
        }
    }
}

/// A number with its sign.
pub(super) fn number(input: &mut Tokens<'_>) -> Parsed<f64> {
    let start = *input;
    let negative = opt(sign).parse_next(input)?.unwrap_or(false);
    let numeral = any
        .verify(|token: &&Token<'_>| token.kind == Kind::Numeral)
        .parse_next(input)
        .map_err(|_: Refusal| Refusal::expected(&start, "a number"))?;
    let value = value(numeral.text()).ok_or_else(|| Refusal::because(&start, NUMERAL))?;
    Ok(if negative { -value } else { value })
}

const NUMERAL: &str = "a number has a point before its decimals and, if anything, commas between groups of three \
                       digits before it, as in 1.5, 1500 or 1,500, and is no larger than a double holds";

/// A sign right before a numeral; whether it is a minus.
fn sign(input: &mut Tokens<'_>) -> Parsed<bool> {
    match &**input {
        [sign, numeral, ..] if sign.touches(numeral) && is_one_of(sign, "+|-|−") => {
            let negative = *sign != *"+";
            any.value(negative).parse_next(input)
        }
        _ => Err(Refusal::unexpected(input)),
    }
}

/// The number that a numeral is without doubt: "1,5" is none, and neither is "1.2.3".
fn value(numeral: &str) -> Option<f64> {
    type Text<'t> = LocatingSlice<&'t str>;
    let group = |input: &mut Text<'_>| -> Result<(), EmptyError> {
        (',', take_while(3..=3, '0'..='9')).void().parse_next(input)
    };
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

fn amount(unit: Option<&str>, input: &mut Tokens<'_>) -> Parsed<f64> {
    let value = preceded(opt(unit::currency), number).parse_next(input)?;
    opt(unit::any_unit(unit)).parse_next(input)?;
    Ok(value)
}

/// "is 5 or more": the only thing that may stand behind an equality.
fn or_beyond(operator: Operator, input: &mut Tokens<'_>) -> Parsed<Operator> {
    if operator != Operator::Eq {
        return Ok(operator);
    }
    let more = phrase("or more|higher|greater|larger|above|over").value(Operator::Gte);
    let less = phrase("or less|lower|smaller|fewer|below|under").value(Operator::Lte);
    Ok(opt(alt((more, less))).parse_next(input)?.unwrap_or(operator))
}

fn range(unit: Option<&str>, input: &mut Tokens<'_>) -> Parsed<[f64; 2]> {
    let low = amount(unit, input)?;
    alt((phrase("and|to|..|...|…|–|—"), dash))
        .parse_next(input)
        .map_err(|_: Refusal| {
            Refusal::expected(input, "\"and\", \"to\" or a dash between the ends of the range")
        })?;
    let high = amount(unit, input)?;
    opt(range_noun).parse_next(input)?;
    if low > high {
        return Err(Refusal::because(input, "the lower end of a range comes first"));
    }
    Ok([low, high])
}

/// A hyphen between two numbers, with space on both sides or on none: "5 -10" may be meant otherwise.
fn dash(input: &mut Tokens<'_>) -> Parsed<()> {
    let before = input.previous_tokens().next();
    match (before, &**input) {
        (Some(before), [dash, after, ..]) if before.touches(dash) == dash.touches(after) => {
            phrase("-|−").parse_next(input)
        }
        _ => Err(Refusal::unexpected(input)),
    }
}

fn change(unit: Option<&str>, input: &mut Tokens<'_>) -> Parsed<(f64, bool)> {
    let value = preceded(opt(unit::currency), number).parse_next(input)?;
    if value <= 0.0 {
        return Err(Refusal::because(
            input,
            "a change is by more than zero; the verb says in which direction",
        ));
    }
    let percent = opt(unit::percent).parse_next(input)?.is_some();
    if !percent {
        opt(unit::unit_of_change(unit)).parse_next(input)?;
    }
    opt(phrase("or more|greater|higher")).parse_next(input)?;
    Ok((value, percent))
}
