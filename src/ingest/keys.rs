//! The series of keys that were read before. Agents send the same series again and again, mostly in the same order: then
//! the key that stands in a body is compared with the one that is expected, and nothing in it is read again.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use protocols::{KeyKind, SeriesKey};

use crate::series::Digest;

/// Memory of a generation from which on it is full. The next key then begins another one, and the one before is forgotten.
const BYTES_MAX: usize = 8 << 20;
/// Longest key, and longest source and metadata together, that are kept: a line may be one key of megabytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSeries<'a> {
    pub source: &'a str,
    pub metadata: &'a str,
}

/// A series of a bucket's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Indexed {
    pub(super) digest: Digest,
    pub(super) ordinal: u32,
}

/// Where a series was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Version of the index.
    pub(super) version: u64,
    /// Ordinal of the source, all of whose labels are dimensions.
    pub(super) source: u32,
}

/// The series of keys that a thread has read. Reused from request to request.
#[derive(Debug, Default)]
pub struct KnownKeys {
    current: Generation,
    before: Generation,
    /// Index in the current generation of the key that was read last.
    last: Option<usize>,
}

#[derive(Debug, Default)]
struct Generation {
    /// In the order in which they were read first.
    entries: Vec<Entry>,
    /// The keys of the entries, one behind the other.
    keys: Vec<u8>,
    /// Their sources and metadata.
    texts: String,
    /// Indexes of entries by their keys.
    by_key: HashTable<u32>,
    hasher: RandomState,
    /// Index of the one that is expected.
    next: usize,
}

/// Where the parts of an entry stand.
#[derive(Debug)]
struct Entry {
    kind: KeyKind,
    key: Range<u32>,
    source: Range<u32>,
    /// From the end of the source on.
    metadata_end: u32,
    /// What it was when it was looked up last.
    indexed: Option<(Place, Indexed)>,
}

/// Memory of an entry besides its texts: itself and its place in the index, twice after the lists have grown.
const ENTRY_BYTES: usize = 2 * (size_of::<Entry>() + size_of::<u32>() + 1);

impl KnownKeys {
    /// The series of a key, if it is known.
    pub fn get(&mut self, key: SeriesKey<'_>) -> Option<KnownSeries<'_>> {
        self.last = None;
        if key.bytes.len() > TEXT_BYTES_MAX {
            return None;
        }
        self.last = self.current.find(key);
        if let Some(index) = self.last {
            return Some(self.current.series(index));
        }
        let index = self.before.find(key)?;
        let series = self.before.series(index);
        // A full generation is not replaced for what is known anyway.
        if !self.current.is_full() {
            self.last = Some(self.current.keep(key, series));
        }
        Some(series)
    }

    /// Keeps what a key means that was not known, unless it is too long.
    pub fn keep(&mut self, key: SeriesKey<'_>, series: KnownSeries<'_>) {
        self.last = None;
        let text_bytes = series.source.len() + series.metadata.len();
        if key.bytes.len().max(text_bytes) > TEXT_BYTES_MAX {
            return;
        }
        if self.current.is_full() {
            self.before = std::mem::take(&mut self.current);
        }
        self.last = Some(self.current.keep(key, series));
    }

    /// The series that follow do not belong to the key that was read last.
    pub fn forget_last(&mut self) {
        self.last = None;
    }

    /// The series of the key that was read last, if it was found in this place.
    pub(super) fn indexed(&self, place: Place) -> Option<Indexed> {
        let (found_in, indexed) = self.current.entries.get(self.last?)?.indexed?;
        (found_in == place).then_some(indexed)
    }

    /// Notes what the series of the key that was read last is in this place.
    pub(super) fn note_indexed(&mut self, place: Place, indexed: Indexed) {
        if let Some(entry) = self.last.and_then(|last| self.current.entries.get_mut(last)) {
            entry.indexed = Some((place, indexed));
        }
    }
}

impl Generation {
    fn is_full(&self) -> bool {
        self.bytes() >= BYTES_MAX
    }

    /// Approximate memory, in bytes.
    fn bytes(&self) -> usize {
        self.keys.capacity() + self.texts.capacity() + self.entries.len() * ENTRY_BYTES
    }

    /// Index of the entry of a key.
    fn find(&mut self, key: SeriesKey<'_>) -> Option<usize> {
        let index = match self.is_of(self.next, key) {
            true => self.next,
            false => {
                let hash = self.hasher.hash_one(key.bytes);
                let is_of = |index: &u32| self.is_of(*index as usize, key);
                *self.by_key.find(hash, is_of)? as usize
            }
        };
        self.next = index + 1;
        Some(index)
    }

    /// Whether the entry at an index is that of a key.
    #[inline]
    fn is_of(&self, index: usize, key: SeriesKey<'_>) -> bool {
        self.entries
            .get(index)
            .is_some_and(|entry| entry.kind == key.kind && *self.key(entry) == *key.bytes)
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        &self.keys[entry.key.start as usize..entry.key.end as usize]
    }

    fn series(&self, index: usize) -> KnownSeries<'_> {
        let Entry {
            source, metadata_end, ..
        } = &self.entries[index];
        KnownSeries {
            source: &self.texts[source.start as usize..source.end as usize],
            metadata: &self.texts[source.end as usize..*metadata_end as usize],
        }
    }

