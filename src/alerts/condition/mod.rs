//! The condition grammar: "alert me when the engine temp is above 80 °C" → `{field, operator, value}`.
//!
//! A condition compares one field of a data source's schema. Text that is not fully understood is refused, never
//! guessed or ignored: a misread rule is worse than a refused one. This module does not evaluate conditions. The
//! service calls it when a rule is created or changed.
//!
//! ```text
//! condition = [opening] field operator value [closing] ["."]
//! ```
//!
//! - `token`: splits text into words, numerals, quoted texts and signs; drops white space.
//! - `framing`: the words around a condition ("alert me when the …", "…, then notify us").
//! - `field`: field names as people write them.
//! - `operator`, `movement`: comparison phrases ("is at least"), and verbs of movement ("drops below", "drops by").
//! - `amount`, `unit`: numbers, ranges and changes, and their units. `word`: booleans and texts.
//! - `refusal`: how far parsing got, and the error message.

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

pub use refusal::ConditionError;

use crate::catalog::{ConditionValue, Field, FieldType, Operator, ParsedCondition, Schema};
use field::Names;
use refusal::{Parsed, Refusal, Why};
use token::{Tokens, phrase};
use unit::Units;

/// Parses a condition about a field of `schema`. Time and memory are linear in the text's length.
///
/// # Errors
/// The text is not understood, or it names no field, or its field name is ambiguous.
pub fn parse(text: &str, schema: &Schema) -> Result<ParsedCondition, ConditionError> {
    let Some(tokens) = token::tokens(text) else {
        return Err(ConditionError::too_long(schema));
    };
    let names = Names::of(schema);
    let openings = framing::openings(&tokens);
    let mut furthest: Option<(Refusal, &Field)> = None;
    for opening in &openings {
        for candidates in names.at(opening).chunk_by(|a, b| a.tokens == b.tokens) {
            // Among names of equal length an exact spelling comes first and takes precedence.
            let candidates = if candidates[0].exact {
                &candidates[..1]
            } else {
                candidates
            };
            let mut parsed = None;
            for name in candidates {
                match condition(name.field, &names, &mut Tokens::new(&opening[name.tokens..])) {
                    Ok(condition) => parsed = Some(condition),
                    Err(refusal) if furthest.is_none_or(|(other, _)| refusal.rank() <= other.rank()) => {
                        furthest = Some((refusal, name.field));
                    }
                    Err(_) => {}
                }
            }
            match parsed {
                Some(condition) if candidates.len() == 1 => return Ok(condition),
                Some(_) => return Err(ConditionError::ambiguous(candidates, schema)),
                None => {}
            }
        }
    }
    Err(match furthest {
        Some((refusal, field)) => ConditionError::refused(&refusal, field, &tokens, schema),
        None => ConditionError::no_field(openings.last().copied().unwrap_or_default(), schema),
    })
}

/// Parses everything after the name of `field`.
fn condition(field: &Field, names: &Names<'_>, input: &mut Tokens<'_>) -> Parsed<ParsedCondition> {
    phrase("value|reading? ever?").parse_next(input)?;
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
        _ => Err(Refusal::new(input, Why::Because(otherwise))),
    }
}

const BOOLEAN_EQUALITY: &str = "a boolean field can only be equal or not equal to true or false";
const STRING_EQUALITY: &str = "a string field can only be equal or not equal to a text; a text that begins like a \
                               comparison goes in quotes";

#[cfg(test)]
mod tests;
