//! House rules that no compiler checks: who may import whom, how long a file grows, what is never committed.
//! Reads the sources as text; a message names the file and what to do about it.
#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report, its place is the message"
)]

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 500;

/// Which rooms of the server a room may import: the arrows of ARCHITECTURE.md. `crate::x` of a room that is not in
/// its list is an architectural change and is made here first.
const ARROWS: &[(&str, &[&str])] = &[
    // Words that every room shares.
    ("ids", &["random"]),
    ("clock", &[]),
    ("random", &[]),
    ("limits", &[]),
    ("timestamp", &["clock"]),
    ("error", &["random"]),
    ("checked_file", &[]),
    // Pure rooms.
    ("catalog", &["ids", "clock", "limits"]),
    ("config", &["catalog", "limits"]),
    (
        "ingest",
        &["catalog", "clock", "error", "ids", "limits", "timestamp"],
    ),
    // From the log outwards.
    ("journal", &["catalog", "clock", "error", "ids", "limits"]),
    (
        "bucket",
        &[
            "catalog",
            "checked_file",
            "clock",
            "error",
            "ids",
            "journal",
            "limits",
        ],
    ),
    (
        "checkpoint",
        &[
            "bucket",
            "catalog",
            "checked_file",
            "clock",
            "config",
            "error",
            "ids",
            "journal",
            "limits",
        ],
    ),
    (
        "service",
        &[
            "bucket",
            "catalog",
            "clock",
            "config",
            "error",
            "ids",
            "ingest",
            "journal",
            "limits",
            "random",
            "timestamp",
        ],
    ),
    (
        "http",
        &[
            "catalog",
            "clock",
            "config",
            "error",
            "ids",
            "limits",
            "random",
            "service",
            "timestamp",
        ],
    ),
    // Whoever puts the rooms together may name them all.
    ("check", ALL),
    ("startup", ALL),
    ("main", ALL),
    ("lib", ALL),
];

const ALL: &[&str] = &["*"];

/// Rooms of pure logic: no runtime, no files, no clock, so that every rule is tested without a server or a sleep.
const PURE: &[&str] = &[
    "src/catalog",
    "src/ingest",
    "engine/src",
    "src/limits.rs",
    "src/timestamp.rs",
    "src/ids.rs",
];

const IMPURE: &[&str] = &[
    "actix",
    "tokio",
    "tracing",
    "std::fs",
    "std::net",
    "std::thread",
    "thread::",
    "SystemTime",
    "Instant::now",
    "async ",
    ".await",
];

/// The only files with unsafe code, each small and with its proof.
const UNSAFE: &[&str] = &["wal/src/disk/map.rs"];

/// The only places where a test waits: polling with a deadline.
const WAITING_TESTS: &[&str] = &["tests/support/process.rs", "tests/crash/rounds.rs"];

struct Source {
    /// From the root of the repository, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// The lines that are no comments, numbered from 1.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..)
            .zip(self.text.lines())
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn is_below(&self, folder: &str) -> bool {
        self.path == folder || self.path.starts_with(&format!("{folder}/"))
    }

    /// A file of tests only: it may use what the room itself may not.
    fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.split('/').any(|part| part == "tests") || name == "tests.rs" || name.ends_with("_tests.rs")
    }

    /// The first segment below `src`, as a module's name.
    fn room(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        Some(inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs"))
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file that is or could be committed.
fn committed() -> Vec<Source> {
    fn walk(directory: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                // What .gitignore leaves out, and git's own.
                let own = directory != root() || !matches!(name.as_str(), "target" | "data");
                if own && !matches!(name.as_str(), ".git" | "node_modules" | "dist") {
                    walk(&path, found);
                }
            } else if let Ok(text) = fs::read_to_string(&path) {
                let path = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_string_lossy()
                    .replace('\\', "/");
                found.push(Source { path, text });
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The Rust files but for this one, which has to name what it forbids.
fn rust() -> Vec<Source> {
    let mut sources = committed();
    sources.retain(|source| source.path.ends_with(".rs") && source.path != "tests/tidy.rs");
    assert!(sources.len() > 20, "the sources were found");
    sources
}

#[track_caller]
fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `word` stands in the line as a whole: not as a part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let starts = !word.starts_with(is_word) || !before.is_some_and(is_word);
        let ends = !word.ends_with(is_word) || !after.is_some_and(is_word);
        starts && ends
    })
}

/// The first names behind every `prefix::`, those of a group `prefix::{a, b::c}` included.
fn names_behind(text: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        if text[..at]
            .chars()
            .next_back()
            .is_some_and(|c| is_word(c) || c == ':')
        {
            continue;
        }
        let rest = &text[at + prefix.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            names.extend(group_names(group));
        } else {
            names.push(rest.chars().take_while(|c| is_word(*c)).collect());
        }
    }
    names.retain(|name: &String| !name.is_empty());
    names
}

