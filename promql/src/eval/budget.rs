//! The memory of an evaluation, counted as it grows.

use std::cell::Cell;

use crate::error::Error;
use crate::options::Limits;

/// What one evaluation may hold, and holds.
pub(crate) struct Budget<'a> {
    limits: Limits<'a>,
    used: Cell<usize>,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(limits: Limits<'a>) -> Budget<'a> {
        Budget {
            limits,
            used: Cell::new(0),
        }
    }

    /// An error when the caller no longer waits.
    pub(crate) fn check_time(&self) -> Result<(), Error> {
        if (self.limits.is_interrupted)() {
            Err(Error::interrupted())
        } else {
            Ok(())
        }
    }

    pub(crate) fn is_interrupted(&self) -> &'a dyn Fn() -> bool {
        self.limits.is_interrupted
    }

    /// An error when so much more does not fit; to be asked before a large allocation.
    pub(crate) fn check_room(&self, bytes: usize) -> Result<(), Error> {
        if self.used.get().saturating_add(bytes) <= self.limits.memory_bytes_max {
            return Ok(());
        }
        Err(Error::execution(format!(
            "the query needs more memory than its {} bytes: select fewer series with more matchers, shorten the time \
             range, or use a larger step",
            self.limits.memory_bytes_max
        )))
    }

    pub(crate) fn charge(&'a self) -> Charge<'a> {
        Charge {
            budget: self,
            bytes: 0,
        }
    }
}

/// Bytes that are given back when it is dropped.
pub(crate) struct Charge<'a> {
    budget: &'a Budget<'a>,
    bytes: usize,
}

impl Charge<'_> {
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Error> {
        self.budget.check_room(bytes)?;
        self.budget.used.set(self.budget.used.get() + bytes);
        self.bytes += bytes;
        Ok(())
    }

    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.used.set(self.budget.used.get() - bytes);
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.budget.used.set(self.budget.used.get() - self.bytes);
    }
}
