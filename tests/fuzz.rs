//! Runs the fuzz targets on the saved corpus, `fuzz/corpus`, so that fixed faults stay fixed and every known branch is
//! covered without the fuzzer. `make fuzz` searches for new inputs.
//!
//! A failure names the target and the file; `FUZZ_TARGET` and `FUZZ_INPUT` (a file) run one target on one input.
//! Further inputs are mutated from the corpus, differently in each run; `FUZZ_SEED` repeats those of another run.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// All targets, or the one of `FUZZ_TARGET`.
fn chosen_targets() -> impl Iterator<Item = targets::Target> {
    let chosen = env::var("FUZZ_TARGET").ok();
    let is_chosen = move |name: &str| chosen.as_deref().is_none_or(|chosen| chosen == name);
    targets::ALL.into_iter().filter(move |(name, _)| is_chosen(name))
}

fn corpus_of(target: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    corpus.join(target)
}

/// Sorted, because the order of a directory is unspecified and a seed must repeat its inputs.
fn kept_inputs(target: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(corpus_of(target)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{target} has no inputs");
    files.sort();
    files
}

#[test]
fn the_kept_corpus_passes() {
    let mut failed = Vec::new();
    for (name, check) in chosen_targets() {
        let files = match env::var_os("FUZZ_INPUT") {
            Some(input) => vec![input.into()],
            None => kept_inputs(name),
        };
        for file in files {
            let input = fs::read(&file).unwrap();
            if catch_unwind(|| check(&input)).is_err() {
                failed.push(format!("{name}: {}", file.display()));
            }
        }
    }
    assert!(failed.is_empty(), "inputs that fail:\n  {}", failed.join("\n  "));
}

/// Number of mutated inputs for each target.
const MUTATIONS: usize = 2_000;
/// Longer inputs take longer without covering more.
const MUTATED_BYTES_MAX: usize = 1 << 16;

#[test]
fn inputs_mutated_from_the_corpus_pass() {
    let seed = env::var("FUZZ_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("FUZZ_SEED={seed}");
    let mut failed = Vec::new();
    for (name, check) in chosen_targets() {
        let mut random = fastrand::Rng::with_seed(seed);
        let files = kept_inputs(name);
        for nth in 0..MUTATIONS {
            let mut kept = || fs::read(&files[random.usize(..files.len())]).unwrap();
            let (one, other) = (kept(), kept());
            let input = mutate(&one, &other, &mut random);
            if catch_unwind(|| check(&input)).is_err() {
                let file = corpus_of(name).join(format!("made-{seed}-{nth}"));
                fs::write(&file, &input).unwrap();
                failed.push(format!("{name}: {}", file.display()));
            }
        }
    }
    assert!(
        failed.is_empty(),
        "seed {seed}: inputs that fail:\n  {}",
        failed.join("\n  ")
    );
}

/// A mutated input: bits flipped, a part removed, duplicated or taken from the other input, or noise.
fn mutate(one: &[u8], other: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut input = one.to_vec();
    for _ in 0..random.usize(1..=4) {
        let mut place = |len: usize| random.usize(..=len);
        let (from, to) = (place(input.len()), place(input.len()));
        let part = from.min(to)..from.max(to);
        let (from, to) = (place(other.len()), place(other.len()));
        let of_other = &other[from.min(to)..from.max(to)];
        match random.u8(..5) {
            0 if !input.is_empty() => {
                let at = random.usize(..input.len());
                input[at] ^= 1 << random.u8(..8);
            }
            1 => drop(input.drain(part)),
            2 => {
                let twice = input[part.clone()].to_vec();
                input.splice(part.end..part.end, twice);
            }
            3 => drop(input.splice(part, of_other.iter().copied())),
            _ => {
                let noise: Vec<u8> = (0..random.usize(..8)).map(|_| random.u8(..)).collect();
                input.splice(part.start..part.start, noise);
            }
        }
        input.truncate(MUTATED_BYTES_MAX);
    }
    input
}

/// A target without a binary, or a binary without a target, would not be tested.
#[test]
fn every_target_has_a_binary_and_vice_versa() {
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
