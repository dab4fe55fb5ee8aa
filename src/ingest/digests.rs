//! The digests of metadata that was read before. Agents send the same series again and again, and comparing their text
//! takes less time than reading the labels in it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::catalog::Dimensions;
use crate::ids::ObjectId;
use crate::series::Digest;

/// Memory of all entries. When it is used up, they are forgotten.
const BYTES_MAX: usize = 4 << 20;
/// Memory of an entry besides its text.
const ENTRY_BYTES: usize = 64;

/// Digests by metadata, of the sources whose points a thread has read. Reused from request to request.
#[derive(Debug, Default)]
pub(super) struct KnownDigests {
    sources: HashMap<ObjectId, OfSource, RandomState>,
    bytes: usize,
}

#[derive(Debug)]
struct OfSource {
    /// The digests are of labels with these names.
    dimensions: Dimensions,
    digests: HashMap<Box<str>, Digest, RandomState>,
}

impl KnownDigests {
    pub(super) fn get(&self, source: ObjectId, dimensions: &Dimensions, metadata: &str) -> Option<Digest> {
        let known = self.sources.get(&source)?;
        let digest = known.digests.get(metadata)?;
        (known.dimensions == *dimensions).then_some(*digest)
    }

    pub(super) fn keep(&mut self, source: ObjectId, dimensions: &Dimensions, metadata: &str, digest: Digest) {
        let bytes = metadata.len() + ENTRY_BYTES;
        if self.bytes + bytes > BYTES_MAX {
            *self = KnownDigests::default();
        }
        self.bytes += bytes;
        let known = self.sources.entry(source).or_insert_with(|| OfSource {
            dimensions: dimensions.clone(),
            digests: HashMap::default(),
        });
        if known.dimensions != *dimensions {
            known.dimensions = dimensions.clone();
            known.digests.clear();
        }
        known.digests.insert(metadata.into(), digest);
    }
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
    fn memory_is_bounded_whatever_is_sent() {
        let mut known = KnownDigests::default();
        for number in 0..100_000_u32 {
            let metadata = format!("{{\"host\":\"{number:0100}\"}}");
            known.keep(SOURCE, &Dimensions::All, &metadata, [0; 16]);
            assert!(known.bytes <= BYTES_MAX);
            assert!(known.get(SOURCE, &Dimensions::All, &metadata).is_some());
        }
        let texts = known.sources[&SOURCE].digests.keys().map(|text| text.len());
        assert!(texts.sum::<usize>() <= BYTES_MAX);
    }
}
