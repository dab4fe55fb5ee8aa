//! Escapes text for HTML.

/// Escapes text for use as content or as an attribute's value.
pub fn escaped(text: &str) -> String {
    // `&` comes first, because the others are replaced by text with `&`.
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Makes the anchor of a heading: `Who may call what` → `who-may-call-what`.
pub fn slug(text: &str) -> String {
    text.to_ascii_lowercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_texts_is_escaped() {
        assert_eq!(
            escaped("<a href=\"x\">&'"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;"
        );
        assert_eq!(slug("Data sources"), "data-sources");
    }
}
