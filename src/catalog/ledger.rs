//! The part of the ledger that no run file holds yet: entries younger than the last checkpoint, in memory. Pure; the
//! files are the room `ledger`'s.
//!
//! A checkpoint freezes the tail: what was put up to then moves, unchanged, into a part of its own, which the
//! checkpoint writes to files and then lets go as a whole. What is put meanwhile goes to the other part.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use crate::clock::DAY_NS;
use crate::ids::ObjectId;
use crate::limits::{DELIVERIES_DAYS, HISTORY_DAYS};

/// Which kind of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Verdicts and triggers of rules.
    History,
    /// Finished deliveries of webhooks and rules.
    Deliveries,
    /// Moments at which rules fired, each also a part of their history: here they are counted without looking at the
    /// verdicts between them. Entries say nothing else.
    Triggers,
    /// What was answered to idempotency keys. Not in the tail: the buckets keep what is recent.
    Answers,
    /// What exists, object by object; an empty entry says that an object is gone. Not in the tail: this is the catalog's
    /// own state.
    Catalog,
    /// What events said to several webhooks, once for all their deliveries, by organization. Put when the last of these
    /// deliveries has ended: before, the catalog has it.
    Events,
}

/// How long an answer to an idempotency key is kept, in days.
const ANSWERS_DAYS: i64 = 1;

impl Stream {
    /// All streams.
    pub const ALL: [Self; 6] = [
        Self::History,
        Self::Deliveries,
        Self::Triggers,
        Self::Answers,
        Self::Catalog,
        Self::Events,
    ];
    /// Those whose recent entries are in the [tail](LedgerTail).
    pub const OF_TAIL: [Self; 4] = [Self::History, Self::Deliveries, Self::Triggers, Self::Events];

    /// Entries of before this moment are gone.
    pub const fn cutoff_ns(self, now_ns: i64) -> i64 {
        let days = match self {
            Self::History | Self::Triggers => HISTORY_DAYS,
            Self::Deliveries | Self::Events => DELIVERIES_DAYS,
            Self::Answers => ANSWERS_DAYS,
            Self::Catalog => return i64::MIN,
        };
        now_ns.saturating_sub(days * DAY_NS)
    }
}

/// The owner of a bucket's entries: its ordinal in the last four bytes, big-endian, and zeros before. No resource has
/// such an id, for it would say to have been made in 1970.
pub const fn bucket_owner(ordinal: u32) -> ObjectId {
    let [a, b, c, d] = ordinal.to_be_bytes();
    ObjectId::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d])
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// Which kind.
    pub stream: Stream,
    /// The rule or webhook it belongs to; of events the organization.
    pub owner: ObjectId,
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// Identifies it within its owner.
    pub id: ObjectId,
}

impl EntryKey {
    /// Before all keys of an owner.
    const fn first(stream: Stream, owner: ObjectId) -> Self {
        Self {
            stream,
            owner,
            at_ns: i64::MIN,
            id: ObjectId::from_bytes([0; 12]),
        }
    }

    /// Behind all keys of an owner.
    const fn last(stream: Stream, owner: ObjectId) -> Self {
        Self {
            stream,
            owner,
            at_ns: i64::MAX,
            id: ObjectId::from_bytes([u8::MAX; 12]),
        }
    }
}

/// The newest version of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailEntry {
    /// What it says, as the ledger keeps it.
    pub payload: Arc<[u8]>,
    /// Whether an older version of it stands in what is older: the two count as one.
    pub again: bool,
}

/// Memory that an entry takes besides its payload, about: its place in the map, the payload's counters.
const ENTRY_BYTES: u64 = 128;

/// Entries in order, and the memory they take.
#[derive(Clone, Default)]
struct Entries {
    by_key: BTreeMap<EntryKey, TailEntry>,
    bytes: u64,
}

impl Entries {
    /// The newest version wins; whether it counts is for the oldest to say.
    fn put(&mut self, key: EntryKey, entry: TailEntry) {
        self.bytes += entry.payload.len() as u64;
        match self.by_key.entry(key) {
            btree_map::Entry::Vacant(vacant) => {
                self.bytes += ENTRY_BYTES;
                vacant.insert(entry);
            }
            btree_map::Entry::Occupied(mut occupied) => {
                let held = occupied.get_mut();
                self.bytes -= held.payload.len() as u64;
                held.payload = entry.payload;
            }
        }
    }
}

/// Entries younger than the last checkpoint.
#[derive(Default)]
pub struct LedgerTail {
    /// Put before the last freeze, and not known to be in a file.
    frozen: Arc<Entries>,
    /// Put since.
    recent: Entries,
}

/// The tail as it was when it was frozen.
#[derive(Clone, Default)]
pub struct FrozenTail(Arc<Entries>);

impl LedgerTail {
    /// Adds an entry, or a new version of it; `again` when it was put before, however long ago.
    pub fn put(&mut self, key: EntryKey, payload: Arc<[u8]>, again: bool) {
        let again = again || self.frozen.by_key.contains_key(&key);
        self.recent.put(key, TailEntry { payload, again });
    }

