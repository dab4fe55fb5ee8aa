//! The project's texts, and functions that search them for words and imports.

use std::fs;
use std::path::{Path, PathBuf};

pub struct Source {
    /// Relative to the root of the repository, with `/`.
    pub path: String,
    pub text: String,
}

impl Source {
    /// The lines that are not comments, numbered from 1.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..)
            .zip(self.text.lines())
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    pub fn is_below(&self, folder: &str) -> bool {
        self.path == folder || self.path.starts_with(&format!("{folder}/"))
    }

    /// Whether it is a file of tests: it may use what the room itself may not.
    pub fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.split('/').any(|part| part == "tests") || name == "tests.rs" || name.ends_with("_tests.rs")
    }

    /// Whether it is one of these rules, which have to name what they forbid.
    pub fn is_rule(&self) -> bool {
        self.path == "tests/tidy.rs" || self.is_below("tests/tidy")
    }

    /// The first segment below `src`, as a module's name.
    pub fn room(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        Some(inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs"))
    }
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every text of the project that is or could be committed.
pub fn committed() -> Vec<Source> {
    fn walk(directory: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            // Git's own directory, which is a file in a secondary work tree.
            if name == ".git" {
                continue;
            }
            if path.is_dir() {
                // Directories excluded by .gitignore.
                let own = directory != root() || !matches!(name.as_str(), "target" | "data");
                if own && !matches!(name.as_str(), "node_modules" | "dist") {
                    walk(&path, found);
                }
                continue;
            }
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            let is_text = matches!(
                &*extension,
                "" | "rs" | "toml" | "md" | "sh" | "yml" | "html" | "css" | "js" | "ts"
            );
            if let (true, Ok(text)) = (is_text, fs::read_to_string(&path)) {
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

pub fn rust() -> Vec<Source> {
    let mut sources = committed();
    sources.retain(|source| source.path.ends_with(".rs"));
    assert!(sources.len() > 20, "the sources were found");
    sources
}

#[track_caller]
pub fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `word` occurs in the line as a whole word.
pub fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let starts = !word.starts_with(is_word) || !before.is_some_and(is_word);
        let ends = !word.ends_with(is_word) || !after.is_some_and(is_word);
        starts && ends
    })
}

/// The first name after every `prefix::`, including those of a group `prefix::{a, b::c}`.
pub fn names_behind(text: &str, prefix: &str) -> Vec<String> {
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

/// The code of a file as one text, so that groups over several lines are found.
pub fn joined(source: &Source) -> String {
    source.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

/// The rules depend on these functions: each must find its pattern.
#[test]
fn every_finder_finds_its_pattern() {
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
