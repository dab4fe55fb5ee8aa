//! An interner: keeps one shared copy of equal values.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;

/// Smallest length at which the table is swept.
const SWEEP_LEN_MIN: usize = 64;

/// Returns the same `Arc` for equal values, and drops values that are no longer used.
pub(super) struct Interner<T: ?Sized> {
    table: HashTable<Arc<T>>,
    hasher: RandomState,
    sweep_at: usize,
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self {
            table: HashTable::new(),
            hasher: RandomState::new(),
            sweep_at: SWEEP_LEN_MIN,
        }
    }
}

impl<T: ?Sized + Hash + Eq> Interner<T> {
    /// The shared copy of `value`, if there is one.
    pub fn get(&self, value: &T) -> Option<&Arc<T>> {
        let hash = self.hasher.hash_one(value);
        self.table.find(hash, |known| **known == *value)
    }

    /// Returns the shared copy of `value`, adding it if necessary.
    pub fn intern(&mut self, value: impl Into<Arc<T>>) -> Arc<T> {
        let value = value.into();
        let hash = self.hasher.hash_one(&*value);
        if let Some(known) = self.table.find(hash, |known| **known == *value) {
            return Arc::clone(known);
        }
        if self.table.len() >= self.sweep_at {
            self.table.retain(|known| Arc::strong_count(known) > 1);
            // Sweep again at twice the number of live values: amortized, a sweep costs constant time per insertion.
            self.sweep_at = (2 * self.table.len()).max(SWEEP_LEN_MIN);
        }
        let hasher = &self.hasher;
        self.table
            .insert_unique(hash, Arc::clone(&value), |known| hasher.hash_one(&**known));
        value
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.table.len()
    }
}
