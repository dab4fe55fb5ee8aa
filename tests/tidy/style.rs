//! Length, module docs, unfinished work, machine-specific paths, unsafe code, sleeping tests.

use crate::sources::{assert_none, committed, has_word, is_word, rust};

const LINES_MAX: usize = 500;

/// The only files with unsafe code, each small and with a safety comment.
const UNSAFE: &[&str] = &["disk/src/fault.rs", "disk/src/map.rs", "src/allocator.rs"];

/// The only files in which a test waits: by polling with a deadline.
const WAITING_TESTS: &[&str] = &[
    "tests/support/process.rs",
    "tests/crash/rounds.rs",
    "tests/support/waiting.rs",
    "src/delivery/tests/world.rs",
];

#[test]
fn files_have_at_most_500_lines() {
    let long: Vec<String> = rust()
        .iter()
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines, at most {LINES_MAX}"))
        .collect();
    assert_none(&long, "style: a longer file has to be split");
}

#[test]
fn every_room_begins_with_a_module_comment() {
    let sources = rust();
    let mut faults = Vec::new();
    for source in &sources {
        let stem = source.path.trim_end_matches(".rs");
        let name = stem.rsplit('/').next().unwrap_or_default();
        let is_room =
            matches!(name, "mod" | "lib" | "main") || sources.iter().any(|other| other.is_below(stem));
        let first = source.text.lines().next().unwrap_or_default();
        if is_room && !first.starts_with("//! ") {
            faults.push(format!("{}: begins with `{first}`", source.path));
        }
        if matches!(name, "utils" | "util" | "helpers" | "misc" | "types") {
            faults.push(format!(
                "{}: the name does not describe the contents",
                source.path
            ));
        }
    }
    assert_none(
        &faults,
        "style: a room's file opens with `//!`: what it is for, what it never does, who calls it",
    );
}

#[test]
fn nothing_unfinished_or_silenced_is_committed() {
    let forbidden = [
        "TODO",
        "FIXME",
        "XXX",
        "dbg!(",
        "todo!(",
        "unimplemented!(",
        "#[ignore",
        "allow(dead_code",
        "expect(dead_code",
        "allow(unused",
        "allow(clippy::all",
    ];
    let mut faults = Vec::new();
    for source in rust().iter().filter(|source| !source.is_rule()) {
        for (number, line) in (1..).zip(source.text.lines()) {
            for word in forbidden.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{number}: `{word}`", source.path));
            }
        }
    }
    assert_none(&faults, "style: nothing unfinished or silenced is committed");
}

#[test]
fn no_committed_file_contains_a_local_path() {
    let paths = ["/work/", "/tmp/", "/root/", "/home/", "/mnt/", "/Users/"];
    let mut faults = Vec::new();
    for source in committed().iter().filter(|source| !source.is_rule()) {
        for (number, line) in (1..).zip(source.text.lines()) {
            for path in paths.iter().filter(|path| line.contains(**path)) {
                // A segment of a longer path or address is not a path on a machine.
                let own = line.match_indices(*path).any(|(at, _)| {
                    !line[..at]
                        .chars()
                        .next_back()
                        .is_some_and(|c| is_word(c) || matches!(c, '.' | '/' | '-' | '}'))
                });
                if own {
                    faults.push(format!("{}:{number}: `{path}`", source.path));
                }
            }
        }
    }
    assert_none(&faults, "style: committed files contain no paths of this machine");
}

#[test]
fn unsafe_is_used_only_in_listed_files_with_a_safety_comment() {
    let mut faults = Vec::new();
    for source in rust().iter().filter(|source| !source.is_rule()) {
        let mut proven = false;
        for (number, line) in (1..).zip(source.text.lines()) {
            let comment = line.trim_start().starts_with("//");
            proven = if comment {
                proven || line.contains("SAFETY")
            } else {
                proven
            };
            if comment || !has_word(line, "unsafe") {
                if !comment && !line.trim().is_empty() {
                    proven = false;
                }
                continue;
            }
            if !UNSAFE.contains(&source.path.as_str()) {
                faults.push(format!(
                    "{}:{number}: unsafe in a file that is not named in UNSAFE",
                    source.path
                ));
            } else if !proven {
                faults.push(format!(
                    "{}:{number}: unsafe without a `SAFETY:` comment right before it",
                    source.path
                ));
            }
        }
    }
    assert_none(
        &faults,
        "style: unsafe code is in the files of UNSAFE, with a `SAFETY:` comment",
    );
}

#[test]
fn tests_do_not_sleep() {
    let mut faults = Vec::new();
    for source in rust()
        .iter()
        .filter(|source| source.is_test() && !source.is_rule())
    {
        for (number, line) in source.code() {
            if line.contains("sleep(") && !WAITING_TESTS.contains(&source.path.as_str()) {
                faults.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    assert_none(
        &faults,
        "style: tests do not sleep; time is an argument, or the test polls with a deadline",
    );
}
