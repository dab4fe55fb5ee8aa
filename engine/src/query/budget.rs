//! The memory a query may hold, counted before it is taken and given back when its holder is dropped. What a query
//! would need beyond its budget ends it with [`EngineError::OverBudget`]; it is never tried.

use std::cell::Cell;

use crate::EngineError;

/// Bytes of one query: how many it may hold, and how many it holds. It belongs to the thread that runs the query.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    held: Cell<usize>,
    most: Cell<usize>,
}

/// A part of a budget that somebody holds; dropped, it is given back.
#[derive(Debug)]
pub struct Held<'b> {
    budget: &'b Budget,
    bytes: usize,
}

impl Budget {
    /// A budget of so many bytes, none of them held.
    pub fn new(bytes_max: usize) -> Self {
        Budget {
            bytes_max,
            held: Cell::new(0),
            most: Cell::new(0),
        }
    }

    /// For questions whose answers are known to be small.
    pub fn unlimited() -> Self {
        Budget::new(usize::MAX)
    }

    /// Bytes that may be held.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes held now.
    pub fn held(&self) -> usize {
        self.held.get()
    }

    /// The most bytes that were ever held at once.
    pub fn most(&self) -> usize {
        self.most.get()
    }

    /// A holder of nothing yet.
    pub fn hold(&self) -> Held<'_> {
        Held {
            budget: self,
            bytes: 0,
        }
    }
}

impl<'b> Held<'b> {
    /// Takes so many bytes more.
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

    /// Makes room for so many more entries of a vector that this holds, at least for half as many as it has.
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

    /// Whether so many bytes more could be taken.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.budget.bytes_max - self.budget.held.get()
    }

    /// Gives so many bytes back, at most all.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.held.set(self.budget.held.get() - bytes);
    }

    /// Holds so many bytes from now on.
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
    fn what_is_held_comes_back_and_what_is_refused_changes_nothing() {
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
