//! The names of metrics and labels: those of sources, fields and dimensions, as far as PromQL has their characters.

use crate::catalog::{Field, FieldType, Source};

/// The field whose metric has the name of its source.
const VALUE: &str = "value";

/// Whether a field has the samples of remote write, which its ends of series are about.
pub(super) fn has_ends(field: &Field) -> bool {
    *field.name == *VALUE
}

/// The name of a field's metric; `None` for texts, which are not metrics.
pub(super) fn metric_name(source: &Source, field: &Field) -> Option<String> {
    match field.kind {
        FieldType::String => None,
        FieldType::Number | FieldType::Boolean if *field.name == *VALUE => Some(written(&source.name, true)),
        FieldType::Number | FieldType::Boolean => {
            Some(written(&format!("{}_{}", source.name, field.name), true))
        }
    }
}

/// The name of a dimension's label.
pub(super) fn label_name(dimension: &str) -> String {
    written(dimension, false)
}

/// A text with `_` in place of each character that names do not have, and before a leading digit.
fn written(text: &str, with_colons: bool) -> String {
    let mut name = String::with_capacity(text.len() + 1);
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        name.push('_');
    }
    let is_of_names = |character: char| {
        character.is_ascii_alphanumeric() || character == '_' || (with_colons && character == ':')
    };
    name.extend(
        text.chars()
            .map(|character| if is_of_names(character) { character } else { '_' }),
    );
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_promql_has_not_are_underscores() {
        for (text, name) in [
            ("up", "up"),
            ("a.b", "a_b"),
            ("node:cpu", "node:cpu"),
            ("7 °C", "_7__C"),
            ("é", "_"),
            ("", ""),
        ] {
            assert_eq!(written(text, true), name, "{text}");
        }
        assert_eq!(label_name("a:b"), "a_b");
        assert_eq!(label_name("0x"), "_0x");
    }
}
