//! Merges of segments, on a thread of their own. A merge of large segments takes long; were it made between two
//! checkpoints, the log and the rows in memory would grow meanwhile until ingests are refused. The checkpointer begins
//! a merge and puts its segment in force; in between, checkpoints go on.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use engine::{Merge, MergeError};
use wal::disk::Bytes;

use crate::bucket::{BucketHandle, NewSegment};

/// A merge that has begun: what is to be written, and where.
pub(super) struct MergeJob {
    pub(super) ordinal: u32,
    pub(super) handle: BucketHandle,
    pub(super) merge: Merge,
    /// Rows before it are left out.
    pub(super) cutoff_ns: i64,
    pub(super) segment: NewSegment,
}

/// A merge whose segment was written, or could not be; then nothing is left of it.
pub(super) struct Merged {
    pub(super) job: MergeJob,
    pub(super) written: Result<Arc<dyn Bytes>, MergeError>,
}

/// The thread: one merge at a time.
pub(super) struct Merger {
    jobs: Sender<MergeJob>,
    stop: Arc<AtomicBool>,
    busy: bool,
}

impl MergeJob {
    /// Writes the segment, unless told to stop before its end.
    pub(super) fn run(self, stop: &AtomicBool) -> Merged {
        let written = self.segment.write(|out| {
            let out = UntilStopped { out, stop };
            self.merge.write(out, self.cutoff_ns)
        });
        Merged { job: self, written }
    }
}

impl Merger {
    /// Starts the thread, which gives what it has done to `done`.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub(super) fn start(done: impl Fn(Merged) + Send + 'static) -> io::Result<Self> {
        let (jobs, begun) = channel::<MergeJob>();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::Builder::new()
            .name("merge".to_owned())
            .spawn(move || {
                crate::priority::lower();
                begun.iter().for_each(|job| done(job.run(&stopped)));
            })?;
        Ok(Merger {
            jobs,
            stop,
            busy: false,
        })
    }

    /// Whether a merge is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Begins the next merge, if there is one and none is under way.
    pub(super) fn go_on(&mut self, next: impl FnOnce() -> Option<MergeJob>) {
        if self.busy || self.stop.load(Ordering::Relaxed) {
            return;
        }
        if let Some(job) = next() {
            // Without the thread the segments stay as they are.
            self.busy = self.jobs.send(job).is_ok();
        }
    }

    /// Takes back a merge that is done; `None` when it was stopped.
    pub(super) fn take(&mut self, merged: Merged) -> Option<Merged> {
        self.busy = false;
        let stopped = merged.written.is_err() && self.stop.load(Ordering::Relaxed);
        (!stopped).then_some(merged)
    }

    /// Has the merge under way given up, and begins no other: a server that stops does not wait for it.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Fails once it is told to stop.
struct UntilStopped<'a, W> {
    out: W,
    stop: &'a AtomicBool,
}

impl<W: Write> Write for UntilStopped<'_, W> {
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
