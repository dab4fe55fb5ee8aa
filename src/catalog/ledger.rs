//! The tail of the ledger: entries since the last checkpoint, in memory. Pure; the files belong to the room `ledger`.
//!
//! A checkpoint freezes the tail: the entries so far move, unchanged, to a frozen part, which the checkpoint writes to
//! files and then drops as a whole. Entries added meanwhile go to the recent part.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::packed::{PACK_BYTES, TailPayload, pack};
use crate::clock::DAY_NS;
use crate::ids::ObjectId;
use crate::limits::{AUDIT_DAYS, DELIVERIES_DAYS, HISTORY_DAYS};

/// The kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Verdicts and triggers of rules.
    History,
    /// Finished deliveries of webhooks and rules.
    Deliveries,
    /// Times at which rules fired. Each is also in the rule's history; in this stream they can be counted without
    /// reading the verdicts in between. The entries are empty.
    Triggers,
    /// Answers to idempotency keys. Not in the tail: buckets keep the recent ones.
    Answers,
    /// Objects of the catalog; an empty entry is a tombstone. Not in the tail: they are the catalog's own state.
    Catalog,
    /// Bodies of events that went to several webhooks, once for all their deliveries, by organization. Added when the
    /// last of these deliveries has finished; before that, the catalog has the body.
    Events,
    /// Who changed what, by organization.
    Audit,
    /// The series of sources that are split by dimensions; an empty entry is a tombstone. Not in the tail: buckets keep
    /// the recent ones.
    Series,
}

/// How long the answer to an idempotency key is kept, in days.
const ANSWERS_DAYS: i64 = 1;

impl Stream {
    pub const ALL: [Self; 8] = [
        Self::History,
        Self::Deliveries,
        Self::Triggers,
        Self::Answers,
        Self::Catalog,
        Self::Events,
        Self::Audit,
        Self::Series,
    ];
    /// Streams whose recent entries are in the [tail](LedgerTail).
    pub const OF_TAIL: [Self; 5] = [
        Self::History,
        Self::Deliveries,
        Self::Triggers,
        Self::Events,
        Self::Audit,
    ];

    /// Whether payloads in the tail are compressed together: they are long, resemble each other, and never change.
    const fn is_packed(self) -> bool {
        matches!(self, Self::Audit)
    }

    /// Entries before this time have expired.
    pub const fn cutoff_ns(self, now_ns: i64) -> i64 {
        let days = match self {
            Self::History | Self::Triggers => HISTORY_DAYS,
            Self::Deliveries | Self::Events => DELIVERIES_DAYS,
            Self::Audit => AUDIT_DAYS,
            Self::Answers => ANSWERS_DAYS,
            Self::Catalog | Self::Series => return i64::MIN,
        };
        now_ns.saturating_sub(days * DAY_NS)
    }
}

/// The owner of a bucket's entries: zeros, followed by its ordinal in the last four bytes, big-endian. No resource has
/// such an id, because it would have been created in 1970.
pub const fn bucket_owner(ordinal: u32) -> ObjectId {
    let [a, b, c, d] = ordinal.to_be_bytes();
    ObjectId::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d])
}

/// What an entry of the stream [`Stream::Series`] contains; the first byte of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SeriesEntry {
    /// The ordinal that the next series of the bucket gets.
    Next = 1,
    /// The ordinal of a series, by the digest of its labels.
    Digest = 2,
    /// The labels of a series, by its ordinal.
    Labels = 3,
    /// All series of a source.
    All = 4,
    /// The series that have a name.
    Name = 5,
    /// The series that have a value.
    Value = 6,
    /// The series of a source that were forgotten, blocks of which may be in segments.
    Forgotten = 7,
}

