//! Units behind numbers. A unit is read and not interpreted: what matters is that nothing else is taken for one.
//!
//! ```text
//! unit    = the field's own unit, as in the schema | percent | product ["per" product] | "per" product
//! product = factor {("/" | "·" | "*" | "-") factor}
//! factor  = ["°"] word ["^" ["-"] digit] | "°" | "℃" | "℉" | currency | two words that belong together
//! ```

use winnow::Parser;
use winnow::combinator::{alt, opt, preceded, repeat};
use winnow::stream::Stream;
use winnow::token::any;

use super::field::ends_with_a_token;
use super::refusal::{Parsed, Refusal};
use super::token::{Kind, Token, Tokens, is_one_of, phrase};

/// Longer words are no units.
const UNIT_CHARS_MAX: usize = 24;

/// Words that no unit begins or goes on with. They continue a sentence, say when or how often, scale the number or
/// aggregate the field: without them the condition would mean something else.
const NO_UNITS: &[&str] = &[
    "a|an|the|this|that|these|those|it|its|all|any|both|each|every|other|another|some",
    "and|or|but|nor|not|no|than|then|else|when|whenever|if|unless|while|whereas|until|till|because",
    "above|below|over|under|beyond|between|outside|inside|within|in|into|on|onto|off|out|at|by|to|from|of|for|with",
    "without|via|as|like|versus|vs|against|compared|relative|across|through|throughout|up|down",
    "is|are|was|were|be|been|has|have|had|does|do|goes|gets|becomes|stays|exceeds|equals|equal|greater|less|more|most",
    "fewer|least|higher|lower|rises|falls|drops|increases|decreases|minus|plus|different|high|low|warning|critical",
    "warmer|hotter|colder|cooler|faster|slower|larger|smaller|bigger|longer|shorter|deeper|heavier|lighter|stronger",
    "weaker|better|worse|away|apart|ahead|behind|short|left|here|there|indoors|outdoors|everywhere|anywhere",
    "during|since|after|before|last|next|past|previous|first|ago|later|earlier|now|currently|today|tonight|tomorrow",
    "yesterday|overnight|weekday|weekdays|weekend|weekends|monday|mondays|tuesday|wednesday|thursday|friday|saturday",
    "sunday|sundays|morning|mornings|night|nights|afternoon|evening|noon|midnight|am|pm",
    "again|always|never|ever|still|already|yet|once|twice|thrice|often|sometimes|straight|consecutive|sustained|steady",
    "immediately|only|too|also|either|neither|instead|please|inclusive|exclusive|exact|approx|about|around|roughly|near",
    "average|avg|mean|median|max|maximum|minimum|sum|total|overall|count|percentile|rate|range|interval|band|limits|bounds",
    "k|b|bn|mn|mio|mil|tsd|hundred|hundreds|thousand|thousands|million|millions|billion|billions|trillion|lakh|crore",
    "dozen|dozens|half|quarter|third|double|x|times|time|fold|sigma|sigmas|σ|sd|std|stddev|percent|percentage|per|pct",
    "alert|alerts|alarm|notify|warn|tell|inform|message|email|page|ping|trigger|fire|send|raise|create|give|let|me|us",
];

/// A unit behind a number that is compared; `own` is the field's.
pub(super) fn any_unit<'t>(own: Option<&str>) -> impl Parser<Tokens<'t>, (), Refusal> {
    move |input: &mut Tokens<'t>| further(own, alt((percent, general)), input).map(|_| ())
}

/// A unit behind a change. Per another is only taken when it is the field's own: "rises by 5 °C per minute" is no
/// change of a temperature, while "rises by 5 requests per second" is one of a rate.
pub(super) fn unit_of_change<'t>(own: Option<&str>) -> impl Parser<Tokens<'t>, (), Refusal> {
    move |input: &mut Tokens<'t>| {
        let start = *input;
        let is_own = further(own, general, input)?;
        let mut taken = start[..start.len() - input.len()].iter();
        if !is_own && taken.any(|token| is_one_of(token, "per|/")) {
            return Err(Refusal::because(
                &start,
                "this may be a rate of change, which is not understood; where the field itself is a rate, write its \
                 unit as the schema does",
            ));
        }
        Ok(())
    }
}

