//! The words around a condition: "alert me when the value of …", "…, then notify us.".

use winnow::Parser;
use winnow::combinator::{alt, eof, opt};
use winnow::stream::Stream;

use super::refusal::Parsed;
use super::token::{Token, Tokens, phrase};

/// The remaining tokens after each possible opening, from no opening to the longest one. A field's name may begin with
/// words of an opening, so all of them must be tried in this order.
pub(super) fn openings<'t>(tokens: &'t [Token<'t>]) -> Vec<&'t [Token<'t>]> {
    let parts: [fn(&mut Tokens<'_>) -> Parsed<()>; 5] = [
        occasion,
        |input| phrase("the|a|an").parse_next(input),
        |input| phrase("value|reading of").parse_next(input),
        |input| phrase("the|a|an").parse_next(input),
        |input| phrase("field").parse_next(input),
    ];
    let mut input = Tokens::new(tokens);
    let mut openings = vec![tokens];
    for part in parts {
        if let Ok(Some(())) = opt(part).parse_next(&mut input) {
            openings.push(input.peek_slice(input.eof_offset()));
        }
    }
    openings
}

/// Everything that may follow a condition, up to the end of input. A call to action without a comma or "then" must name
/// its recipient: "status is red alert" may compare with "red alert".
pub(super) fn ending(input: &mut Tokens<'_>) -> Parsed<()> {
    let at_present = phrase("now|currently; right now");
    let consequence = alt((
        (phrase(", then; ,|then"), call).void(),
        (phrase("please?"), call_to_someone).void(),
    ));
    (opt(at_present), opt(consequence), phrase("please? .|!?"), eof)
        .void()
        .parse_next(input)
}

fn occasion(input: &mut Tokens<'_>) -> Parsed<()> {
    let conjunction = phrase("when|whenever|if|once; as soon as; in case");
    alt(((opt(call), conjunction).void(), (call, phrase(":")).void())).parse_next(input)
}

/// A call to action.
fn call(input: &mut Tokens<'_>) -> Parsed<()> {
    let to_whomever = alt((
        call_to_someone,
        phrase(TELL),
        (phrase(SEND), opt(phrase(NOTIFICATION))).void(),
    ));
    (phrase("please?"), to_whomever).void().parse_next(input)
}

fn call_to_someone(input: &mut Tokens<'_>) -> Parsed<()> {
    alt((
        (phrase(TELL), phrase("me|us|everyone; the|my|our team")).void(),
        (phrase(SEND), phrase("me|us"), opt(phrase(NOTIFICATION))).void(),
        phrase("let me|us know; i|we want to know; i|we want to be alerted|notified|told|informed|warned"),
    ))
    .parse_next(input)
}

const TELL: &str = "alert|alarm|notify|warn|tell|inform|message|email|page|ping";
const SEND: &str = "trigger|fire|send|raise|create|give";
const NOTIFICATION: &str = "an|a|the? alert|alarm|warning|notification|message|email";
