//! Finds the data source of an entry. Ids repeat within a batch, so each is looked up once. An expected id is
//! recognized by comparing its 24 characters: the source of the previous entry, or the next one if sources alternate.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use crate::catalog::{Source, SourceStatus};
use crate::ids::ObjectId;

use super::json::Scanner;

/// A data source and the minimum timestamp of its points.
#[derive(Debug, Clone)]
pub struct SourceView {
    /// The source as currently in the catalog.
    pub source: Arc<Source>,
    /// The oldest timestamp that the route accepts.
    pub oldest_ns: i64,
}

/// Provides data sources to the parser. Called at most once per id in a pass over the body.
pub trait SourceLookup {
    /// The source with this id, in any bucket.
    fn source(&mut self, id: ObjectId) -> Option<SourceView>;
}

impl<F: FnMut(ObjectId) -> Option<SourceView>> SourceLookup for F {
    fn source(&mut self, id: ObjectId) -> Option<SourceView> {
        self(id)
    }
}

/// Maps ids to indexes in `seen`.
pub(super) type Places = HashMap<ObjectId, usize, IdHash>;

/// Hashes ids by one wide multiplication with secret random keys, so that a body cannot be crafted to cause collisions
/// (Lemire, Kaser, "Strongly universal string hashing is fast", 2014). Takes a third of the time of SipHash, which is
/// noticeable if every entry names another source.
#[derive(Debug, Clone)]
pub(super) struct IdHash([u64; 2]);

impl Default for IdHash {
    fn default() -> Self {
        let random = RandomState::new();
        IdHash([random.hash_one(0u8), random.hash_one(1u8)])
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher {
            keys: self.0,
            hash: 0,
        }
    }
}

pub(super) struct IdHasher {
    keys: [u64; 2],
    hash: u64,
}

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.hash
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(16) {
            let mut halves = [0; 16];
            halves[..part.len()].copy_from_slice(part);
            let [low, high] = [0, 8].map(|at| {
                let mut half = [0; 8];
                half.copy_from_slice(&halves[at..at + 8]);
                u64::from_le_bytes(half)
            });
            let product = u128::from(low ^ self.keys[0] ^ self.hash) * u128::from(high ^ self.keys[1]);
            self.hash = product as u64 ^ (product >> 64) as u64;
        }
    }

    // The length of the array, which is the same for all ids.
    fn write_usize(&mut self, _: usize) {}
}

/// An id that occurred in this request.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) id: ObjectId,
    text: [u8; 24],
    /// `None`: no such source in the body's bucket.
    pub(super) view: Option<SourceView>,
    /// Start of its part of `Scratch::orders`.
    pub(super) order_from: usize,
}

impl Seen {
    /// The source and its oldest timestamp, if it is active.
    #[inline]
    pub(super) fn open(&self) -> Option<&SourceView> {
        self.view
            .as_ref()
            .filter(|view| view.source.status == SourceStatus::Active)
    }
}

/// The index in `seen` of the next id in the text, if it is one of the two expected ones.
#[inline(always)]
pub(super) fn expected(scan: &mut Scanner<'_>, seen: &[Seen], last: usize) -> Option<usize> {
    let quoted = scan.ahead::<26>()?;
    let matches = |index: usize| seen.get(index).is_some_and(|seen| seen.text == quoted[1..25]);
    let next = if last + 1 < seen.len() { last + 1 } else { 0 };
    let index = [last, next].into_iter().find(|index| matches(*index))?;
    if quoted[0] != b'"' || quoted[25] != b'"' {
        return None;
    }
    scan.seek(scan.at() + 26);
    Some(index)
}

/// The index of `id` in `seen`. Looks it up if it is new.
pub(super) fn find(
    id: ObjectId,
    bucket_id: ObjectId,
    lookup: &mut dyn SourceLookup,
    (seen, by_id, orders): (&mut Vec<Seen>, &mut Places, &mut Vec<u16>),
) -> usize {
    *by_id.entry(id).or_insert_with(|| {
        // A source of another bucket is treated as missing.
        let view = lookup
            .source(id)
            .filter(|view| view.source.bucket_id == bucket_id);
        let order_from = orders.len();
        if let Some(view) = &view {
            orders.extend(view.source.schema.fields.iter().zip(0..).map(|(field, ordinal)| {
                // A comparison with such a name could run past its end in the text. In JSON the name is escaped anyway.
                if field.name.bytes().any(|byte| matches!(byte, b'"' | b'\\')) {
                    u16::MAX
                } else {
                    ordinal
                }
            }));
        }
        seen.push(Seen {
            id,
            text: id.to_hex(),
            view,
            order_from,
        });
        seen.len() - 1
    })
}