/// The owner of a source's entries in the stream [`Stream::Series`]: the kind, three zeros, the ordinals of bucket and
/// source, big-endian.
pub const fn series_owner(entry: SeriesEntry, bucket: u32, source: u32) -> ObjectId {
    let [a, b, c, d] = bucket.to_be_bytes();
    let [e, f, g, h] = source.to_be_bytes();
    ObjectId::from_bytes([entry as u8, 0, 0, 0, a, b, c, d, e, f, g, h])
}

/// The ordinal of the source in an owner from [`series_owner`].
pub const fn source_of_series_owner(owner: ObjectId) -> u32 {
    let [.., a, b, c, d] = *owner.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The owner that stands for all entries of a source, and for that of its bucket, among those whose entries are kept.
pub(crate) const fn kept_series_owner(owner: ObjectId) -> ObjectId {
    let [kind, .., a, b, c, d, _, _, _, _] = *owner.as_bytes();
    if kind == SeriesEntry::Next as u8 {
        return bucket_owner(u32::from_be_bytes([a, b, c, d]));
    }
    series_owner(
        SeriesEntry::All,
        u32::from_be_bytes([a, b, c, d]),
        source_of_series_owner(owner),
    )
}

/// The key of an entry, by which entries are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    pub stream: Stream,
    /// The rule or webhook that the entry belongs to; for events and the audit the organization.
    pub owner: ObjectId,
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// Identifies the entry within its owner.
    pub id: ObjectId,
}

const ID_MIN: ObjectId = ObjectId::from_bytes([0; 12]);
const ID_MAX: ObjectId = ObjectId::from_bytes([u8::MAX; 12]);

/// The range of all keys of the owners from `first` to `last`.
fn keys_of(stream: Stream, first: ObjectId, last: ObjectId) -> RangeInclusive<EntryKey> {
    let key = |owner, at_ns, id| EntryKey {
        stream,
        owner,
        at_ns,
        id,
    };
    key(first, i64::MIN, ID_MIN)..=key(last, i64::MAX, ID_MAX)
}

/// The newest version of an entry.
#[derive(Clone, Debug)]
pub struct TailEntry {
    /// The encoded content.
    pub payload: TailPayload,
    /// Whether an older version of the entry exists. Both count as one entry.
    pub again: bool,
}

/// Entries in order.
type ByKey = BTreeMap<EntryKey, TailEntry>;

/// Inserts an entry or replaces its payload. `again` stays that of the oldest version.
fn insert(entries: &mut ByKey, key: EntryKey, entry: TailEntry) {
    match entries.entry(key) {
        btree_map::Entry::Vacant(vacant) => {
            vacant.insert(entry);
        }
        btree_map::Entry::Occupied(mut occupied) => occupied.get_mut().payload = entry.payload,
    }
}

/// Entries of an owner that will be packed together.
#[derive(Default)]
struct Unpacked {
    keys: Vec<EntryKey>,
    /// Sum of the lengths of their payloads.
    bytes: usize,
}

impl Unpacked {
    /// Packs the payloads, unless they were replaced.
    fn pack(self, entries: &mut ByKey) {
        let payload = |key: &EntryKey| match &entries.get(key)?.payload {
            TailPayload::Plain(payload) => Some((*key, Arc::clone(payload))),
            TailPayload::Packed { .. } => None,
        };
        let (keys, payloads): (Vec<_>, Vec<_>) = self.keys.iter().filter_map(payload).unzip();
        for (key, packed) in keys.iter().zip(pack(&payloads).into_iter().flatten()) {
            if let Some(entry) = entries.get_mut(key) {
                entry.payload = packed;
            }
        }
    }
}

/// Entries since the last checkpoint.
#[derive(Default)]
pub struct LedgerTail {
    /// Entries before the last freeze that are not known to be in a file.
    frozen: Arc<ByKey>,
    /// Entries since then.
    recent: ByKey,
    /// Those of them that will be packed, by owner: they are read by owner, too.
    unpacked: HashMap<ObjectId, Unpacked>,
}

/// A snapshot of the frozen part of the tail.
#[derive(Clone, Default)]
pub struct FrozenTail(Arc<ByKey>);

