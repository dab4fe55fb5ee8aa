//! Texts that are nearly questions: whatever they are, they are answered or refused.
//!
//! A run prints its seed: `PROMQL_SEED=… cargo test -p promql` repeats it.

use fastrand::Rng;
use promql::{ErrorKind, Options, Query, params};

use crate::loaded::{LIMITS, loaded};
use crate::questions;

const TEXTS: usize = 20_000;

/// What is put into a question: pieces of the grammar, numbers out of bounds, characters of several bytes.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "'",
    "`",
    "\\",
    "#",
    "\n",
    "\\xff",
    "\\u00e9",
    "é",
    "\u{10ffff}",
    "@",
    " offset ",
    " by ",
    " on ",
    " group_left ",
    " bool ",
    "inf",
    "nan",
    "-",
    "+",
    "1e309",
    "0x",
    "0xffffffffffffffffff",
    "9999999999999999999",
    "1e400",
    "5m",
    "99999999999y",
    "0s",
    ".",
    "..",
    "1_0",
    "start()",
    "end()",
    " fill(1) ",
    "=~",
    "!~",
    "=",
    "==",
    "{{",
    "}}",
    "e",
    "1e",
    "1e+",
    "\0",
];

#[test]
fn texts_that_are_nearly_questions_are_answered_or_refused() {
    let seed = std::env::var("PROMQL_SEED")
        .ok()
        .map(|seed| seed.parse().unwrap());
    let seed: u64 = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("PROMQL_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let storage = loaded(&[r#"up{instance="a:1",job="api"} 1 0 1"#, "temperature 1 2 3"]);
    let mut refused = 0;
    for _ in 0..TEXTS {
        let text = mangled(&mut rng);
        let asked =
            Query::parse(&text, Options::default()).and_then(|query| query.instant(&storage, 30_000, LIMITS));
        if let Err(error) = asked {
            refused += 1;
            assert_ne!(
                error.kind,
                ErrorKind::Internal,
                "PROMQL_SEED={seed}: {text:?}: {error}"
            );
            assert!(!error.message.is_empty());
        }
        // Neither may any of it end the reading of a parameter.
        let _ = (
            params::time_ms(&text),
            params::duration_ms(&text),
            params::selector(&text),
        );
    }
    assert!(
        refused > TEXTS / 10 && refused < TEXTS,
        "{refused} of {TEXTS} are refused"
    );
}

fn mangled(rng: &mut Rng) -> String {
    let mut chars: Vec<char> = questions::question(rng, (0, 60_000)).chars().collect();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(0..=chars.len());
        match rng.u32(0..3) {
            0 => drop(chars.splice(at..at, PIECES[rng.usize(0..PIECES.len())].chars())),
            1 => drop(chars.drain(at..(at + rng.usize(0..4)).min(chars.len()))),
            _ => chars.truncate(at.max(1)),
        }
    }
    chars.into_iter().collect()
}
