//! Allowed imports between crates.

use std::fs;

use crate::sources::{assert_none, has_word, joined, root, rust};

/// The crates beside the server, with those that each may use. The server may use all.
const CRATES: &[(&str, &[&str])] = &[
    ("disk", &[]),
    ("wal", &["disk"]),
    ("engine", &[]),
    ("columnar", &[]),
    ("tabular", &["columnar"]),
    ("listener", &[]),
    ("log_store", &[]),
    ("objects", &[]),
    ("promql", &[]),
    ("protocols", &[]),
    // Clients of the server.
    ("evaluator", &[]),
    ("bridge", &["evaluator"]),
    ("importer", &["evaluator"]),
    ("mcp", &["evaluator"]),
    ("demo", &["evaluator"]),
];

#[test]
fn crates_use_only_those_that_they_may() {
    let mut faults = Vec::new();
    for (own, allowed) in CRATES {
        let names = CRATES.iter().map(|(name, _)| *name).chain(["tidewatch"]);
        let others: Vec<&str> = names
            .filter(|name| name != own && !allowed.contains(name))
            .collect();
        for source in rust().iter().filter(|source| source.is_below(own)) {
            let text = joined(source);
            for other in &others {
                if has_word(&text, &format!("{other}::")) {
                    faults.push(format!("{}: names `{other}::`", source.path));
                }
            }
        }
        let manifest = fs::read_to_string(root().join(own).join("Cargo.toml")).unwrap();
        for line in manifest.lines() {
            let dependency = line.split(['=', '.']).next().unwrap_or_default().trim();
            if others.contains(&dependency) {
                faults.push(format!("{own}/Cargo.toml: depends on `{dependency}`"));
            }
        }
    }
    assert_none(&faults, "a crate uses another one that it may not");
}

#[test]
fn every_crate_is_listed() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, members) = manifest.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let members = members.split(',').map(|member| member.trim().trim_matches('"'));
    let missing: Vec<String> = members
        .filter(|member| CRATES.iter().all(|(name, _)| name != member))
        .map(str::to_owned)
        .collect();
    assert_none(&missing, "a crate is not listed");
}

/// The fuzz targets are a workspace of their own, whose lock file no build of the server reads: `make fuzz` would refuse it.
#[test]
fn the_lock_file_of_the_fuzz_targets_has_what_the_crates_depend_on() {
    let lock = fs::read_to_string(root().join("fuzz/Cargo.lock")).unwrap();
    let mut missing = Vec::new();
    let crates = CRATES.iter().map(|(name, _)| (*name, *name));
    for (name, dir) in crates.chain([("tidewatch", "")]) {
        let Some((_, locked)) = lock.split_once(&format!("[[package]]\nname = \"{name}\"\n")) else {
            // None of the targets uses it.
            continue;
        };
        let locked = locked.split("[[package]]").next().unwrap_or_default();
        let manifest = fs::read_to_string(root().join(dir).join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
        let dependencies = dependencies.lines().take_while(|line| !line.starts_with('['));
        for line in dependencies.filter(|line| !line.contains("optional = true")) {
            let dependency = line.split(['=', '.']).next().unwrap_or_default().trim();
            // A version follows where there are several.
            let is_locked = [format!(" \"{dependency}\""), format!(" \"{dependency} ")]
                .iter()
                .any(|entry| locked.contains(entry));
            if !dependency.is_empty() && !dependency.starts_with('#') && !is_locked {
                missing.push(format!("{name}: {dependency}"));
            }
        }
    }
    assert_none(
        &missing,
        "fuzz/Cargo.lock lacks a dependency; run `cargo check` in fuzz",
    );
}
