//! An interner: keeps one shared copy of equal values.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Smallest length at which the set is swept.
const SWEEP_LEN_MIN: usize = 64;

/// Returns the same `Arc` for equal values, and drops values that are no longer used.
pub(super) struct Interner<T: ?Sized> {
    values: HashSet<Arc<T>>,
    sweep_at: usize,
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self {
            values: HashSet::new(),
            sweep_at: SWEEP_LEN_MIN,
        }
    }
}

impl<T: ?Sized + Hash + Eq> Interner<T> {
    /// The shared copy of `value`, if there is one.
    pub fn get(&self, value: &T) -> Option<&Arc<T>> {
        self.values.get(value)
    }

    /// Returns the shared copy of `value`, adding it if necessary.
    pub fn intern(&mut self, value: impl Into<Arc<T>>) -> Arc<T> {
        let value = value.into();
        if let Some(known) = self.get(&value) {
            return Arc::clone(known);
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(|known| Arc::strong_count(known) > 1);
            // Sweep again at twice the number of live values: amortized, a sweep costs constant time per insertion.
            self.sweep_at = (2 * self.values.len()).max(SWEEP_LEN_MIN);
        }
        self.values.insert(Arc::clone(&value));
        value
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.values.len()
    }
}
