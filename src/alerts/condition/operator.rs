//! Comparison phrases: "is not greater than", "exceeds", "in the range of".

use winnow::Parser;
use winnow::combinator::{alt, opt, peek, preceded, terminated};

use super::amount::number;
use super::movement::movement;
use super::refusal::{Parsed, Refusal, Why};
use super::token::{Tokens, longest, phrase};
use crate::catalog::{FieldType, Operator};

type Phrases = &'static [(&'static str, Operator)];

/// Predicates that can be negated.
const POSITIVE: Phrases = &[
    (
        ">|gt; greater|more|higher|larger|bigger than; hotter|warmer than; above|over|beyond|past; in excess of",
        Operator::Gt,
    ),
    (
        ">=|≥|≧|⩾|gte|ge; greater|more|higher|larger|bigger than or equal~ to?; \
         greater|more|higher|larger|bigger or equal to|than?; equal to or greater|more|higher|larger|bigger than; \
         equal to or above|over; above|over or equal to; at or above|over; at least",
        Operator::Gte,
    ),
    (
        "<|lt; less|lower|smaller|fewer than; colder|cooler than; below|under|beneath",
        Operator::Lt,
    ),
    (
        "<=|≤|≦|⩽|lte|le; less|lower|smaller|fewer than or equal~ to?; \
         less|lower|smaller|fewer or equal to|than?; equal to or less|lower|smaller|fewer than; \
         equal to or below|under; below|under or equal to; at or below|under; at most",
        Operator::Lte,
    ),
    (
        "=|==|eq; equal~ to?; exactly; exactly equal to; the? same as",
        Operator::Eq,
    ),
];

/// Predicates that are negative already: "is not different from" is not understood.
const NEGATIVE: Phrases = &[
    (
        "!=|<>|≠|ne|neq; unequal to; different from|than|to; other than",
        Operator::Neq,
    ),
    ("no greater|more|higher|larger|bigger than", Operator::Lte),
    ("no less|lower|smaller|fewer than", Operator::Gte),
];

/// Verbs, used without "is".
const VERBS: Phrases = &[
    (
        "exceed~|exceeded|surpasses|surpass|surpassed; has|have exceeded|surpassed; \
         is|are exceeding|surpassing",
        Operator::Gt,
    ),
    (
        "exceed~ or equal~; equal~|reaches|reach|meet~ or exceed~",
        Operator::Gte,
    ),
    ("differ~ from", Operator::Neq),
];

/// Phrases without a direction, and the reason for refusing them.
const UNDIRECTED: &[(&str, &str)] = &[
    (
        "change~|varies|vary|fluctuate~|move~|deviate~ by",
        CHANGE_DIRECTION,
    ),
    (
        "reaches|reach|hit~|crosses|cross|passes|pass|touches|touch",
        LEVEL_SIDE,
    ),
];
const CHANGE_DIRECTION: &str = "a change needs its direction: \"increases by\" or \"decreases by\"";
const NO_CHANGE: &str = "a change that does not happen is not understood";
const LEVEL_SIDE: &str = "from which side is left open: \"is at least\" or \"is at most\"";

/// Parses an operator for a field of this type. Does not check that the operator suits the type.
pub(super) fn operator<'t>(kind: FieldType) -> impl Parser<Tokens<'t>, Operator, Refusal> {
    move |input: &mut Tokens<'t>| {
        let mut directed = alt((
            preceded(phrase("does|do not; doesn't|don't|doesnt|dont"), denied),
            verb,
            // "is from 5 to 10". "goes from 5 to 10" is a change and not accepted.
            phrase("is|are|range~|lie~? from").value(Operator::Between),
            state,
        ));
        match kind {
            FieldType::Number => alt((directed, undirected)).parse_next(input),
            FieldType::String | FieldType::Boolean => directed.parse_next(input),
        }
    }
}

/// "exceeds", "drops below", "drops by", "lies between", "leaves the range".
fn verb(input: &mut Tokens<'_>) -> Parsed<Operator> {
    alt((
        movement,
        longest(VERBS),
        preceded(phrase("fall~|lie~|move~|drift~|range~"), range),
        (phrase("leave~|exit~"), ends).value(Operator::Outside),
        (phrase("enter~"), ends).value(Operator::Between),
    ))
    .parse_next(input)
}