/// The first segment of each member of a group, up to its closing brace.
fn group_names(group: &str) -> Vec<String> {
    let (mut depth, mut names, mut name, mut first) = (1, Vec::new(), String::new(), true);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => {
                names.push(std::mem::take(&mut name));
                first = true;
                continue;
            }
            ':' => first = false,
            c if first && depth == 1 && is_word(c) => name.push(c),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names.push(name);
    names
}

/// The code of a file as one text, so that a group over several lines is found.
fn joined(source: &Source) -> String {
    source.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

#[test]
fn rooms_import_only_along_the_arrows() {
    let mut faults = Vec::new();
    for source in rust().iter().filter(|source| !source.is_test()) {
        let Some(room) = source.room() else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
            faults.push(format!(
                "{}: the room `{room}` has no arrows yet; add it to ARROWS",
                source.path
            ));
            continue;
        };
        let text = joined(source);
        let mut imported = names_behind(&text, "crate::");
        // The way up out of a room: as many `super::` as the file is deep, then another room's name.
        let depth = source.path.matches('/').count() - usize::from(source.path.ends_with("/mod.rs"));
        let rooms = ARROWS.iter().map(|(name, _)| *name);
        let upwards = names_behind(&text, &"super::".repeat(depth.max(1)));
        imported.extend(
            upwards
                .into_iter()
                .filter(|name| depth > 0 && rooms.clone().any(|room| room == name)),
        );
        for name in imported {
            let is_room = ARROWS.iter().any(|(room, _)| *room == name);
            if is_room && name != room && !allowed.contains(&name.as_str()) && *allowed != ALL {
                faults.push(format!("{}: `{room}` imports `{name}`", source.path));
            }
        }
    }
    assert_none(
        &faults,
        "design: http → service → {catalog, bucket, …} → journal → wal; rooms import along the arrows",
    );
}

