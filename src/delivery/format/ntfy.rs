//! A message for a topic of ntfy (<https://docs.ntfy.sh/publish>): plain text, with title, priority and tags in headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Rendered;
use super::summary::{Summary, Tone};

/// Bytes of text in an encoded word, which must not be longer than 75 characters (RFC 2047, section 2): 60 of base64, and 12
/// around them.
const WORD_BYTES: usize = 45;

pub fn message(event: &Value) -> Rendered {
    let summary = Summary::of(event);
    let (priority, tag) = match summary.tone {
        Tone::Alarm => ("high", "rotating_light"),
        Tone::Warning => ("default", "warning"),
        Tone::Good => ("default", "white_check_mark"),
        Tone::Neutral => ("low", "information_source"),
    };
    Rendered {
        content_type: "text/plain; charset=utf-8",
        headers: vec![
            ("title", header_text(&summary.title)),
            ("priority", priority.to_owned()),
            ("tags", tag.to_owned()),
        ],
        body: summary.lines().into_bytes().into(),
    }
}

/// A text as the value of a header: as it is if it is printable ASCII, else as encoded words (RFC 2047).
fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    // What begins and ends like an encoded word would be taken for one.
    if is_plain && !text.contains("=?") {
        return text.to_owned();
    }
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(WORD_BYTES);
        // A word holds whole characters.
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (word, after) = rest.split_at(end);
        words.push(format!("=?UTF-8?B?{}?=", STANDARD.encode(word)));
        rest = after;
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_is_not_ascii_is_encoded_in_words() {
        assert_eq!(header_text("pump 3 has fired"), "pump 3 has fired");
        assert_eq!(header_text("Öl"), "=?UTF-8?B?w5Zs?=");
        assert_eq!(header_text("a\r\nX-Evil: 1"), "=?UTF-8?B?YQ0KWC1FdmlsOiAx?=");
        assert_eq!(header_text("=?UTF-8?Q?a?="), "=?UTF-8?B?PT9VVEYtOD9RP2E/PQ==?=");
        let long = header_text(&"ü".repeat(100));
        let words: Vec<&str> = long.split(' ').collect();
        assert_eq!(words.len(), 5, "{long}");
        let bytes = words.iter().flat_map(|word| {
            assert!(word.len() <= 75, "{word}");
            let base64 = word
                .strip_prefix("=?UTF-8?B?")
                .and_then(|it| it.strip_suffix("?="));
            let bytes = STANDARD.decode(base64.unwrap()).unwrap();
            assert!(std::str::from_utf8(&bytes).is_ok(), "whole characters");
            bytes
        });
        assert_eq!(bytes.collect::<Vec<u8>>(), "ü".repeat(100).into_bytes());
    }
}