/// Parses what follows "does not" and returns the opposite operator.
fn denied(input: &mut Tokens<'_>) -> Parsed<Operator> {
    let start = *input;
    let goes = preceded(phrase("go|get|stay|remain"), alt((longest(POSITIVE), range)));
    match alt((verb, phrase("equal").value(Operator::Eq), goes)).parse_next(input)? {
        Operator::IncreasesBy | Operator::DecreasesBy => Err(Refusal::new(&start, Why::Because(NO_CHANGE))),
        operator => Ok(opposite(operator)),
    }
}

/// "is above", "not above", "is", "isn't", "not".
fn state(input: &mut Tokens<'_>) -> Parsed<Operator> {
    let linked = opt(terminated(longest(LINKS), opt(phrase("now|currently")))).parse_next(input)?;
    let denied = linked == Some(Link::IsNot) || opt(phrase("not")).parse_next(input)?.is_some();
    let operator = if denied {
        opt(alt((longest(POSITIVE), range)).map(opposite)).parse_next(input)?
    } else {
        opt(alt((longest(POSITIVE), longest(NEGATIVE), range))).parse_next(input)?
    };
    match (operator, linked) {
        (Some(operator), _) => Ok(operator),
        (None, Some(Link::Is | Link::IsNot) | None) if denied => Ok(Operator::Neq),
        (None, Some(Link::Is)) => Ok(Operator::Eq),
        (None, _) => Err(Refusal::unexpected(input)),
    }
}

/// The verb that links a field and its state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Is,
    IsNot,
    /// A value may not follow directly: "is 5" is valid, "go 5" is not.
    Goes,
}

const LINKS: &[(&str, Link)] = &[
    (
        "is|are|become~|stay~|remain~|read~|turn~; \
         has|have become|stayed|remained|turned; \
         turn~|turned|change~|changed|goes|go|went|switches|switch|switched to|into; \
         has|have turned|changed|gone|switched to|into; is|are set|switched|changed to",
        Link::Is,
    ),
    ("isn't|isnt|aren't|arent", Link::IsNot),
    (
        "goes|go|went|get~|got; has|have gone|got; is|are going|getting|staying",
        Link::Goes,
    ),
];

/// "between", "in the range of", "outside", up to the first number: also "outside the 5 to 10 range".
fn range(input: &mut Tokens<'_>) -> Parsed<Operator> {
    let inside = alt((
        (phrase("in"), alt((phrase("between"), ends))).void(),
        (phrase("within|inside of?"), opt(ends)).void(),
        phrase("between"),
    ));
    let outside = alt((
        (phrase("outside of?"), opt(ends)).void(),
        (phrase("out of"), named_range).void(),
    ));
    alt((inside.value(Operator::Between), outside.value(Operator::Outside))).parse_next(input)
}

/// The words before the limits of a range: "the range of", "the", or nothing.
fn ends(input: &mut Tokens<'_>) -> Parsed<()> {
    alt((named_range, (phrase("the|a?"), peek(number)).void())).parse_next(input)
}

fn named_range(input: &mut Tokens<'_>) -> Parsed<()> {
    (phrase("the|a?"), phrase(RANGE), phrase("of|from|between?"))
        .void()
        .parse_next(input)
}

/// Nouns for a range.
pub(super) const RANGE: &str = "range|interval|band|limits|bounds";

/// Never succeeds: fails with the reason why the phrase is not an operator.
fn undirected(input: &mut Tokens<'_>) -> Parsed<Operator> {
    let start = *input;
    let reason = longest(UNDIRECTED).parse_next(input)?;
    Err(Refusal::new(&start, Why::Because(reason)))
}

fn opposite(operator: Operator) -> Operator {
    match operator {
        Operator::Gt => Operator::Lte,
        Operator::Gte => Operator::Lt,
        Operator::Lt => Operator::Gte,
        Operator::Lte => Operator::Gt,
        Operator::Eq => Operator::Neq,
        Operator::Neq => Operator::Eq,
        Operator::Between => Operator::Outside,
        Operator::Outside => Operator::Between,
        // Never negated: see `denied`.
        Operator::IncreasesBy | Operator::DecreasesBy => operator,
    }
}
