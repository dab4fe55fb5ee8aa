//! A bucket's state as its actor, its intake and readers share it. Only the actor changes the points; the intake numbers
//! new ones. A reader locks the state for as long as it takes to clone a view, which spares it a message to the actor's
//! thread and the wait for its answer.

use std::sync::{Arc, Mutex, MutexGuard};

use engine::View;

use super::state::BucketState;

/// The state of one bucket. Cheap to clone.
#[derive(Clone)]
pub(super) struct SharedState(Arc<Mutex<BucketState>>);

impl SharedState {
    pub(super) fn new(state: BucketState) -> Self {
        SharedState(Arc::new(Mutex::new(state)))
    }

    /// Exclusive access for the actor and the intake.
    pub(super) fn lock(&self) -> MutexGuard<'_, BucketState> {
        let Ok(locked) = self.0.lock() else {
            unreachable!("BUG: the actor and its intake end when one of them panics, and readers only clone")
        };
        locked
    }

    /// A view of the current points; `None` if that would wait for the actor, or if it panicked.
    pub(super) fn try_view(&self) -> Option<View> {
        let state = self.0.try_lock().ok()?;
        Some(state.store.view())
    }

    /// A view of the current points; `None` if the actor panicked while it changed them.
    pub(super) fn view(&self) -> Option<View> {
        let state = self.0.lock().ok()?;
        Some(state.store.view())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use engine::Cache;

    use super::*;
    use crate::ledger::Ledger;

    #[test]
    fn a_state_whose_change_panicked_has_no_views() {
        let state = BucketState::new(1, Cache::new(1 << 20), Ledger::default()).unwrap();
        let actor = SharedState::new(state);
        let reader = actor.clone();
        assert!(reader.view().is_some() && reader.try_view().is_some());
        let changing = actor.lock();
        assert!(reader.try_view().is_none(), "it does not wait");
        drop(changing);
        let changed = catch_unwind(AssertUnwindSafe(|| {
            let _half_changed = actor.lock();
            panic!("as a bug would");
        }));
        assert!(changed.is_err());
        assert!(reader.try_view().is_none());
        assert!(reader.view().is_none());
    }
}