impl LedgerTail {
    /// Adds an entry or a new version of it. `again` means that it was added before, however long ago.
    pub fn put(&mut self, key: EntryKey, payload: Arc<[u8]>, again: bool) {
        let again = again || self.frozen.contains_key(&key);
        let bytes = payload.len();
        let payload = TailPayload::Plain(payload);
        insert(&mut self.recent, key, TailEntry { payload, again });
        if key.stream.is_packed() {
            let unpacked = self.unpacked.entry(key.owner).or_default();
            unpacked.keys.push(key);
            unpacked.bytes += bytes;
            if unpacked.bytes >= PACK_BYTES {
                std::mem::take(unpacked).pack(&mut self.recent);
            }
        }
    }

    /// The entries of an owner, oldest first.
    pub fn of(&self, stream: Stream, owner: ObjectId) -> Vec<(EntryKey, TailEntry)> {
        let range = keys_of(stream, owner, owner);
        let mut entries = ByKey::new();
        for part in [&*self.frozen, &self.recent] {
            for (key, entry) in part.range(range.clone()) {
                insert(&mut entries, *key, entry.clone());
            }
        }
        entries.into_iter().collect()
    }

    /// Freezes the entries added so far. If the previous frozen part was not dropped, because its checkpoint failed,
    /// both are combined.
    pub fn freeze(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        self.unpacked.clear();
        if self.frozen.is_empty() {
            self.frozen = Arc::new(recent);
        } else {
            let frozen = Arc::make_mut(&mut self.frozen);
            for (key, entry) in recent {
                insert(frozen, key, entry);
            }
        }
    }

    /// A snapshot of the frozen part.
    pub fn frozen(&self) -> FrozenTail {
        FrozenTail(Arc::clone(&self.frozen))
    }

    /// Drops exactly these entries, which are in files now. Takes constant time, except for freeing them if they are
    /// not shared.
    pub fn forget(&mut self, frozen: &FrozenTail) {
        if Arc::ptr_eq(&self.frozen, &frozen.0) {
            self.frozen = Arc::default();
        }
    }
}

