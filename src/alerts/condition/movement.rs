//! Verbs of movement: to a level ("drops below 5" means less than) or by an amount ("drops by 5" means a change).

use winnow::Parser;
use winnow::combinator::{alt, opt, peek};

use super::amount::number;
use super::refusal::{Parsed, Refusal};
use super::token::{Tokens, longest, phrase};
use crate::catalog::Operator;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Rises,
    /// Also upwards, but "increases over 5" may mean a level or an amount.
    Increases,
    Falls,
}

const VERBS: &[(&str, Verb)] = &[
    (
        "rises|rise|climbs|climb|jumps|jump|surges|surge|spikes|spike",
        Verb::Rises,
    ),
    ("rose|climbed|jumped|surged|spiked", Verb::Rises),
    ("has|have risen|climbed|jumped|surged|spiked", Verb::Rises),
    ("is|are rising|climbing|jumping|surging|spiking", Verb::Rises),
    ("goes|go|went up", Verb::Rises),
    ("has|have gone up", Verb::Rises),
    ("is|are going up", Verb::Rises),
    ("is|are? up", Verb::Rises),
    ("increases|increase|increased|grows|grow|grew", Verb::Increases),
    ("has|have increased|grown", Verb::Increases),
    ("is|are increasing|growing", Verb::Increases),
    (
        "drops|drop|falls|fall|declines|decline|sinks|sink|dips|dip|plunges|plunge",
        Verb::Falls,
    ),
    ("dropped|fell|declined|sank|dipped|plunged", Verb::Falls),
    (
        "has|have dropped|fallen|declined|sunk|dipped|plunged",
        Verb::Falls,
    ),
    (
        "is|are dropping|falling|declining|sinking|dipping|plunging",
        Verb::Falls,
    ),
    ("decreases|decrease|decreased|shrinks|shrink|shrank", Verb::Falls),
    ("has|have decreased|shrunk", Verb::Falls),
    ("is|are decreasing|shrinking", Verb::Falls),
    ("goes|go|went down", Verb::Falls),
    ("has|have gone down", Verb::Falls),
    ("is|are going down", Verb::Falls),
    ("is|are? down", Verb::Falls),
];

/// A verb and its preposition, up to the number.
pub(super) fn movement(input: &mut Tokens<'_>) -> Parsed<Operator> {
    let verb = longest(VERBS).parse_next(input)?;
    let change = match verb {
        Verb::Rises | Verb::Increases => Operator::IncreasesBy,
        Verb::Falls => Operator::DecreasesBy,
    };
    alt((level(verb), by.value(change))).parse_next(input)
}

fn level<'t>(verb: Verb) -> impl Parser<Tokens<'t>, Operator, Refusal> {
    const UPWARDS: &[(&str, Operator)] = &[
        ("above|beyond|past", Operator::Gt),
        ("to above|beyond|over", Operator::Gt),
        ("to more than", Operator::Gt),
        ("to or above", Operator::Gte),
        ("to at least", Operator::Gte),
    ];
    const DOWNWARDS: &[(&str, Operator)] = &[
        ("below|under|beneath", Operator::Lt),
        ("to below|under", Operator::Lt),
        ("to less than", Operator::Lt),
        ("to or below", Operator::Lte),
        ("to at most", Operator::Lte),
    ];
    move |input: &mut Tokens<'t>| match verb {
        Verb::Rises => alt((longest(UPWARDS), phrase("over").value(Operator::Gt))).parse_next(input),
        Verb::Increases => longest(UPWARDS).parse_next(input),
        Verb::Falls => longest(DOWNWARDS).parse_next(input),
    }
}

/// "by more than" ("of" for a drop), "more than", or nothing before a number. "more than" and "at least" are treated
/// alike.
fn by(input: &mut Tokens<'_>) -> Parsed<()> {
    let than = || {
        alt((
            phrase("more|greater than"),
            phrase("at least"),
            phrase("no less than"),
            phrase("in excess of"),
        ))
    };
    let over = phrase("over|above");
    alt((
        (phrase("by|of"), opt(alt((than(), over)))).void(),
        than(),
        peek(number).void(),
    ))
    .parse_next(input)
}
