//! What the ledger's files do not hold yet: entries younger than the last checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::ObjectId;

/// Which kind of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Verdicts and triggers of rules.
    History,
    /// Finished deliveries of webhooks and rules.
    Deliveries,
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// Which kind.
    pub stream: Stream,
    /// The rule or webhook it belongs to.
    pub owner: ObjectId,
    /// UTC nanoseconds.
    pub at_ns: i64,
    /// Identifies it within its owner.
    pub id: ObjectId,
}

/// Entries younger than the last checkpoint.
#[derive(Default)]
pub struct LedgerTail {
    entries: BTreeMap<EntryKey, (Arc<[u8]>, bool)>,
}

impl LedgerTail {
    /// Adds an entry, or a new version of it; `again` when it was put before.
    pub fn put(&mut self, key: EntryKey, payload: Arc<[u8]>, again: bool) {
        self.entries.insert(key, (payload, again));
    }
}
