//! The inputs that fuzzing kept, `fuzz/corpus`, through the functions that it ran them through: what was found once stays
//! found, and every branch that the fuzzer knows is taken without it. `make fuzz` looks for more.
//!
//! A failure names the target and the file; `FUZZ_TARGET` and `FUZZ_INPUT` (a file) run one target on one input.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use std::panic::catch_unwind;
use std::path::Path;
use std::{env, fs};

#[test]
fn the_kept_corpus_passes() {
    let chosen = env::var("FUZZ_TARGET").ok();
    let mut failed = Vec::new();
    for (name, check) in targets::ALL {
        if chosen.as_deref().is_some_and(|chosen| chosen != name) {
            continue;
        }
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/corpus")
            .join(name);
        let files = match env::var_os("FUZZ_INPUT") {
            Some(input) => vec![input.into()],
            None => fs::read_dir(&corpus)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect(),
        };
        assert!(!files.is_empty(), "{name} has no inputs");
        for file in files {
            let input = fs::read(&file).unwrap();
            if catch_unwind(|| check(&input)).is_err() {
                failed.push(format!("{name}: {}", file.display()));
            }
        }
    }
    assert!(failed.is_empty(), "inputs that fail:\n  {}", failed.join("\n  "));
}

/// A target that no binary runs, or a binary that no test replays, would be forgotten.
#[test]
fn every_target_has_a_binary_and_the_other_way_round() {
    let binaries = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/binaries");
    let mut found: Vec<String> = fs::read_dir(binaries)
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    found.sort();
    assert_eq!(found, targets::ALL.map(|(name, _)| name));
}