    /// The entries of an owner, oldest first.
    pub fn of(&self, stream: Stream, owner: ObjectId) -> Vec<(EntryKey, TailEntry)> {
        let range = EntryKey::first(stream, owner)..=EntryKey::last(stream, owner);
        let mut entries = Entries::default();
        for part in [&*self.frozen, &self.recent] {
            for (key, entry) in part.by_key.range(range.clone()) {
                entries.put(*key, entry.clone());
            }
        }
        entries.by_key.into_iter().collect()
    }

    /// Memory it takes, about.
    pub fn bytes(&self) -> u64 {
        self.frozen.bytes + self.recent.bytes
    }

    /// Sets apart what has been put so far. Where the last one that was frozen was not forgotten, as its checkpoint
    /// failed, the two become one.
    pub fn freeze(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        if self.frozen.by_key.is_empty() {
            self.frozen = Arc::new(recent);
        } else {
            let frozen = Arc::make_mut(&mut self.frozen);
            for (key, entry) in recent.by_key {
                frozen.put(key, entry);
            }
        }
    }

    /// What is set apart.
    pub fn frozen(&self) -> FrozenTail {
        FrozenTail(Arc::clone(&self.frozen))
    }

    /// Lets go of exactly these entries, as files hold them now. In constant time, but for freeing them where nobody
    /// else holds them.
    pub fn forget(&mut self, frozen: &FrozenTail) {
        if Arc::ptr_eq(&self.frozen, &frozen.0) {
            self.frozen = Arc::default();
        }
    }
}

impl FrozenTail {
    /// The entries of a stream, by owner, oldest first.
    pub fn of(&self, stream: Stream) -> impl Iterator<Item = (&EntryKey, &TailEntry)> {
        let first = EntryKey::first(stream, ObjectId::from_bytes([0; 12]));
        let last = EntryKey::last(stream, ObjectId::from_bytes([u8::MAX; 12]));
        self.0.by_key.range(first..=last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn said(tail: &LedgerTail, owner: u8) -> Vec<(i64, String, bool)> {
        tail.of(Stream::Deliveries, id(owner))
            .into_iter()
            .map(|(key, entry)| {
                let text = String::from_utf8(entry.payload.to_vec()).unwrap();
                (key.at_ns, text, entry.again)
            })
            .collect()
    }

    fn expected(entries: &[(i64, &str, bool)]) -> Vec<(i64, String, bool)> {
        entries
            .iter()
            .map(|(at, text, again)| (*at, (*text).to_owned(), *again))
            .collect()
    }

    #[test]
    fn an_owner_s_entries_come_oldest_first_and_no_others() {
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
            said(&tail, 2),
            expected(&[(3, "x", false), (5, "x", false), (9, "x", false)])
        );
        assert_eq!(said(&tail, 7), []);
    }

    #[test]
    fn the_newest_version_wins_and_the_first_one_says_whether_it_counts() {
        let mut tail = LedgerTail::default();
        tail.put(key(1, 1), b"first"[..].into(), false);
        tail.put(key(1, 1), b"second"[..].into(), true);
        tail.put(key(1, 2), b"in a file before"[..].into(), true);
        assert_eq!(
            said(&tail, 1),
            expected(&[(1, "second", false), (2, "in a file before", true)])
        );
    }

    #[test]
    fn what_was_frozen_is_forgotten_and_nothing_that_came_later() {
        let mut tail = LedgerTail::default();
        tail.put(key(1, 1), b"one"[..].into(), false);
        tail.put(key(1, 2), b"two, at length"[..].into(), false);
        tail.freeze();
        let frozen = tail.frozen();
        tail.put(key(1, 2), b"two again"[..].into(), true);
        tail.put(key(1, 3), b"three"[..].into(), false);
        let both = [(1, "one", false), (2, "two again", false), (3, "three", false)];
        assert_eq!(said(&tail, 1), expected(&both));
        let written: Vec<_> = frozen.of(Stream::Deliveries).map(|(key, _)| key.at_ns).collect();
        assert_eq!(written, [1, 2]);
        tail.forget(&frozen);
        // The file counts the first version from now on.
        assert_eq!(
            said(&tail, 1),
            expected(&[(2, "two again", true), (3, "three", false)])
        );
        tail.forget(&frozen);
        assert_eq!(said(&tail, 1).len(), 2, "forgetting twice forgets once");
    }

    #[test]
    fn a_checkpoint_that_failed_leaves_everything_to_the_next() {
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
            .map(|(key, entry)| (key.at_ns, &*entry.payload, entry.again))
            .collect();
        assert_eq!(written, [(1, &b"one again"[..], false), (2, b"two", false)]);
        tail.forget(&frozen);
        assert_eq!(said(&tail, 1), []);
    }

    #[test]
    fn the_bytes_are_those_of_the_newest_versions() {
        let mut tail = LedgerTail::default();
        assert_eq!(tail.bytes(), 0);
        tail.put(key(1, 1), [0; 100][..].into(), false);
        tail.put(key(1, 1), [0; 30][..].into(), true);
        assert_eq!(tail.bytes(), ENTRY_BYTES + 30);
        tail.freeze();
        tail.put(key(1, 1), [0; 10][..].into(), true);
        assert_eq!(tail.bytes(), 2 * ENTRY_BYTES + 40);
        tail.freeze();
        assert_eq!(tail.bytes(), ENTRY_BYTES + 10);
        tail.forget(&tail.frozen());
        assert_eq!(tail.bytes(), 0);
    }
}
