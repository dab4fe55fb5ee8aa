//! Striped locks: changes of one organization, or of one email address, are decided one at a time.

use std::hash::{BuildHasher, Hash, RandomState};

use tokio::sync::{Mutex, MutexGuard};

/// Enough that two busy organizations rarely share one; each stripe costs a few dozen bytes.
const STRIPES: usize = 64;

/// Held over an await of the journal: hence an async mutex. Never take two.
pub(super) struct Locks {
    stripes: [Mutex<()>; STRIPES],
    hasher: RandomState,
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            stripes: std::array::from_fn(|_| Mutex::new(())),
            hasher: RandomState::new(),
        }
    }
}

impl Locks {
    /// Waits for the stripe of this subject.
    pub async fn lock(&self, subject: impl Hash) -> MutexGuard<'_, ()> {
        self.stripes[self.hasher.hash_one(subject) as usize % STRIPES]
            .lock()
            .await
    }
}
