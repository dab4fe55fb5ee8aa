//! ARCHITECTURE.md is correct: named files exist, every room is described, and the glossary is followed.

use std::fs;

use crate::sources::{Source, assert_none, has_word, joined, root, rust};

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// Texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn files_named_by_documents_exist() {
    let mut missing = Vec::new();
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for name in quoted(&text) {
            let path = name.trim_end_matches('/');
            let is_path = [
                "src/",
                "disk/",
                "wal/",
                "engine/",
                "evaluator/",
                "bridge/",
                "mcp/",
                "listener/",
                "log_store/",
                "objects/",
                "columnar/",
                "protocols/",
                "tabular/",
                "importer/",
                "promql/",
                "demo/",
                "tests/",
                "benches/",
                "dashboard/",
            ]
            .iter()
            .any(|start| path.starts_with(start))
                && !path.contains([' ', '*', '{']);
            if is_path && !root().join(path).exists() {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert_none(&missing, "a document names a file that is not there");
}

#[test]
fn every_room_is_described_in_architecture() {
    let text = architecture();
    let rooms = fs::read_dir(root().join("src")).unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let is_room = entry.file_type().unwrap().is_dir() && entry.file_name() != "startup";
        is_room.then(|| format!("`src/{}/`", entry.file_name().to_string_lossy()))
    });
    let missing: Vec<_> = rooms.filter(|room| !text.contains(room.as_str())).collect();
    assert_none(&missing, "a room is missing in ARCHITECTURE.md");
}

#[test]
fn glossary_terms_are_used_consistently() {
    let text = architecture();
    let (_, glossary) = text.split_once("## Glossary").unwrap();
    let (glossary, _) = glossary.split_once("\n## ").unwrap();
    let other_words: Vec<&str> = glossary
        .lines()
        .filter_map(|line| line.trim_end_matches('|').rsplit_once('|'))
        .flat_map(|(_, last)| quoted(last))
        .collect();
    assert!(!other_words.is_empty(), "the glossary has no words to look for");
    let mut found = Vec::new();
    let crates = [
        "disk/src",
        "wal/src",
        "engine/src",
        "listener/src",
        "log_store/src",
        "objects/src",
        "columnar/src",
        "protocols/src",
        "tabular/src",
        "importer/src",
        "promql/src",
        "evaluator/src",
        "bridge/src",
        "mcp/src",
        "demo/src",
    ];
    let product = |source: &Source| {
        let is_of_crate = crates.iter().any(|folder| source.is_below(folder));
        (source.room().is_some() || is_of_crate) && !source.is_test()
    };
    for source in rust().into_iter().filter(product) {
        let code = joined(&source);
        let words = other_words.iter().filter(|word| has_word(&code, word));
        found.extend(words.map(|word| format!("{}: {word}", source.path)));
    }
    assert_none(&found, "the glossary has another word for this");
}
