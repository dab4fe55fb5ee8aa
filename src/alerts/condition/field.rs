//! Field names as people write them: exact, in quotes, or different in case, spaces, underscores and hyphens.

use std::cmp::Reverse;

use super::token::{Kind, Token};
use crate::catalog::{Field, Schema};

/// The fields of a schema with their normalized names.
pub(super) struct Names<'s>(Vec<(&'s Field, String)>);

/// A field whose name occurs at some position.
#[derive(Clone, Copy)]
pub(super) struct Spelled<'s> {
    pub field: &'s Field,
    /// Length of the name in tokens.
    pub tokens: usize,
    /// Whether it is spelled exactly as in the schema.
    pub exact: bool,
}

impl<'s> Names<'s> {
    pub fn of(schema: &'s Schema) -> Self {
        let key = |field: &'s Field| (field, folded(&field.name).collect());
        Self(schema.fields.iter().map(key).collect())
    }

    /// The fields whose names `tokens` may start with, longest first; among equally long ones, exact spellings first.
    pub fn at(&self, tokens: &[Token<'_>]) -> Vec<Spelled<'s>> {
        let mut spelled: Vec<Spelled<'s>> = self
            .0
            .iter()
            .filter_map(|(field, key)| {
                let exact = ends_with_a_token(tokens, &field.name).map(|tokens| (tokens, true));
                let (tokens, exact) = exact
                    .or_else(|| in_quotes(tokens, &field.name, key))
                    .or_else(|| in_other_letters(tokens, key).map(|tokens| (tokens, false)))?;
                Some(Spelled { field, tokens, exact })
            })
            .collect();
        spelled.sort_by_key(|name| Reverse((name.tokens, name.exact)));
        spelled
    }
}

/// Length of `text` in tokens, if the tokens start with it and it ends at a token boundary.
fn ends_with_a_token(tokens: &[Token<'_>], text: &str) -> Option<usize> {
    let first = tokens.first().filter(|first| first.onward.starts_with(text))?;
    let end = first.start + text.len();
    let last = tokens.binary_search_by_key(&end, |token| token.end).ok()?;
    Some(last + 1)
}

fn in_quotes(tokens: &[Token<'_>], name: &str, key: &str) -> Option<(usize, bool)> {
    match tokens.first()?.kind {
        Kind::Quoted(inside) if inside == name => Some((1, true)),
        Kind::Quoted(inside) => folded(inside).eq(key.chars()).then_some((1, false)),
        _ => None,
    }
}

/// Number of tokens that spell `key`.
fn in_other_letters(tokens: &[Token<'_>], key: &str) -> Option<usize> {
    // Separators before the name do not belong to it.
    folded(tokens.first()?.text()).next()?;
    let mut missing = key.chars();
    for (place, token) in tokens.iter().enumerate() {
        for c in folded(token.text()) {
            if missing.next() != Some(c) {
                return None;
            }
        }
        if missing.as_str().is_empty() {
            return Some(place + 1);
        }
    }
    None
}

/// Normalizes a name: case and separators do not distinguish names.
fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
}
