//! A request to the object store that is under way, and the readers that wait for it.

use std::time::Duration;

use objects::Bytes;
use parking_lot::{Condvar, Mutex};

/// Neighbouring extents of a file that are being downloaded.
pub(super) struct Load {
    /// Offset of the first byte in the file.
    pub(super) start: u64,
    /// `None` until it has ended.
    outcome: Mutex<Option<Result<Bytes, String>>>,
    ended: Condvar,
}

impl Load {
    pub(super) fn new(start: u64) -> Self {
        Load {
            start,
            outcome: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// Hands the outcome to all that wait.
    pub(super) fn end(&self, outcome: Result<Bytes, String>) {
        *self.outcome.lock() = Some(outcome);
        self.ended.notify_all();
    }

    /// Waits for the outcome; `None` if there is none within this time.
    pub(super) fn wait(&self, within: Duration) -> Option<Result<Bytes, String>> {
        let mut outcome = self.outcome.lock();
        self.ended
            .wait_while_for(&mut outcome, |outcome| outcome.is_none(), within);
        outcome.clone()
    }
}