/// "%", "percent", "per cent".
pub(super) fn percent(input: &mut Tokens<'_>) -> Parsed<()> {
    alt((phrase("%|percent|pct"), phrase("per cent"))).parse_next(input)
}

/// A sign before or behind an amount of money.
pub(super) fn currency(input: &mut Tokens<'_>) -> Parsed<()> {
    phrase("$|€|£|¥|₹").parse_next(input)
}

/// Takes the field's own unit or the other one, whichever is longer; whether it is the field's.
fn further<'t>(
    own: Option<&str>,
    mut other: impl Parser<Tokens<'t>, (), Refusal>,
    input: &mut Tokens<'t>,
) -> Parsed<bool> {
    let mut rest = *input;
    let other = other.parse_next(&mut rest).map(|()| input.len() - rest.len());
    let own = own.and_then(|own| ends_with_a_token(input, own));
    let (length, is_own) = match (own, other) {
        (Some(own), Ok(other)) if own < other => (other, false),
        (Some(own), _) => (own, true),
        (None, other) => (other?, false),
    };
    input.next_slice(length);
    Ok(is_own)
}

fn general(input: &mut Tokens<'_>) -> Parsed<()> {
    let parts_per = phrase("parts per hundred|thousand|million|billion|trillion");
    alt((
        parts_per,
        (product, opt(per)).void(),
        per,
        preceded(phrase("/"), product),
    ))
    .parse_next(input)
}

fn per(input: &mut Tokens<'_>) -> Parsed<()> {
    preceded(phrase("per"), product).parse_next(input)
}

fn product(input: &mut Tokens<'_>) -> Parsed<()> {
    let more = preceded(alt((phrase("/|·|⋅|*"), hyphen)), factor);
    (factor, repeat::<_, _, (), _, _>(0..=3, more))
        .void()
        .parse_next(input)
}

/// Between two words without space: "5 C-10 C" and "5 C - 10 C" are ranges.
fn hyphen(input: &mut Tokens<'_>) -> Parsed<()> {
    match &**input {
        [hyphen, next, ..] if hyphen.touches(next) && next.kind == Kind::Word => {
            phrase("-").parse_next(input)
        }
        _ => Err(Refusal::unexpected(input)),
    }
}

fn factor(input: &mut Tokens<'_>) -> Parsed<()> {
    let degrees = (
        phrase("°|degree|degrees|deg"),
        opt(phrase("celsius|centigrade|fahrenheit|kelvin|c|f|k")),
    );
    let quantity = (
        phrase("kilowatt|megawatt|gigawatt|watt|ampere|amp|milliamp|volt"),
        phrase("hour|hours|second|seconds|ampere|amperes"),
    );
    let kind_of = (phrase("square|cubic|nautical|metric|percentage|us"), word);
    let power = (
        phrase("^"),
        opt(phrase("-")),
        any.verify(|token: &&Token<'_>| token.kind == Kind::Numeral),
    );
    alt((
        degrees.void(),
        quantity.void(),
        kind_of.void(),
        (word, opt(power)).void(),
        phrase("℃|℉"),
        currency,
    ))
    .parse_next(input)
}

/// Letters, with exponents or the indices of a formula: "m²", "m3", "CO2", but not "x10", "10k" or "5e3".
fn word(input: &mut Tokens<'_>) -> Parsed<()> {
    any.verify(|token: &&Token<'_>| {
        let text = token.text();
        let letters = |c: char| c.is_alphabetic() || matches!(c, '_' | '2' | '3' | '¹' | '²' | '³' | '⁻');
        let adverb = text.len() > 3 && text.ends_with("ly");
        // Exponents and numbers of another base that begin elsewhere than they should.
        let digits =
            text.starts_with(['e', 'E', 'x', 'X']) && text[1..].starts_with(|c: char| c.is_ascii_digit());
        // What differs by case only: ampere, kelvin, and magnitudes.
        let ambiguous = matches!(text, "a" | "K" | "M" | "B" | "X");
        let excluded = text != "A" && NO_UNITS.iter().any(|words| is_one_of(token, words));
        token.kind == Kind::Word
            && text.starts_with(char::is_alphabetic)
            && text.chars().all(letters)
            && text.chars().nth(UNIT_CHARS_MAX).is_none()
            && !adverb
            && !digits
            && !ambiguous
            && !excluded
    })
    .void()
    .parse_next(input)
}
