//! The checkpointer's thread. It takes a checkpoint when the log is long, memory is full, a bucket was deleted, or the
//! server stops.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use disk::StdDisk;
use engine::MergeError;
use parking_lot::Mutex;

use super::merging::{Merged, Merger};
use super::open::{Recovered, RecoveryTimes};
use super::publish::PublishFigures;
use super::schedule::Schedule;
use super::task::Task;
use crate::checked_file::CheckedFileError;
use crate::journal::JournalError;
use crate::ledger::LedgerError;

/// Why a checkpoint failed. No data is lost: the log keeps the records that it would have covered.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A disk error.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Writing or reading the manifest failed.
    #[error(transparent)]
    File(#[from] CheckedFileError),
    /// A segment that was just written does not read.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// Merging segments failed.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A run file of the ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The log failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The actor of the bucket with this ordinal has panicked. A restart replays its rows.
    #[error("bucket {0} failed; its points are in the log, and are there again after a restart")]
    ActorGone(u32),
    /// The checkpoint is not stored elsewhere, where it must be.
    #[error("the checkpoint could not be published: {0}")]
    Publish(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The data directory was removed or replaced. The directory now at its path is not ours to write to.
    #[error("the data directory is not there any more")]
    DirectoryGone,
    /// The checkpointer's thread has ended.
    #[error("the checkpointer has ended")]
    Ended,
}

impl CheckpointError {
    /// Adds the path to a disk error.
    pub(super) fn at(self, path: &Path) -> Self {
        match self {
            CheckpointError::Io(error) | CheckpointError::Merge(MergeError::Io(error)) => {
                let message = format!("{}: {error}", path.display());
                CheckpointError::Io(std::io::Error::new(error.kind(), message))
            }
            other => other,
        }
    }
}

/// Messages to the thread.
enum Order {
    /// Check whether a checkpoint was requested.
    Wake,
    /// A bucket was deleted.
    Remove(u32),
    /// A merge of segments has finished.
    Merged(Box<Merged>),
    /// Take a last checkpoint and close the log; replies whether both succeeded.
    Close(tokio::sync::oneshot::Sender<Result<(), CheckpointError>>),
}

/// Counters since the start of the server.
#[derive(Clone, Debug, Default)]
pub struct CheckpointStats {
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Checkpoints that failed.
    pub failures: u64,
    /// Segment merges.
    pub merges: u64,
    /// Time spent in checkpoints.
    pub nanoseconds: u64,
    /// Segment files in use now.
    pub segments: u64,
    /// Syncs of files and directories by the whole process.
    pub disk_syncs: u64,
    /// File pages that the disk failed to read.
    pub unreadable_pages: u64,
    /// How long each part of the recovery took.
    pub recovery: RecoveryTimes,
    /// What was published; `None` if checkpoints are kept nowhere else.
    pub published: Option<Arc<PublishFigures>>,
}

/// What the thread and the handles of it share.
#[derive(Default)]
struct Shared {
    stats: Mutex<CheckpointStats>,
    /// Whether a checkpoint is requested and not yet done; further requests are then redundant.
    ordered: AtomicBool,
}

/// Requests checkpoints from any thread. Cheap to clone.
#[derive(Clone)]
pub struct Checkpointer {
    orders: Sender<Order>,
    shared: Arc<Shared>,
}

/// The receiving end of the channel, until the thread takes it. Separate from the thread because the journal and the
/// buckets need a [`Checkpointer`] before a task exists.
pub(crate) struct Orders {
    orders: Receiver<Order>,
    checkpointer: Checkpointer,
}

impl Checkpointer {
    /// Creates a checkpointer that has no thread yet.
    pub(crate) fn new(recovered: &Recovered) -> (Self, Orders) {
        let (sender, orders) = channel();
        let checkpointer = Checkpointer {
            orders: sender,
            shared: Arc::default(),
        };
        checkpointer.shared.stats.lock().recovery = recovered.times;
        let orders = Orders {
            orders,
            checkpointer: checkpointer.clone(),
        };
        (checkpointer, orders)
    }

    /// Requests a checkpoint soon. Requests made while one is pending or running are merged into it; a caller that
    /// needs more than it covered requests another afterwards.
    pub fn order(&self) {
        if !self.shared.ordered.swap(true, Ordering::AcqRel) {
            // The channel is closed only when the server stops, which takes a last checkpoint anyway.
            let _ = self.orders.send(Order::Wake);
        }
    }

    /// Requests the removal of a deleted bucket's files.
    pub fn remove(&self, ordinal: u32) {
        // If this message is lost, the next checkpoint removes them.
        let _ = self.orders.send(Order::Remove(ordinal));
    }

    /// Takes a last checkpoint and closes the log.
    ///
    /// # Errors
    /// The checkpoint or closing the log failed. Nothing acknowledged is lost.
    pub async fn close(&self) -> Result<(), CheckpointError> {
        let (done, closed) = tokio::sync::oneshot::channel();
        self.orders
            .send(Order::Close(done))
            .map_err(|_| CheckpointError::Ended)?;
        closed.await.unwrap_or(Err(CheckpointError::Ended))
    }

    /// Counters since the start.
    pub fn stats(&self) -> CheckpointStats {
        CheckpointStats {
            disk_syncs: StdDisk::syncs(),
            unreadable_pages: StdDisk::unreadable_pages(),
            ..self.shared.stats.lock().clone()
        }
    }
}

impl Orders {
    /// Handles messages on a new thread until the server stops. When the log is longer than `log_bytes`, a checkpoint
    /// is requested.
    ///
    /// # Errors
    /// The operating system cannot start a thread.
    pub(super) fn serve(self, task: Task, log_bytes: u64) -> std::io::Result<JoinHandle<()>> {
        let done = self.checkpointer.orders.clone();
        // Sending fails only when the checkpointer's thread has ended; then the result is not needed.
        let merger = Merger::start(move |merged| drop(done.send(Order::Merged(Box::new(merged)))))?;
        std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || {
                crate::priority::lower();
                self.serve_until_closed(task, merger, log_bytes);
            })
    }

    fn serve_until_closed(self, mut task: Task, mut merger: Merger, log_bytes: u64) {
        let mut schedule = Schedule::new(
            Instant::now(),
            task.publish.as_ref().map(|publish| publish.period()),
        );
        let mut closing = None;
        self.update_stats(&task);
        self.checkpointer.shared.stats.lock().published =
            task.publish.as_ref().map(|publish| publish.figures());
        // Merge what earlier runs left: a server that restarts often takes no checkpoints except when it stops.
        merger.start_next(|| task.begin_merge());
        loop {
            let wait = schedule.due().saturating_duration_since(Instant::now());
            match self.orders.recv_timeout(wait) {
                // The message may have been sent while a checkpoint ran that has since completed.
                Ok(Order::Wake) if !self.checkpointer.shared.ordered.load(Ordering::Acquire) => {}
                Ok(Order::Wake) => schedule.ordered(Instant::now()),
                Err(RecvTimeoutError::Timeout) => match self.checkpoint(&mut task) {
                    Ok(()) => {
                        schedule.succeeded(Instant::now());
                        // Writes during the checkpoint may have filled the log again, so far that no further write is
                        // accepted that could request one.
                        if task.journal.tail_bytes() > log_bytes {
                            schedule.ordered(Instant::now());
                        }
                    }
                    Err(_) => schedule.failed(Instant::now()),
                },
                Ok(Order::Merged(merged)) => {
                    if let Some(merged) = merger.take(*merged) {
                        task.finish_merge(merged);
                        self.update_stats(&task);
                    }
                }
                Ok(Order::Remove(ordinal)) => {
                    if let Err(error) = task.remove_bucket(ordinal) {
                        tracing::warn!(ordinal, %error, "a deleted bucket's files could not be removed; the next checkpoint retries");
                    }
                }
                Ok(Order::Close(done)) => {
                    merger.stop();
                    closing = Some(done);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            merger.start_next(|| task.begin_merge());
            if !merger.is_busy()
                && let Some(done) = closing.take()
            {
                let checkpoint = self.checkpoint(&mut task);
                let closed = task.journal.close();
                let closed = closed.map_err(CheckpointError::from);
                // The receiver waits for this message.
                let _ = done.send(checkpoint.and(closed));
                return;
            }
        }
    }

    fn update_stats(&self, task: &Task) {
        let mut stats = self.checkpointer.shared.stats.lock();
        stats.segments = task.manifest.segments.len() as u64;
        stats.merges = task.merges;
    }

    fn checkpoint(&self, task: &mut Task) -> Result<(), CheckpointError> {
        let started = Instant::now();
        let outcome = task.checkpoint();
        let took = started.elapsed();
        self.update_stats(task);
        let mut stats = self.checkpointer.shared.stats.lock();
        stats.nanoseconds += u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match &outcome {
            Ok(()) => {
                // The order matters: a caller that sees the new count may request another checkpoint.
                self.checkpointer.shared.ordered.store(false, Ordering::Release);
                stats.checkpoints += 1;
                tracing::debug!(?took, "checkpoint done");
            }
            Err(error) => {
                stats.failures += 1;
                tracing::error!(%error, "checkpoint failed; the log keeps the records that it would have covered");
            }
        }
        outcome
    }
}