impl FrozenTail {
    /// The entries of a stream, by owner, oldest first.
    pub fn of(&self, stream: Stream) -> impl Iterator<Item = (&EntryKey, &TailEntry)> {
        self.0.range(keys_of(stream, ID_MIN, ID_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(entry: &TailEntry) -> String {
        String::from_utf8(entry.payload.to_vec()).unwrap()
    }

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes([number; 12])
    }

    fn key(owner: u8, at_ns: i64) -> EntryKey {
        EntryKey {
            stream: Stream::Deliveries,
            owner: id(owner),
            at_ns,
            id: id(at_ns as u8),
        }
    }

    fn entries_of(tail: &LedgerTail, owner: u8) -> Vec<(i64, String, bool)> {
        tail.of(Stream::Deliveries, id(owner))
            .into_iter()
            .map(|(key, entry)| (key.at_ns, text_of(&entry), entry.again))
            .collect()
    }

    fn expected(entries: &[(i64, &str, bool)]) -> Vec<(i64, String, bool)> {
        entries
            .iter()
            .map(|(at, text, again)| (*at, (*text).to_owned(), *again))
            .collect()
    }

    #[test]
    fn entries_of_one_owner_are_listed_oldest_first() {
        let mut tail = LedgerTail::default();
        for owner in 1..4 {
            for at_ns in [5, 3, 9] {
                tail.put(key(owner, at_ns), b"x"[..].into(), false);
            }
        }
        let other = EntryKey {
            stream: Stream::History,
            ..key(2, 4)
        };
        tail.put(other, b"y"[..].into(), false);
        assert_eq!(
            entries_of(&tail, 2),
            expected(&[(3, "x", false), (5, "x", false), (9, "x", false)])
        );
        assert_eq!(entries_of(&tail, 7), []);
    }

    #[test]
    fn the_newest_version_wins_and_the_first_decides_whether_it_counts() {
        let mut tail = LedgerTail::default();
        tail.put(key(1, 1), b"first"[..].into(), false);
        tail.put(key(1, 1), b"second"[..].into(), true);
        tail.put(key(1, 2), b"in a file before"[..].into(), true);
        assert_eq!(
            entries_of(&tail, 1),
            expected(&[(1, "second", false), (2, "in a file before", true)])
        );
    }

    #[test]
    fn forgetting_removes_frozen_entries_and_keeps_later_ones() {
        let mut tail = LedgerTail::default();
        tail.put(key(1, 1), b"one"[..].into(), false);
        tail.put(key(1, 2), b"two, at length"[..].into(), false);
        tail.freeze();
        let frozen = tail.frozen();
        tail.put(key(1, 2), b"two again"[..].into(), true);
        tail.put(key(1, 3), b"three"[..].into(), false);
        let both = [(1, "one", false), (2, "two again", false), (3, "three", false)];
        assert_eq!(entries_of(&tail, 1), expected(&both));
        let written: Vec<_> = frozen.of(Stream::Deliveries).map(|(key, _)| key.at_ns).collect();
        assert_eq!(written, [1, 2]);
        tail.forget(&frozen);
        // From now on the file counts the first version.
        assert_eq!(
            entries_of(&tail, 1),
            expected(&[(2, "two again", true), (3, "three", false)])
        );
        tail.forget(&frozen);
        assert_eq!(entries_of(&tail, 1).len(), 2, "forgetting twice forgets once");
    }

    #[test]
    fn a_failed_checkpoint_leaves_all_entries_to_the_next() {
        let mut tail = LedgerTail::default();
        tail.put(key(1, 1), b"one"[..].into(), false);
        tail.freeze();
        let failed = tail.frozen();
        tail.put(key(1, 1), b"one again"[..].into(), true);
        tail.put(key(1, 2), b"two"[..].into(), false);
        tail.freeze();
        tail.forget(&failed);
        let frozen = tail.frozen();
        let written: Vec<_> = frozen
            .of(Stream::Deliveries)
            .map(|(key, entry)| (key.at_ns, text_of(entry), entry.again))
            .collect();
        assert_eq!(written, expected(&[(1, "one again", false), (2, "two", false)]));
        tail.forget(&frozen);
        assert_eq!(entries_of(&tail, 1), []);
    }

    #[test]
    fn packed_entries_are_read_as_they_were() {
        let audit = |owner, at_ns: i64| EntryKey {
            stream: Stream::Audit,
            id: ObjectId::of_point(0, at_ns as u64),
            ..key(owner, at_ns)
        };
        let text = |at_ns: i64| format!(r#"{{"name":"pump {at_ns}","type":"sensor"}}"#).repeat(20);
        let mut tail = LedgerTail::default();
        for at_ns in 0..200 {
            tail.put(
                audit(1 + at_ns as u8 % 2, at_ns),
                text(at_ns).into_bytes().into(),
                false,
            );
            if at_ns == 100 {
                // Its checkpoint fails.
                tail.freeze();
            }
        }
        tail.put(audit(1, 0), b"again"[..].into(), true);
        tail.freeze();
        let is_packed = |entry: &&TailEntry| matches!(entry.payload, TailPayload::Packed { .. });
        assert!(tail.frozen.values().filter(is_packed).count() > 100);
        for owner in [1, 2] {
            let frozen = tail.frozen();
            let held: Vec<_> = frozen
                .of(Stream::Audit)
                .filter(|(key, _)| key.owner == id(owner))
                .collect();
            assert_eq!(held.len(), 100);
            for (key, entry) in held {
                let expected = if key.at_ns == 0 {
                    "again".to_owned()
                } else {
                    text(key.at_ns)
                };
                assert_eq!(text_of(entry), expected);
                assert!(!entry.again);
            }
        }
    }
}
