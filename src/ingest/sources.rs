//! Which data source an entry means. Ids repeat within a batch, so each is looked up once, and recognised by
//! its 24 characters where it comes when expected: the source of the entry before, or the one behind that when
//! sources take turns.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use crate::catalog::{Source, SourceStatus};
use crate::ids::ObjectId;

use super::json::Scanner;

/// A data source, and how old its points may be.
#[derive(Debug, Clone)]
pub struct SourceView {
    /// The source as the catalog has it now.
    pub source: Arc<Source>,
    /// The oldest timestamp accepted on this route.
    pub oldest_ns: i64,
}

/// Where the parser asks for data sources. Asked at most once for an id within a request.
pub trait SourceLookup {
    /// The source of this id, in whatever bucket it is.
    fn source(&mut self, id: ObjectId) -> Option<SourceView>;
}

impl<F: FnMut(ObjectId) -> Option<SourceView>> SourceLookup for F {
    fn source(&mut self, id: ObjectId) -> Option<SourceView> {
        self(id)
    }
}

/// The places of ids in `seen`.
pub(super) type Places = HashMap<ObjectId, usize, IdHash>;

/// Hashes ids by one wide multiplication with keys that nobody outside knows, so that no body can be made whose ids
/// collide (Lemire, Kaser, "Strongly universal string hashing is fast", 2014). A third of the time of SipHash, which
/// shows when every entry names another source.
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

    // The length of the array, which all ids have.
    fn write_usize(&mut self, _: usize) {}
}

/// An id that this request has named.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) id: ObjectId,
    text: [u8; 24],
    /// None: no such source in the body's bucket.
    pub(super) view: Option<SourceView>,
    /// Where its piece of `Scratch::orders` starts.
    pub(super) order_from: usize,
}

impl Seen {
    /// The source and its oldest timestamp, if it takes points.
    #[inline]
    pub(super) fn open(&self) -> Option<&SourceView> {
        self.view
            .as_ref()
            .filter(|view| view.source.status == SourceStatus::Active)
    }
}

/// The index in `seen` of the id that comes next in the text, if it is one of the two expected.
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

/// The index in `seen` of `id`; looked up where it is new.
pub(super) fn find(
    id: ObjectId,
    bucket_id: ObjectId,
    lookup: &mut dyn SourceLookup,
    (seen, by_id, orders): (&mut Vec<Seen>, &mut Places, &mut Vec<u16>),
) -> usize {
    *by_id.entry(id).or_insert_with(|| {
        // A source of another bucket is treated as one that does not exist.
        let view = lookup
            .source(id)
            .filter(|view| view.source.bucket_id == bucket_id);
        let order_from = orders.len();
        if let Some(view) = &view {
            orders.extend(view.source.schema.fields.iter().zip(0..).map(|(field, ordinal)| {
                // Comparing the text with such a name would run past the name's end; it comes escaped anyway.
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