#[test]
fn wal_and_engine_import_nothing_of_ours() {
    let mut faults = Vec::new();
    for (own, others) in [("wal", ["engine", "tidewatch"]), ("engine", ["wal", "tidewatch"])] {
        for source in rust().iter().filter(|source| source.is_below(own)) {
            let text = joined(source);
            for other in others {
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
    assert_none(
        &faults,
        "design: wal and engine import nothing of ours, not each other",
    );
}

#[test]
fn only_the_bucket_holds_the_engine_s_store_and_only_the_journal_the_log() {
    let mut faults = Vec::new();
    for source in rust()
        .iter()
        .filter(|source| source.is_below("src") && !source.is_test())
    {
        let text = joined(source);
        if !source.is_below("src/bucket")
            && names_behind(&text, "engine::").iter().any(|name| name == "Store")
        {
            faults.push(format!("{}: holds the engine's Store", source.path));
        }
        // `wal` is also the port to the disk, which others reach their files through.
        let outside = ["src/http", "src/service", "src/catalog", "src/ingest"]
            .iter()
            .any(|room| source.is_below(room));
        if outside && has_word(&text, "wal::") {
            faults.push(format!("{}: reaches behind the journal to the log", source.path));
        }
        if source.is_below("src/http") && has_word(&text, "engine::") {
            faults.push(format!(
                "{}: a handler translates, it does not reach the engine",
                source.path
            ));
        }
        if source.is_below("src/service") && has_word(&text, "actix_web") {
            faults.push(format!("{}: service is free of HTTP", source.path));
        }
    }
    assert_none(
        &faults,
        "design: bucket alone holds the engine's store; services are free of HTTP; the log is the journal's",
    );
}

#[test]
fn pure_rooms_have_no_runtime_no_files_and_no_clock() {
    let mut faults = Vec::new();
    for source in rust()
        .iter()
        .filter(|source| PURE.iter().any(|room| source.is_below(room)) && !source.is_test())
    {
        for (number, line) in source.code() {
            for word in IMPURE.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{number}: `{}`", source.path, word.trim()));
            }
        }
    }
    for source in rust()
        .iter()
        .filter(|source| source.is_below("wal/src") && !source.is_test())
    {
        for (number, line) in source.code() {
            let words = [
                "SystemTime",
                "Instant::now",
                "thread::spawn",
                "thread::sleep",
                "actix",
                "tokio",
                "async ",
            ];
            for word in words.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{number}: `{}`", source.path, word.trim()));
            }
        }
    }
    assert_none(
        &faults,
        "design: pure logic takes time, disk and randomness as arguments",
    );
}

#[test]
fn files_are_short_enough_for_one_reason_to_change() {
    let long: Vec<String> = rust()
        .iter()
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines, at most {LINES_MAX}"))
        .collect();
    assert_none(
        &long,
        "style: a file that needs an inner table of contents is two files",
    );
}

#[test]
fn every_room_opens_with_what_it_is_for() {
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
        if matches!(
            name,
            "utils" | "util" | "helpers" | "helper" | "common" | "misc" | "types"
        ) {
            faults.push(format!(
                "{}: the name says nothing of what is inside",
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
    for source in rust() {
        for (number, line) in (1..).zip(source.text.lines()) {
            for word in forbidden.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{number}: `{word}`", source.path));
            }
        }
    }
    assert_none(&faults, "style: what is unfinished or silenced stays out");
}

#[test]
fn nothing_committed_names_a_machine() {
    let paths = ["/work/", "/tmp/", "/root/", "/home/", "/mnt/", "/Users/"];
    let mut faults = Vec::new();
    for source in committed() {
        if source.path == "tests/tidy.rs" || source.path.ends_with(".lock") {
            continue;
        }
        for (number, line) in (1..).zip(source.text.lines()) {
            for path in paths.iter().filter(|path| line.contains(**path)) {
                // A segment of a longer path or address is not a place on a machine.
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
    assert_none(
        &faults,
        "house rule: nothing committed names this machine's paths",
    );
}

#[test]
fn unsafe_stands_only_in_named_files_with_its_proof() {
    let mut faults = Vec::new();
    for source in rust() {
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
        "house rule: unsafe only in one small file per need, with its proof",
    );
}

#[test]
fn tests_do_not_sleep_to_wait() {
    let mut faults = Vec::new();
    for source in rust().iter().filter(|source| source.is_test()) {
        for (number, line) in source.code() {
            if line.contains("sleep(") && !WAITING_TESTS.contains(&source.path.as_str()) {
                faults.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    assert_none(
        &faults,
        "house rule: tests never sleep to wait; time is an argument, or a poll with a deadline",
    );
}

/// The rules above are only as good as what they find: each finder must see what it is made for.
#[test]
fn the_finders_find() {
    assert_eq!(
        names_behind(
            "use crate::{ids::ObjectId, http::{auth, body}, error};",
            "crate::"
        ),
        ["ids", "http", "error"]
    );
    assert_eq!(
        names_behind("crate::ids::X + tidewatch_crate::no + crate::clock", "crate::"),
        ["ids", "clock"]
    );
    assert_eq!(
        names_behind("use super::super::http::x; use super::y;", "super::super::"),
        ["http"]
    );
    assert!(
        has_word("unsafe { }", "unsafe")
            && !has_word("unsafe_code", "unsafe")
            && !has_word("not_unsafe", "unsafe")
    );
    assert!(
        has_word("std::time::Instant::now()", "Instant::now")
            && !has_word("MyInstant::nowhere", "Instant::now")
    );
    let source = |path: &str| Source {
        path: path.to_owned(),
        text: String::new(),
    };
    assert_eq!(source("src/http/data.rs").room(), Some("http"));
    assert_eq!(source("src/ids.rs").room(), Some("ids"));
    assert_eq!(source("wal/src/lib.rs").room(), None);
    assert!(source("src/catalog/tests.rs").is_test() && !source("src/catalog/apply.rs").is_test());
}
