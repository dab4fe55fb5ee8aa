//! The condition grammar: "alert me when the engine temp is above 80 °C" → `{field, operator, value}`.
//!
//! A condition compares one field of a data source's schema. What is not understood to its last word is refused, never
//! guessed and never dropped: a rule that is misread is worse than one that is refused. Whether a condition holds is
//! not decided here. Called by `service` when a rule is made or changed.
//!
//! ```text
//! condition = [opening] field operator value [closing] ["."]
//! ```
//!
//! - `token`: text → words, numerals, quoted texts and signs; white space ends here.
//! - `framing`: the words around a condition ("alert me when the …", "…, then notify us").
//! - `field`: a field's name as people write it.
//! - `operator`, `movement`: phrases that compare ("is at least"), and verbs that move ("drops below", "drops by").
//! - `amount`, `unit`: numbers, ranges and changes, and the units behind them. `word`: booleans and texts.
//! - `refusal`: how far a reading got, and what is said of it.

mod amount;
mod field;
mod framing;
mod movement;
mod operator;
mod refusal;
mod token;
mod unit;
mod word;

use winnow::Parser;
use winnow::combinator::opt;

pub use refusal::ConditionError;

use crate::catalog::{ConditionValue, Field, FieldType, Operator, ParsedCondition, Schema};
use field::Names;
use refusal::{Parsed, Refusal};
use token::{Tokens, phrase};
use unit::Units;

/// What `text` says of a field of `schema`. Time and memory are linear in the text's length.
///
/// # Errors
/// The text is not understood, or names no field, or several at once.
pub fn parse(text: &str, schema: &Schema) -> Result<ParsedCondition, ConditionError> {
    let Some(tokens) = token::tokens(text) else {
        return Err(ConditionError::too_long(schema));
    };
    let names = Names::of(schema);
    let openings = framing::openings(&tokens);
    let mut furthest: Option<(Refusal, &Field)> = None;
    for opening in &openings {
        for alike in names.at(opening).chunk_by(|a, b| a.tokens == b.tokens) {
            // Among names of one length, one that is written exactly stands first, and alone is meant.
            let meant = if alike[0].exact { &alike[..1] } else { alike };
            let mut understood = None;
            for name in meant {
                match condition(name.field, &names, &mut Tokens::new(&opening[name.tokens..])) {
                    Ok(parsed) => understood = Some(parsed),
                    Err(refusal) if furthest.is_none_or(|(other, _)| refusal.is_further(other)) => {
                        furthest = Some((refusal, name.field));
                    }
                    Err(_) => {}
                }
            }
            match understood {
                Some(parsed) if meant.len() == 1 => return Ok(parsed),
                Some(_) => return Err(ConditionError::ambiguous(meant, schema)),
                None => {}
            }
        }
    }
    Err(match furthest {
        Some((refusal, field)) => ConditionError::refused(&refusal, field, &tokens, schema),
        None => ConditionError::no_field(openings.last().copied().unwrap_or_default(), schema),
    })
}

/// All that stands behind the name of `field`.
fn condition(field: &Field, names: &Names<'_>, input: &mut Tokens<'_>) -> Parsed<ParsedCondition> {
    (opt(phrase("value|reading")), opt(phrase("ever"))).parse_next(input)?;
    let (operator, value, percent) = match field.kind {
        FieldType::Number => amount::compared(&Units::of(field.unit.as_deref(), names), input)?,
        FieldType::Boolean => {
            let operator = equality(field.kind, BOOLEAN_EQUALITY, input)?;
            (operator, ConditionValue::Boolean(word::boolean(input)?), false)
        }
        FieldType::String => {
            let operator = equality(field.kind, STRING_EQUALITY, input)?;
            let value = word::text(names, input)?;
            (operator, ConditionValue::Text(value.into()), false)
        }
    };
    framing::ending.parse_next(input)?;
    Ok(ParsedCondition {
        field: (&*field.name).into(),
        operator,
        value,
        percent,
    })
}

fn equality(kind: FieldType, otherwise: &'static str, input: &mut Tokens<'_>) -> Parsed<Operator> {
    let operator = operator::operator(kind).parse_next(input)?;
    match operator {
        Operator::Eq | Operator::Neq => Ok(operator),
        _ => Err(Refusal::because(input, otherwise)),
    }
}

const BOOLEAN_EQUALITY: &str = "a boolean field can only be equal or not equal to true or false";
const STRING_EQUALITY: &str = "a string field can only be equal or not equal to a text; a text that begins like a \
                               comparison goes in quotes";

#[cfg(test)]
mod tests;
