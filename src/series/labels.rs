//! Labels: the dimensions of a series with their values, as text.

use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::Arc;

use siphasher::sip128::{Hasher128, SipHasher24};

use super::Digest;

/// The labels of a series, sorted by name. Encoded as for each: length of the name, u16, little-endian; the name; length
/// of the value; the value. Names and values are shorter than 64 KiB because metadata is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Labels(Arc<[u8]>);

impl Labels {
    /// Reads encoded labels; `None` if they are not encoded as described, or not in order.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut before: Option<&str> = None;
        while !rest.is_empty() {
            let (name, _) = take_label(&mut rest)?;
            if before.is_some_and(|before| before >= name) {
                return None;
            }
            before = Some(name);
        }
        Some(Labels(bytes.into()))
    }

    /// The encoded form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Names and values, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || take_label(&mut rest))
    }

    /// The value of a dimension.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut labels = self.iter();
        labels.find(|label| label.0 == name).map(|label| label.1)
    }
}

fn take_label<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, &'a str)> {
    Some((take_text(rest)?, take_text(rest)?))
}

/// Takes a text behind its length.
pub(super) fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (length, after) = rest.split_first_chunk::<2>()?;
    let (text, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *rest = after;
    str::from_utf8(text).ok()
}

/// Appends a text behind its length.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The digest by which a series of a source is found: SipHash-2-4 with 128 bits and a constant key. It is stored. Who
/// constructs two sets of labels with one digest mixes up series of the own bucket only.
pub fn digest_of(source: u32, labels: &[u8]) -> Digest {
    let mut hasher = SipHasher24::new();
    hasher.write_u32(source);
    hasher.write(labels);
    hasher.finish128().as_u128().to_be_bytes()
}

/// Collects the labels of a point, in any order. Reused from point to point.
#[derive(Debug, Default)]
pub struct LabelsWriter {
    text: String,
    labels: Vec<(Range<usize>, Range<usize>)>,
}

impl LabelsWriter {
    /// Removes all labels.
    pub fn clear(&mut self) {
        self.text.clear();
        self.labels.clear();
    }

    /// Adds a label, in place of an earlier one of this name.
    pub fn push(&mut self, name: &str, value: &str) {
        let known = self
            .labels
            .iter()
            .position(|(known, _)| self.text[known.clone()] == *name);
        if let Some(index) = known {
            self.labels[index].1 = keep(&mut self.text, value);
            return;
        }
        let name = keep(&mut self.text, name);
        let value = keep(&mut self.text, value);
        self.labels.push((name, value));
    }

    /// Removes the label of this name: a later member of the same name has no value.
    pub fn remove(&mut self, name: &str) {
        self.labels.retain(|(known, _)| self.text[known.clone()] != *name);
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Appends the encoded labels, see [`Labels`].
    pub fn encode(&mut self, out: &mut Vec<u8>) {
        let LabelsWriter { text, labels } = self;
        labels.sort_unstable_by(|one, other| text[one.0.clone()].cmp(&text[other.0.clone()]));
        for (name, value) in labels {
            put_text(out, &text[name.clone()]);
            put_text(out, &text[value.clone()]);
        }
    }
}

fn keep(text: &mut String, new: &str) -> Range<usize> {
    let start = text.len();
    text.push_str(new);
    start..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_by_name_and_the_last_value_of_a_name_counts() {
        let mut writer = LabelsWriter::default();
        writer.push("line", "5");
        writer.push("host", "a");
        writer.push("line", "7");
        writer.push("gone", "x");
        writer.remove("gone");
        let mut encoded = Vec::new();
        writer.encode(&mut encoded);
        let labels = Labels::decode(&encoded).unwrap();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("host", "a"), ("line", "7")]);
        assert_eq!((labels.get("host"), labels.get("gone")), (Some("a"), None));
    }

    #[test]
    fn what_is_no_encoding_of_labels_is_refused() {
        let mut encoded = Vec::new();
        put_text(&mut encoded, "b");
        put_text(&mut encoded, "1");
        for cut in 1..encoded.len() {
            assert_eq!(Labels::decode(&encoded[..cut]), None, "{cut}");
        }
        put_text(&mut encoded, "a");
        put_text(&mut encoded, "2");
        assert_eq!(Labels::decode(&encoded), None, "not in order");
        assert_eq!(Labels::decode(&[1, 0, 0xff, 0, 0]), None, "not UTF-8");
    }

    #[test]
    fn digests_differ_by_source_and_by_labels() {
        let digests = [digest_of(1, b""), digest_of(2, b""), digest_of(1, b"x")];
        assert!(digests[0] != digests[1] && digests[0] != digests[2]);
    }
}
