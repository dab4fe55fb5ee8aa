//! Named members in order of creation: an organization's buckets, a bucket's sources.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;

use super::pages::Pages;

/// An object with a name that is unique among its siblings.
pub(super) trait Named {
    /// The name, compared exactly.
    fn name(&self) -> &str;
}

/// Members by ordinal and by name. The name index holds only ordinals: a hash map keyed by the name would store every
/// name twice.
pub(super) struct Collection<T> {
    /// Changed only by [`Collection::insert`] and [`Collection::remove`].
    pub members: Pages<T>,
    names: HashTable<u32>,
    hasher: RandomState,
}

impl<T> Default for Collection<T> {
    fn default() -> Self {
        Self {
            members: Pages::default(),
            names: HashTable::new(),
            hasher: RandomState::new(),
        }
    }
}

impl<T: Named> Collection<T> {
    pub fn by_name(&self, name: &str) -> Option<&Arc<T>> {
        let is_it = |ordinal: &u32| {
            self.members
                .get(*ordinal)
                .is_some_and(|member| member.name() == name)
        };
        let ordinal = self.names.find(self.hasher.hash_one(name), is_it)?;
        self.members.get(*ordinal)
    }

    /// Inserts a member or replaces it by a new version.
    pub fn insert(&mut self, ordinal: u32, member: Arc<T>) {
        self.remove(ordinal);
        let hash = self.hasher.hash_one(member.name());
        self.members.insert(ordinal, member);
        let (members, hasher) = (&self.members, &self.hasher);
        self.names.insert_unique(hash, ordinal, |other| {
            members
                .get(*other)
                .map_or(0, |member| hasher.hash_one(member.name()))
        });
    }

    pub fn remove(&mut self, ordinal: u32) -> Option<Arc<T>> {
        let member = self.members.remove(ordinal)?;
        let hash = self.hasher.hash_one(member.name());
        if let Ok(entry) = self.names.find_entry(hash, |other| *other == ordinal) {
            entry.remove();
        }
        Some(member)
    }
}
