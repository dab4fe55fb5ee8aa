//! Cursors: the position of the last row sent, and a fingerprint of the query it belongs to. They contain no secret and
//! grant no access: a forged cursor only starts elsewhere in data that its sender may read anyway.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::query::Position;
use sha2::{Digest, Sha256};

use super::{Condition, QueryInput};

const VERSION: u8 = 1;
/// Version, timestamp, sequence, fingerprint, checksum.
const BYTES: usize = 1 + 8 + 8 + 8 + 4;

/// The first bytes of a digest of the query.
pub type Fingerprint = [u8; 8];

/// A decoded cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Position of the last row sent.
    pub position: Position,
    /// Fingerprint of the query it was made for.
    pub fingerprint: Fingerprint,
}

impl Cursor {
    /// Encodes the text for `nextCursor`.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.position.0.to_be_bytes());
        bytes.extend_from_slice(&self.position.1.to_be_bytes());
        bytes.extend_from_slice(&self.fingerprint);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a cursor; `None` if the text is not a valid cursor.
    pub fn decode(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, checksum) = bytes.split_last_chunk()?;
        let (timestamp, rest) = content.strip_prefix(&[VERSION])?.split_first_chunk()?;
        let (sequence, fingerprint) = rest.split_first_chunk()?;
        let is_intact = crc32fast::hash(content) == u32::from_be_bytes(*checksum);
        is_intact.then_some(Cursor {
            position: (i64::from_be_bytes(*timestamp), u64::from_be_bytes(*sequence)),
            fingerprint: fingerprint.try_into().ok()?,
        })
    }
}

impl QueryInput {
    /// A digest of everything that determines the rows and their order, but not the number of rows requested.
    pub fn fingerprint(&self) -> Fingerprint {
        let sources: BTreeSet<_> = self.source_ids.iter().collect();
        let fields: BTreeSet<_> = self.fields.iter().map(|field| &field.name).collect();
        let metadata: BTreeMap<_, _> = self.metadata.iter().collect();
        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        add(self.bucket_id.as_bytes());
        add(&[u8::from(self.descending)]);
        for bound in [self.start_ns, self.end_ns] {
            add(&bound.map_or([0; 9], |ns| {
                let mut bytes = [1; 9];
                bytes[1..].copy_from_slice(&ns.to_le_bytes());
                bytes
            }));
        }
        sources.iter().for_each(|source| add(source.as_bytes()));
        add(b"fields");
        fields.iter().for_each(|field| add(field.as_bytes()));
        add(b"metadata");
        for (name, value) in metadata {
            add(name.as_bytes());
            add(value.to_string().as_bytes());
        }
        add(b"expressions");
        for named in &self.expressions {
            add(named.name.as_bytes());
            add(named.text.as_bytes());
        }
        add(b"values");
        let tests = |condition: &Condition| {
            let tests = condition.tests.iter();
            let tests = tests.map(|test| (test.name(), format!("{:?}", test.operands())));
            tests.collect::<BTreeMap<_, _>>()
        };
        let conditions = self.values.iter();
        let conditions = conditions.map(|condition| (&condition.field, tests(condition)));
        for (field, tests) in conditions.collect::<BTreeMap<_, _>>() {
            add(field.as_bytes());
            for (operator, operands) in tests {
                add(operator.as_bytes());
                add(operands.as_bytes());
            }
        }
        if !self.dimensions.is_empty() {
            add(b"dimensions");
        }
        let filters = self
            .dimensions
            .iter()
            .map(|filter| (&filter.name, &filter.matcher));
        for (name, matcher) in filters.collect::<BTreeMap<_, _>>() {
            add(name.as_bytes());
            add(matcher.to_string().as_bytes());
        }
        let whole: [u8; 32] = digest.finalize().into();
        std::array::from_fn(|index| whole[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_an_altered_one_is_refused() {
        let cursor = Cursor {
            position: (-5, 77),
            fingerprint: *b"question",
        };
        let text = cursor.encode();
        assert_eq!(Cursor::decode(&text), Some(cursor));
        for (index, _) in text.char_indices() {
            let mut changed: Vec<u8> = text.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            assert_eq!(
                Cursor::decode(std::str::from_utf8(&changed).unwrap()),
                None,
                "changed at {index}"
            );
        }
        for other in ["", "AAAA", &text[1..], &format!("{text}A"), "not base64!"] {
            assert_eq!(Cursor::decode(other), None);
        }
    }
}
