//! The thread that compresses full heads into blocks, so that no ingest waits for it. What waits here is bounded by
//! the memory of unsaved rows; rows are readable all the while.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};

use engine::{Seal, Sealed};

/// Takes rows to seal. Cheap to clone; the thread ends with the last clone.
#[derive(Clone)]
pub struct Sealer(Sender<(Seal, Done)>);

type Done = Box<dyn FnOnce(Option<Sealed>) + Send>;

impl Sealer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn start() -> std::io::Result<Self> {
        let (sender, jobs) = channel::<(Seal, Done)>();
        std::thread::Builder::new()
            .name("seal".to_owned())
            .spawn(move || {
                for (seal, done) in jobs {
                    let sealed = catch_unwind(AssertUnwindSafe(|| seal.run())).ok();
                    if sealed.is_none() {
                        tracing::error!("BUG: sealing panicked");
                    }
                    done(sealed);
                }
            })?;
        Ok(Sealer(sender))
    }

    /// Seals on the thread, and there gives the blocks to `done`; `None` when that failed: the rows stay as they are,
    /// readable, and are written by the next checkpoint.
    pub fn seal(&self, seal: Seal, done: impl FnOnce(Option<Sealed>) + Send + 'static) {
        // Without its thread the rows stay as they are.
        let _ = self.0.send((seal, Box::new(done)));
    }
}
