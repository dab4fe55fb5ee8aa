//! The memory of a query, reserved before it is allocated and released when its holder is dropped. A query that needs
//! more than its budget ends with [`EngineError::OverBudget`] before the allocation.

use std::cell::Cell;

use crate::EngineError;

/// Memory limit of one query in bytes, and its current use. Belongs to the thread that runs the query.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    held: Cell<usize>,
    most: Cell<usize>,
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
            held: Cell::new(0),
            most: Cell::new(0),
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
        self.held.get()
    }

    /// Greatest number of bytes reserved at once.
    pub fn most(&self) -> usize {
        self.most.get()
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
        let budget = self.budget;
        let held = budget.held.get().saturating_add(bytes);
        if held > budget.bytes_max {
            return Err(EngineError::OverBudget {
                bytes_max: budget.bytes_max,
            });
        }
        budget.held.set(held);
        budget.most.set(budget.most.get().max(held));
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
        bytes <= self.budget.bytes_max - self.budget.held.get()
    }

    /// Releases bytes, at most all.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.held.set(self.budget.held.get() - bytes);
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
