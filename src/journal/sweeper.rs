//! Deletes the rows of a log store that are covered by a checkpoint, on a thread and a connection of its own: deleting a
//! long tail takes seconds, in which the journal's thread goes on appending.
//!
//! Nothing waits for it, and nothing relies on it: what it does not delete is not read, and deleted after the next trim or by
//! the shard's next owner.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use log_store::{LogStore, Shard};
use parking_lot::{Condvar, Mutex};

/// The thread. It ends soon after this is dropped, with the call to the store that is under way.
pub(super) struct Sweeper {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Shards to sweep, each once.
    asked: BTreeSet<Shard>,
    is_stopping: bool,
}

impl Sweeper {
    /// Starts the thread over this way to the store.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn start(mut store: Box<dyn LogStore>) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let for_thread = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("log sweeper".to_owned())
            .spawn(move || {
                while let Some(shard) = for_thread.next() {
                    for_thread.sweep(&mut *store, shard);
                }
            })?;
        Ok(Sweeper { queue })
    }

    /// Has the covered rows of a shard deleted.
    pub(super) fn ask(&self, shard: Shard) {
        self.queue.state.lock().asked.insert(shard);
        self.queue.changed.notify_one();
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.queue.state.lock().is_stopping = true;
        self.queue.changed.notify_one();
    }
}

impl Queue {
    /// Waits for a shard to sweep; `None` at the end.
    fn next(&self) -> Option<Shard> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            if let Some(shard) = state.asked.pop_first() {
                return Some(shard);
            }
            self.changed.wait(&mut state);
        }
    }

    fn sweep(&self, store: &mut dyn LogStore, shard: Shard) {
        while !self.state.lock().is_stopping {
            match store.sweep(shard) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%shard, %error, "covered rows stay in the log store until the next trim");
                    return;
                }
            }
        }
    }
}
