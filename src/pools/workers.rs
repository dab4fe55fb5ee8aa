//! Threads that run jobs which block or compute for long.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Accepts jobs. Cheap to clone; the threads end after the last job when the last clone is dropped.
#[derive(Clone)]
pub struct Workers(Sender<Job>);

type Job = Box<dyn FnOnce() + Send>;

impl Workers {
    /// Starts the threads, at least one, each of which calls `prepare` first.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(name: &'static str, threads: usize, prepare: fn()) -> io::Result<Self> {
        let (sender, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads.max(1) {
            let jobs = Arc::clone(&jobs);
            std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                prepare();
                work(name, &jobs);
            })?;
        }
        Ok(Workers(sender))
    }

    /// Queues a job behind the others.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        // The threads end only when there is no sender.
        let _ = self.0.send(Box::new(job));
    }

    /// Runs `work` and returns its result, or `None` if it panicked.
    pub async fn call<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (done, result) = oneshot::channel();
        // The caller may be gone.
        self.run(move || drop(done.send(work())));
        result.await.ok()
    }
}

fn work(name: &str, jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The other threads wait for the lock while this one waits for a job.
        let next = jobs.lock().recv();
        let Ok(job) = next else { return };
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!(thread = name, "BUG: a job panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix::test]
    async fn a_job_that_panics_ends_no_thread() {
        let workers = Workers::start("test", 1, || ()).unwrap();
        let panicked: Option<()> = workers.call(|| panic!("as the test wants")).await;
        assert_eq!(panicked, None);
        assert_eq!(workers.call(|| 5).await, Some(5));
    }
}
