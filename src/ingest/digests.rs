//! The digests of metadata that was read before. Agents send the same series again and again, and comparing their text
//! takes less time than reading the labels in it.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use crate::catalog::Dimensions;
use crate::ids::ObjectId;
use crate::series::Digest;

/// Memory of a generation. When the current one has used it up, the one before is forgotten.
const BYTES_MAX: usize = 4 << 20;
/// Memory of an entry besides its text: twice 40 bytes after the list has grown, its place in the index, and that of the
/// text's allocation.
const ENTRY_BYTES: usize = 112;
/// Memory of a source besides its entries and the names of its dimensions.
const SOURCE_BYTES: usize = 256;

/// Digests by metadata, of the sources whose points a thread has read. Reused from request to request.
#[derive(Debug, Default)]
pub(super) struct KnownDigests {
    current: Generation,
    before: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    sources: HashMap<ObjectId, OfSource, RandomState>,
    bytes: usize,
}

#[derive(Debug)]
struct OfSource {
    /// The digests are of labels with these names.
    dimensions: Dimensions,
    /// In the order in which they were read first.
    digests: IndexMap<Box<str>, Digest, RandomState>,
    /// Index of the one that is expected: agents send their series in the same order each time, and a comparison takes
    /// less time than a look-up.
    next: usize,
}

impl OfSource {
    fn get(&mut self, metadata: &str) -> Option<Digest> {
        let expected = self.digests.get_index(self.next);
        let index = match expected.filter(|(text, _)| ***text == *metadata) {
            Some(_) => self.next,
            None => self.digests.get_index_of(metadata)?,
        };
        self.next = index + 1;
        Some(self.digests[index])
    }
}

impl KnownDigests {
    pub(super) fn get(
        &mut self,
        source: ObjectId,
        dimensions: &Dimensions,
        metadata: &str,
    ) -> Option<Digest> {
        if let Some(digest) = self.current.get(source, dimensions, metadata) {
            return Some(digest);
        }
        let digest = self.before.get(source, dimensions, metadata)?;
        self.keep(source, dimensions, metadata, digest);
        Some(digest)
    }

    pub(super) fn keep(&mut self, source: ObjectId, dimensions: &Dimensions, metadata: &str, digest: Digest) {
        if self.current.bytes >= BYTES_MAX {
            self.before = std::mem::take(&mut self.current);
        }
        self.current.keep(source, dimensions, metadata, digest);
    }
}

impl Generation {
    fn get(&mut self, source: ObjectId, dimensions: &Dimensions, metadata: &str) -> Option<Digest> {
        let known = self.sources.get_mut(&source)?;
        match known.dimensions == *dimensions {
            true => known.get(metadata),
            false => None,
        }
    }

    fn keep(&mut self, source: ObjectId, dimensions: &Dimensions, metadata: &str, digest: Digest) {
        let mut bytes = metadata.len() + ENTRY_BYTES;
        let known = self.sources.entry(source).or_insert_with(|| {
            bytes += bytes_of(dimensions);
            OfSource {
                dimensions: dimensions.clone(),
                digests: IndexMap::default(),
                next: 0,
            }
        });
        if known.dimensions != *dimensions {
            bytes += bytes_of(dimensions);
            known.dimensions = dimensions.clone();
            known.digests.clear();
            known.next = 0;
        }
        known.digests.insert(metadata.into(), digest);
        self.bytes += bytes;
    }
}

fn bytes_of(dimensions: &Dimensions) -> usize {
    let names = match dimensions {
        Dimensions::All => 0,
        Dimensions::Named(names) => names.iter().map(|name| size_of::<Box<str>>() + name.len()).sum(),
    };
    SOURCE_BYTES + names
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: ObjectId = ObjectId::from_bytes([1; 12]);

    #[test]
    fn digests_are_those_of_the_source_and_of_its_dimensions() {
        let mut known = KnownDigests::default();
        let (all, named) = (Dimensions::All, Dimensions::Named(vec!["host".into()]));
        known.keep(SOURCE, &all, "{}", [1; 16]);
        assert_eq!(known.get(SOURCE, &all, "{}"), Some([1; 16]));
        assert_eq!(
            known.get(SOURCE, &named, "{}"),
            None,
            "the source has other dimensions now"
        );
        assert_eq!(known.get(ObjectId::from_bytes([2; 12]), &all, "{}"), None);
        known.keep(SOURCE, &named, "{}", [2; 16]);
        assert_eq!(known.get(SOURCE, &named, "{}"), Some([2; 16]));
        assert_eq!(known.get(SOURCE, &all, "{}"), None);
    }

    #[test]
    fn digests_are_found_in_any_order() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut known = KnownDigests::default();
        let text = |number: u8| format!("{{\"host\":{number}}}");
        let in_order = (0..100).chain(0..100).chain(20..60).chain(0..100);
        let in_any: Vec<u8> = (0..1_000).map(|_| random.u8(0..120)).collect();
        let mut kept = [false; 120];
        for number in in_order.chain(in_any) {
            let found = known.get(SOURCE, &Dimensions::All, &text(number));
            let was_kept = std::mem::replace(&mut kept[usize::from(number)], true);
            assert_eq!(found, was_kept.then_some([number; 16]), "{number}");
            known.keep(SOURCE, &Dimensions::All, &text(number), [number; 16]);
        }
    }

    /// The memory of all texts and sources, counted one by one.
    fn held(known: &KnownDigests) -> usize {
        let generations = [&known.current, &known.before];
        let sources = generations.iter().flat_map(|it| it.sources.values());
        sources
            .map(|source| {
                let texts = source.digests.keys().map(|text| text.len() + ENTRY_BYTES);
                bytes_of(&source.dimensions) + texts.sum::<usize>()
            })
            .sum()
    }

    #[test]
    fn memory_is_bounded_whatever_is_sent() {
        let mut known = KnownDigests::default();
        for number in 0..60_000_u32 {
            let metadata = format!("{{\"host\":\"{number:0100}\"}}");
            known.keep(SOURCE, &Dimensions::All, &metadata, [0; 16]);
            assert!(known.get(SOURCE, &Dimensions::All, &metadata).is_some());
        }
        assert!(held(&known) <= 2 * (BYTES_MAX + 1_024), "series of one source");
        let names = Dimensions::Named((0..32).map(|name| format!("{name:0128}").into()).collect());
        for number in 0..5_000_u32 {
            let mut id = [0; 12];
            id[..4].copy_from_slice(&number.to_be_bytes());
            known.keep(ObjectId::from_bytes(id), &names, "{}", [0; 16]);
        }
        assert!(
            held(&known) <= 2 * (BYTES_MAX + 16_384),
            "sources with a series each"
        );
    }

    #[test]
    fn what_is_used_stays_when_other_metadata_is_read() {
        let mut known = KnownDigests::default();
        known.keep(SOURCE, &Dimensions::All, "{}", [1; 16]);
        for number in 0..60_000_u32 {
            known.keep(SOURCE, &Dimensions::All, &format!("{number:0100}"), [0; 16]);
            assert_eq!(known.get(SOURCE, &Dimensions::All, "{}"), Some([1; 16]));
        }
    }
}
