//! Limits in bytes: for ingests queued for a bucket, and for the memory of all buckets together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in use, with a limit.
#[derive(Debug)]
pub(super) struct Budget {
    used: AtomicU64,
    max: u64,
}

impl Budget {
    pub(super) fn new(max: u64) -> Arc<Self> {
        Arc::new(Budget {
            used: AtomicU64::new(0),
            max,
        })
    }

    /// Reserves bytes until the hold is dropped; `None` if they do not fit. A reservation that exceeds the whole limit
    /// fits into an empty budget, because it must be possible at all.
    pub(super) fn hold(self: &Arc<Self>, bytes: u64) -> Option<Hold> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let hold = Hold {
            budget: Arc::clone(self),
            bytes,
        };
        (before == 0 || before + bytes <= self.max).then_some(hold)
    }

    /// Replaces an amount that is accounted for without a [`Hold`].
    pub(super) fn change(&self, from: u64, to: u64) {
        if to > from {
            self.used.fetch_add(to - from, Ordering::Relaxed);
        } else if to < from {
            self.used.fetch_sub(from - to, Ordering::Relaxed);
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.used() > self.max
    }
}

/// A reservation, released when dropped.
#[derive(Debug)]
pub(super) struct Hold {
    budget: Arc<Budget>,
    bytes: u64,
}

/// The reservations of an ingest in progress: queue and memory.
pub(super) type Holds = (Hold, Hold);

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_beyond_the_budget_is_refused_and_a_drop_frees_it() {
        let budget = Budget::new(100);
        let first = budget.hold(60).unwrap();
        assert!(budget.hold(50).is_none());
        assert_eq!(budget.used(), 60, "the refused one takes nothing");
        drop(first);
        assert!(
            budget.hold(1_000).is_some(),
            "one that is larger than the bound, alone"
        );
        assert_eq!(budget.used(), 0);
    }
}
