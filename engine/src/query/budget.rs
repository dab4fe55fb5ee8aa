//! The memory of a query, reserved before it is allocated and released when its holder is dropped. A query that needs
//! more than its budget ends with [`EngineError::OverBudget`] before the allocation.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::EngineError;

/// Memory limit of one query in bytes, and its current use, for all threads that work on it. Its numbers say nothing of
/// other memory, so no order between them and anything else is needed.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    held: AtomicUsize,
    most: AtomicUsize,
}

/// A reservation in a budget, released when dropped.
#[derive(Debug)]
pub struct Held<'b> {
    budget: &'b Budget,
    bytes: usize,
}

impl Budget {
    /// A budget of this many bytes, with nothing reserved.
    pub fn new(bytes_max: usize) -> Self {
        Budget {
            bytes_max,
            held: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }

    /// For queries whose results are known to be small.
    pub fn unlimited() -> Self {
        Budget::new(usize::MAX)
    }

    /// Limit in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes reserved now.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Greatest number of bytes reserved at once.
    pub fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    /// A reservation of zero bytes.
    pub fn hold(&self) -> Held<'_> {
        Held {
            budget: self,
            bytes: 0,
        }
    }

    /// A reservation of this many bytes.
    pub(super) fn reserve(&self, bytes: usize) -> Result<Held<'_>, EngineError> {
        let mut held = self.hold();
        held.grow(bytes)?;
        Ok(held)
    }
}

impl<'b> Held<'b> {
    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves more bytes.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`]; nothing has changed then.
    pub fn grow(&mut self, bytes: usize) -> Result<(), EngineError> {
        if bytes == 0 {
            return Ok(());
        }
        let budget = self.budget;
        let bytes_max = budget.bytes_max;
        let grown = |held: usize| held.checked_add(bytes).filter(|held| *held <= bytes_max);
        let before = budget.held.fetch_update(Relaxed, Relaxed, grown);
        let before = before.map_err(|_| EngineError::OverBudget { bytes_max })?;
        budget.most.fetch_max(before + bytes, Relaxed);
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves capacity for more entries of a vector that is counted here, growing it by at least half.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`]; nothing has changed then.
    pub fn reserve<T>(&mut self, vec: &mut Vec<T>, more: usize) -> Result<(), EngineError> {
        if vec.capacity() - vec.len() < more {
            let capacity = (vec.len() + more).max(vec.len() + vec.len() / 2);
            self.grow((capacity - vec.capacity()) * size_of::<T>())?;
            vec.reserve_exact(capacity - vec.len());
        }
        Ok(())
    }

    /// Whether this many more bytes could be reserved.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.budget.bytes_max - self.budget.held()
    }

    /// Releases bytes, at most all.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        if bytes > 0 {
            self.bytes -= bytes;
            self.budget.held.fetch_sub(bytes, Relaxed);
        }
    }

    /// Takes over another reservation of the same budget.
    pub(super) fn take_over(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Changes the reservation to this many bytes.
    ///
    /// # Errors
    /// [`EngineError::OverBudget`]; nothing has changed then.
    pub fn set(&mut self, bytes: usize) -> Result<(), EngineError> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_memory_is_released_and_a_refusal_changes_nothing() {
        let budget = Budget::new(100);
        let mut one = budget.hold();
        one.grow(60).unwrap();
        let mut other = budget.hold();
        assert_eq!(other.grow(41), Err(EngineError::OverBudget { bytes_max: 100 }));
        other.set(40).unwrap();
        assert_eq!((budget.held(), budget.most()), (100, 100));
        one.shrink(1_000);
        other.set(10).unwrap();
        assert_eq!((budget.held(), budget.most()), (10, 100));
        drop(other);
        assert_eq!(budget.held(), 0);
        assert!(budget.hold().grow(usize::MAX).is_err());
    }
}
