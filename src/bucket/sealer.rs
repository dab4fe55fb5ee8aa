//! Threads that compress full heads into blocks, so that no ingest waits for it. Their queue is bounded by the memory
//! limit of unsaved rows; the rows stay readable meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use engine::{Seal, Sealed};
use parking_lot::Mutex;

/// Accepts rows to seal. Cheap to clone; the threads end with the last clone.
#[derive(Clone)]
pub struct Sealer(Sender<Job>);

type Job = (Seal, Done);

type Done = Box<dyn FnOnce(Option<Sealed>) + Send>;

impl Sealer {
    /// Starts the threads, each of which calls `prepare` first.
    ///
    /// # Errors
    /// A thread could not be started.
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

    /// Seals on one of the threads, and calls `done` there with the blocks, or with `None` if sealing failed: the rows
    /// then stay as they are, readable, and the next checkpoint writes them.
    pub fn seal(&self, seal: Seal, done: impl FnOnce(Option<Sealed>) + Send + 'static) {
        // If the threads have ended, the rows stay as they are.
        let _ = self.0.send((seal, Box::new(done)));
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The other threads wait for the lock while this one waits for a job.
        let next = jobs.lock().recv();
        let Ok((seal, done)) = next else { return };
        let sealed = catch_unwind(AssertUnwindSafe(|| seal.run())).ok();
        if sealed.is_none() {
            tracing::error!("BUG: sealing panicked");
        }
        done(sealed);
    }
}