    /// Adds an entry; returns its index.
    fn keep(&mut self, key: SeriesKey<'_>, KnownSeries { source, metadata }: KnownSeries<'_>) -> usize {
        // `BYTES_MAX` and `TEXT_BYTES_MAX` keep them far below 4 GiB.
        let (key_start, source_start) = (self.keys.len() as u32, self.texts.len() as u32);
        self.keys.extend_from_slice(key.bytes);
        self.texts.push_str(source);
        let source_end = self.texts.len() as u32;
        self.texts.push_str(metadata);
        let index = self.entries.len() as u32;
        self.entries.push(Entry {
            kind: key.kind,
            key: key_start..self.keys.len() as u32,
            source: source_start..source_end,
            metadata_end: self.texts.len() as u32,
            indexed: None,
        });
        let hash = self.hasher.hash_one(key.bytes);
        let Self {
            entries,
            keys,
            by_key,
            hasher,
            ..
        } = self;
        by_key.insert_unique(hash, index, |index| {
            let Range { start, end } = entries[*index as usize].key;
            hasher.hash_one(&keys[start as usize..end as usize])
        });
        self.next = index as usize + 1;
        index as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn get(known: &mut KnownKeys, key: &str) -> Option<(String, String)> {
        let found = known.get(SeriesKey::new(KeyKind::Line, key.as_bytes()))?;
        Some((found.source.to_owned(), found.metadata.to_owned()))
    }

    fn keep(known: &mut KnownKeys, key: &str, source: &str, metadata: &str) {
        known.keep(
            SeriesKey::new(KeyKind::Line, key.as_bytes()),
            KnownSeries { source, metadata },
        );
    }

    #[test]
    fn keys_mean_what_they_meant_in_any_order() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut known = KnownKeys::default();
        let mut expected = HashMap::new();
        let in_order = (0..100).chain(0..100).chain(20..60).chain(0..100);
        let in_any: Vec<u32> = (0..1_000).map(|_| random.u32(0..120)).collect();
        for number in in_order.chain(in_any) {
            let key = format!("m{},host={number}", number % 3);
            assert_eq!(get(&mut known, &key), expected.get(&key).cloned(), "{key}");
            expected.entry(key).or_insert_with_key(|key| {
                let series = (format!("m{}", number % 3), format!("{{\"host\":\"{number}\"}}"));
                keep(&mut known, key, &series.0, &series.1);
                series
            });
        }
    }

    #[test]
    fn the_same_bytes_are_another_key_in_another_protocol() {
        let mut known = KnownKeys::default();
        keep(&mut known, "m", "m", "");
        for (other, source) in [
            (SeriesKey::new(KeyKind::Labels, b"m"), "n"),
            (SeriesKey::new(KeyKind::DataPoint, b"m"), "o"),
        ] {
            assert_eq!(known.get(other), None);
            let series = KnownSeries {
                source,
                metadata: "{}",
            };
            known.keep(other, series);
            assert_eq!(known.get(other), Some(series));
        }
        assert_eq!(get(&mut known, "m"), Some(("m".to_owned(), String::new())));
    }

    #[test]
    fn a_series_is_what_it_was_where_it_was_found() {
        let mut known = KnownKeys::default();
        let place = |version, source| Place { version, source };
        let indexed = |ordinal| Indexed {
            digest: [ordinal as u8; 16],
            ordinal,
        };
        for (key, ordinal) in [("a", 1), ("b", 2)] {
            keep(&mut known, key, "m", "{}");
            assert_eq!(known.indexed(place(1, 1)), None);
            known.note_indexed(place(1, 1), indexed(ordinal));
        }
        for (key, ordinal) in [("a", 1), ("b", 2), ("a", 1)] {
            get(&mut known, key);
            assert_eq!(known.indexed(place(1, 1)), Some(indexed(ordinal)));
            assert_eq!(
                known.indexed(place(2, 1)),
                None,
                "another index, or one that has changed"
            );
            assert_eq!(known.indexed(place(1, 2)), None, "another source of this name");
        }
        known.forget_last();
        assert_eq!(known.indexed(place(1, 1)), None);
        known.note_indexed(place(1, 1), indexed(9));
        assert_eq!(get(&mut known, "c"), None);
        assert_eq!(known.indexed(place(1, 1)), None);
        get(&mut known, "a");
        assert_eq!(known.indexed(place(1, 1)), Some(indexed(1)));
    }

    #[test]
    fn memory_is_bounded_whatever_is_sent() {
        let mut known = KnownKeys::default();
        for bytes in [0, 100, 4_000, 16_000, 10_000_000] {
            for number in 0..40_000_000 / (bytes + 100) {
                let key = format!("m,host={number}{}", "x".repeat(bytes));
                keep(&mut known, &key, "m", &key);
                assert_eq!(get(&mut known, &key).is_some(), bytes <= 4_000);
                // Texts have room for twice as many after they have grown.
                assert!(known.current.bytes() + known.before.bytes() <= 4 * BYTES_MAX);
            }
        }
    }

    #[test]
    fn what_is_used_stays_when_other_keys_are_read() {
        let mut known = KnownKeys::default();
        keep(&mut known, "used", "used", "{}");
        for number in 0..200_000 {
            keep(&mut known, &format!("m,host={number:0100}"), "m", "{}");
            assert!(get(&mut known, "used").is_some(), "{number}");
        }
    }
}
