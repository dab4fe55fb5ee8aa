//! Work that writes blocks anew, on threads of its own: merges of segments and deletions of points. It takes long. If it
//! ran on the checkpointer's thread, the log and the rows in memory would grow meanwhile until ingests are refused. The
//! checkpointer starts the work and later installs its segment; checkpoints continue in between.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::deleting::{DeletionJob, DeletionWritten};
use super::merging::{MergeJob, Merged};
use crate::pools::Workers;

/// Work that has begun.
pub(super) enum Rewrite {
    Merge(MergeJob),
    Deletion(DeletionJob),
}

/// Work that has ended, and is to be installed.
pub(super) enum Rewritten {
    Merge(Merged),
    Deletion(DeletionWritten),
}

impl Rewrite {
    fn run(self, stop: &AtomicBool) -> Rewritten {
        match self {
            Rewrite::Merge(job) => Rewritten::Merge(job.run(stop)),
            Rewrite::Deletion(job) => Rewritten::Deletion(job.run(stop)),
        }
    }
}

/// A shard's merges and deletions, one at a time, on threads that shards share. No two change the same blocks.
pub(super) struct Rewriter {
    workers: Workers,
    done: Arc<dyn Fn(Rewritten) + Send + Sync>,
    stop: Arc<AtomicBool>,
    busy: bool,
}

impl Rewriter {
    /// Works on these threads, and passes what is finished to `done`.
    pub(super) fn new(workers: Workers, done: impl Fn(Rewritten) + Send + Sync + 'static) -> Self {
        Rewriter {
            workers,
            done: Arc::new(done),
            stop: Arc::default(),
            busy: false,
        }
    }

    /// Whether work is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether other work may start.
    pub(super) fn is_free(&self) -> bool {
        !self.busy && !self.stop.load(Ordering::Relaxed)
    }

    /// Starts work; none may be in progress.
    pub(super) fn start(&mut self, work: Rewrite) {
        self.busy = true;
        let (done, stop) = (Arc::clone(&self.done), Arc::clone(&self.stop));
        self.workers.run(move || done(work.run(&stop)));
    }

    /// Accepts finished work; returns `None` if it was stopped.
    pub(super) fn take(&mut self, done: Rewritten) -> Option<Rewritten> {
        self.busy = false;
        let failed = match &done {
            Rewritten::Merge(merged) => merged.written.is_err(),
            Rewritten::Deletion(deletion) => deletion.written.is_err(),
        };
        let stopped = failed && self.stop.load(Ordering::Relaxed);
        (!stopped).then_some(done)
    }

    /// Aborts the work in progress and starts no other: a stopping server does not wait for it.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A writer that fails once `stop` is set.
pub(super) struct UntilStopped<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) stop: &'a AtomicBool,
}

impl Write for UntilStopped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the server stops"));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
