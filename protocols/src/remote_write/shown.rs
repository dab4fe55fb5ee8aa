//! A time series in an answer, by its labels.

use super::series::Labels;
use crate::wire::Malformed;

/// Bytes of a series' labels in an answer.
pub const SHOWN_BYTES_MAX: usize = 1_024;

/// Collects the texts of chosen time series.
pub(super) struct Names<'e> {
    /// Ascending indexes that are still to come.
    entries: &'e [u32],
    /// The index of the next time series.
    next: u32,
    pub(super) shown: Vec<String>,
}

impl<'e> Names<'e> {
    pub(super) fn new(entries: &'e [u32]) -> Self {
        Self {
            entries,
            next: 0,
            shown: Vec::with_capacity(entries.len()),
        }
    }

    /// Looks at the next time series.
    pub(super) fn add<'a>(&mut self, labels: impl Labels<'a>) -> Result<(), Malformed> {
        if let Some((first, rest)) = self.entries.split_first()
            && *first == self.next
        {
            self.shown.push(shown(labels)?);
            self.entries = rest;
        }
        self.next += 1;
        Ok(())
    }
}

fn shown<'a>(mut labels: impl Labels<'a>) -> Result<String, Malformed> {
    let mut text = String::from("{");
    while let Some((name, value)) = labels.next()? {
        let separator = if text.len() > 1 { ", " } else { "" };
        text.push_str(separator);
        push(&mut text, name);
        text.push_str("=\"");
        push(&mut text, value);
        text.push('"');
        if text.len() > SHOWN_BYTES_MAX {
            text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
            text.push('…');
            break;
        }
    }
    text.push('}');
    Ok(text)
}

/// Appends so much of a label as can be shown at all, as Prometheus writes it.
fn push(text: &mut String, label: &[u8]) {
    let cut = String::from_utf8_lossy(&label[..label.len().min(SHOWN_BYTES_MAX + 1)]);
    for character in cut.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' => text.push_str("\\n"),
            _ if character.is_control() => text.extend(character.escape_default()),
            _ => text.push(character),
        }
    }
}
