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
        "rise~|climb~|jump~|surge~|spike~; rose|climbed|jumped|surged|spiked; \
         has|have risen|climbed|jumped|surged|spiked; is|are rising|climbing|jumping|surging|spiking; \
         goes|go|went up; has|have gone up; is|are going up; is|are? up",
        Verb::Rises,
    ),
    (
        "increase~|increased|grow~|grew; has|have increased|grown; is|are increasing|growing",
        Verb::Increases,
    ),
    (
        "drop~|fall~|decline~|sink~|dip~|plunge~; dropped|fell|declined|sank|dipped|plunged; \
         has|have dropped|fallen|declined|sunk|dipped|plunged; \
         is|are dropping|falling|declining|sinking|dipping|plunging; \
         decrease~|decreased|shrink~|shrank; has|have decreased|shrunk; is|are decreasing|shrinking; \
         goes|go|went down; has|have gone down; is|are going down; is|are? down",
        Verb::Falls,
    ),
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
        (
            "above|beyond|past; to above|beyond|over; to more than",
            Operator::Gt,
        ),
        ("to or above; to at least", Operator::Gte),
    ];
    const DOWNWARDS: &[(&str, Operator)] = &[
        ("below|under|beneath; to below|under; to less than", Operator::Lt),
        ("to or below; to at most", Operator::Lte),
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
    let than = || phrase("more|greater than; at least; no less than; in excess of");
    alt((
        (phrase("by|of"), opt(alt((than(), phrase("over|above"))))).void(),
        than(),
        peek(number).void(),
    ))
    .parse_next(input)
}
