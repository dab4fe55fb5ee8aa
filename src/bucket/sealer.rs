//! The threads that compress full heads into blocks, so that no ingest waits for it. What waits here is bounded by
//! the memory of unsaved rows; rows are readable all the while.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use engine::{Seal, Sealed};
use parking_lot::Mutex;

/// Takes rows to seal. Cheap to clone; the threads end with the last clone.
#[derive(Clone)]
pub struct Sealer(Sender<Job>);

type Job = (Seal, Done);

type Done = Box<dyn FnOnce(Option<Sealed>) + Send>;

impl Sealer {
    /// Starts the threads, each of which calls `prepare` first.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub fn start(threads: usize, prepare: fn()) -> std::io::Result<Self> {
        let (sender, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads.max(1) {
            let jobs = Arc::clone(&jobs);
            std::thread::Builder::new()
                .name("seal".to_owned())
                .spawn(move || {
                    prepare();
                    work(&jobs);
                })?;
        }
        Ok(Sealer(sender))
    }

    /// Seals on one of the threads, and there gives the blocks to `done`; `None` when that failed: the rows stay as
    /// they are, readable, and are written by the next checkpoint.
    pub fn seal(&self, seal: Seal, done: impl FnOnce(Option<Sealed>) + Send + 'static) {
        // Without the threads the rows stay as they are.
        let _ = self.0.send((seal, Box::new(done)));
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The others wait for the lock as this one waits for a job.
        let next = jobs.lock().recv();
        let Ok((seal, done)) = next else { return };
        let sealed = catch_unwind(AssertUnwindSafe(|| seal.run())).ok();
        if sealed.is_none() {
            tracing::error!("BUG: sealing panicked");
        }
        done(sealed);
    }
}
