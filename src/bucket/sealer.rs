//! Compresses full heads into blocks on threads, so that no ingest waits for it. Their queue is bounded by the memory
//! limit of unsaved rows; the rows stay readable meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::{Seal, Sealed};

use crate::pools::Workers;

/// Accepts rows to seal. Cheap to clone; the threads end with the last clone.
#[derive(Clone)]
pub struct Sealer(Workers);

impl Sealer {
    /// Starts the threads, each of which calls `prepare` first.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(threads: usize, prepare: fn()) -> std::io::Result<Self> {
        Workers::start("seal", threads, prepare).map(Sealer)
    }

    /// Seals on one of the threads, and calls `done` there with the blocks, or with `None` if sealing failed: the rows
    /// then stay as they are, readable, and the next checkpoint writes them.
    pub fn seal(&self, seal: Seal, done: impl FnOnce(Option<Sealed>) + Send + 'static) {
        self.0.run(move || {
            let sealed = catch_unwind(AssertUnwindSafe(|| seal.run())).ok();
            if sealed.is_none() {
                tracing::error!("BUG: sealing panicked");
            }
            done(sealed);
        });
    }
}
