//! Bodies of independent encoders and of real agents, and damaged ones.
//!
//! `PROTOCOLS_SEED=7 cargo test -p protocols --test it` repeats a run with the seed that it printed.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod damaged;
mod lines;
mod otlp;
mod prometheus;
mod recorded;
#[path = "../../src/recorder.rs"]
mod recorder;
mod remote_write;

use protocols::{Family, Field, KeyKind, Refusal, Sample, SampleKind, SeriesKey, Sink, Value};

/// Random numbers of a seed that is printed, and taken from the environment.
fn random() -> fastrand::Rng {
    let seed =
        std::env::var("PROTOCOLS_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("PROTOCOLS_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// A text of at least one character, some of which have a meaning in one of the protocols.
fn text(random: &mut fastrand::Rng) -> String {
    const CHARACTERS: &[&str] = &[
        "a", "b", "c", "_", ".", "ä", "日", ",", "=", " ", "\"", "/", "\\x", "\t", "#", "😀",
    ];
    let length = random.usize(1..12);
    let mut text: String = (0..length)
        .map(|_| match random.u8(0..3) {
            0 => CHARACTERS[random.usize(..CHARACTERS.len())],
            _ => "x",
        })
        .collect();
    // Neither blank, nor the beginning of a comment, nor an escape of what follows.
    text.insert(0, 'm');
    text.push('z');
    text
}

/// Names that differ, and texts.
fn labels(random: &mut fastrand::Rng) -> Vec<(String, String)> {
    (0..random.usize(0..6))
        .map(|number| (format!("{}{number}", text(random)), text(random)))
        .collect()
}

/// A finite number of any size.
fn number(random: &mut fastrand::Rng) -> f64 {
    match random.u8(0..4) {
        0 => f64::from(random.i32(..)),
        1 => f64::from(random.i32(-10_000..10_000)) / 100.0,
        _ => loop {
            let number = f64::from_bits(random.u64(..));
            if number.is_finite() {
                break number;
            }
        },
    }
}

/// Metadata of labels as `serde_json` writes it.
fn metadata(labels: &[(String, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let members = labels
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()));
    serde_json::Value::Object(members.collect()).to_string()
}
