//! The checkpointer's thread: waits until the log is long, memory is full, a bucket was deleted, or the server stops.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use wal::disk::StdDisk;

use super::merging::{Merged, Merger};
use super::open::{Recovered, RecoveryTimes};
use super::schedule::Schedule;
use super::task::Task;
use crate::checked_file::CheckedFileError;
use crate::journal::JournalError;
use crate::ledger::LedgerError;

/// Why a checkpoint did not complete. Nothing is lost: the log keeps what it would have covered.
#[derive(Debug)]
pub enum CheckpointError {
    /// The disk's.
    Io(std::io::Error),
    /// The manifest.
    File(CheckedFileError),
    /// A segment that was just written.
    Engine(engine::EngineError),
    /// A block of this segment.
    Damaged(u64, engine::EngineError),
    /// A run file of the ledger.
    Ledger(LedgerError),
    /// The log.
    Journal(JournalError),
    /// The actor of the bucket of this ordinal has panicked; a restart replays its rows.
    ActorGone(u32),
    /// The data directory was removed or replaced: what stands in its place is not ours to write to.
    DirectoryGone,
    /// The thread has ended.
    Ended,
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Io(error) => error.fmt(f),
            CheckpointError::File(error) => error.fmt(f),
            CheckpointError::Engine(error) => error.fmt(f),
            CheckpointError::Damaged(segment, error) => write!(f, "segment {segment}: {error}"),
            CheckpointError::Ledger(error) => error.fmt(f),
            CheckpointError::Journal(error) => error.fmt(f),
            CheckpointError::ActorGone(ordinal) => write!(
                f,
                "bucket {ordinal} failed; its points are in the log, and are there again after a restart"
            ),
            CheckpointError::DirectoryGone => f.write_str("the data directory is not there any more"),
            CheckpointError::Ended => f.write_str("the checkpointer has ended"),
        }
    }
}

impl std::error::Error for CheckpointError {}

impl CheckpointError {
    /// Says which file an error of the disk is about.
    pub(super) fn at(self, path: &Path) -> Self {
        match self {
            CheckpointError::Io(error) => {
                let said = format!("{}: {error}", path.display());
                CheckpointError::Io(std::io::Error::new(error.kind(), said))
            }
            other => other,
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),*) => {
        $(impl From<$source> for CheckpointError {
            fn from(error: $source) -> Self {
                CheckpointError::$variant(error)
            }
        })*
    };
}
from!(std::io::Error => Io, CheckedFileError => File, engine::EngineError => Engine, LedgerError => Ledger, JournalError => Journal);

/// What the thread is asked.
enum Order {
    /// To look whether a checkpoint is ordered.
    Look,
    /// A bucket was deleted.
    Remove(u32),
    /// A merge of segments has ended.
    Merged(Box<Merged>),
    /// A last checkpoint, then the log is closed; the answer is whether both succeeded.
    Close(tokio::sync::oneshot::Sender<Result<(), CheckpointError>>),
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Checkpoints done.
    pub checkpoints: u64,
    /// Checkpoints that failed.
    pub failures: u64,
    /// Segment merges.
    pub merges: u64,
    /// Time spent.
    pub nanoseconds: u64,
    /// Segment files in use now.
    pub segments: u64,
    /// Syncs of files and directories by the whole process.
    pub disk_syncs: u64,
    /// Pages of files that the disk did not read.
    pub unreadable_pages: u64,
    /// Parts of the recovery at the start.
    pub recovery: RecoveryTimes,
}

#[derive(Default)]
struct Figures {
    checkpoints: AtomicU64,
    failures: AtomicU64,
    merges: AtomicU64,
    nanoseconds: AtomicU64,
    segments: AtomicU64,
    /// Whether a checkpoint is ordered and not yet done: more orders would say the same.
    ordered: AtomicBool,
    recovery: RecoveryTimes,
}

/// Asks for checkpoints from any thread. Cheap to clone.
#[derive(Clone)]
pub struct Checkpointer {
    orders: Sender<Order>,
    figures: Arc<Figures>,
}

/// The receiving end, until the thread takes it: the journal and the buckets want a [`Checkpointer`] before there is
/// a task.
pub(crate) struct Orders {
    orders: Receiver<Order>,
    sender: Sender<Order>,
    figures: Arc<Figures>,
}

impl Checkpointer {
    /// A checkpointer without a thread yet, after this recovery.
    pub(crate) fn new(recovered: &Recovered) -> (Self, Orders) {
        let (sender, orders) = channel();
        let figures = Arc::new(Figures {
            recovery: recovered.times,
            ..Figures::default()
        });
        (
            Checkpointer {
                orders: sender.clone(),
                figures: Arc::clone(&figures),
            },
            Orders {
                orders,
                sender,
                figures,
            },
        )
    }

    /// Orders a checkpoint, soon. One that is under way serves for those who order it meanwhile; whoever wants more
    /// than it brought orders again.
    pub fn order(&self) {
        if !self.figures.ordered.swap(true, Ordering::AcqRel) {
            // Ended only when the server stops, with a checkpoint of its own.
            let _ = self.orders.send(Order::Look);
        }
    }

    /// Orders the removal of a deleted bucket's files.
    pub fn remove(&self, ordinal: u32) {
        // What is not removed now goes with the next checkpoint.
        let _ = self.orders.send(Order::Remove(ordinal));
    }

    /// A last checkpoint, and the log closed in order.
    ///
    /// # Errors
    /// What failed; nothing acknowledged is lost.
    pub async fn close(&self) -> Result<(), CheckpointError> {
        let (done, closed) = tokio::sync::oneshot::channel();
        self.orders
            .send(Order::Close(done))
            .map_err(|_| CheckpointError::Ended)?;
        closed.await.unwrap_or(Err(CheckpointError::Ended))
    }

    /// Counters since the start.
    pub fn stats(&self) -> CheckpointStats {
        let load = |figure: &AtomicU64| figure.load(Ordering::Acquire);
        let figures = &self.figures;
        CheckpointStats {
            checkpoints: load(&figures.checkpoints),
            failures: load(&figures.failures),
            merges: load(&figures.merges),
            nanoseconds: load(&figures.nanoseconds),
            segments: load(&figures.segments),
            disk_syncs: StdDisk::syncs(),
            unreadable_pages: StdDisk::unreadable_pages(),
            recovery: figures.recovery,
        }
    }
}

impl Orders {
    /// Serves them on a thread of its own until the server stops. `log_bytes` is the length of the log from which on a
    /// checkpoint is ordered.
    ///
    /// # Errors
    /// The operating system has no thread left.
    pub(super) fn serve(self, task: Task, log_bytes: u64) -> std::io::Result<JoinHandle<()>> {
        let done = self.sender.clone();
        // Nobody is there to hear of it once the thread has ended.
        let merger = Merger::start(move |merged| drop(done.send(Order::Merged(Box::new(merged)))))?;
        std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || {
                crate::priority::lower();
                self.serve_until_closed(task, merger, log_bytes);
            })
    }

    fn serve_until_closed(self, mut task: Task, mut merger: Merger, log_bytes: u64) {
        let mut schedule = Schedule::new(Instant::now());
        let mut closing = None;
        self.note_files(&task);
        // What the stops before have left: a server that is restarted often has no checkpoint but these.
        merger.go_on(|| task.begin_merge());
        loop {
            let wait = schedule.due().saturating_duration_since(Instant::now());
            match self.orders.recv_timeout(wait) {
                // It may be done already: what asked to look for it was sent while one was under way.
                Ok(Order::Look) if !self.figures.ordered.load(Ordering::Acquire) => {}
                Ok(Order::Look) => schedule.ordered(Instant::now()),
                Err(RecvTimeoutError::Timeout) => match self.checkpoint(&mut task) {
                    Ok(()) => {
                        schedule.succeeded(Instant::now());
                        // What came in meanwhile may be as much again, and too much for any more to come and order it.
                        if task.journal.tail_bytes() > log_bytes {
                            schedule.ordered(Instant::now());
                        }
                    }
                    Err(_) => schedule.failed(Instant::now()),
                },
                Ok(Order::Merged(merged)) => {
                    if let Some(merged) = merger.take(*merged) {
                        task.finish_merge(merged);
                        self.note_files(&task);
                    }
                }
                Ok(Order::Remove(ordinal)) => {
                    if let Err(error) = task.remove_bucket(ordinal) {
                        tracing::warn!(ordinal, %error, "a deleted bucket's files stay until the next checkpoint");
                    }
                }
                Ok(Order::Close(done)) => {
                    merger.stop();
                    closing = Some(done);
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            merger.go_on(|| task.begin_merge());
            if !merger.is_busy()
                && let Some(done) = closing.take()
            {
                let checkpoint = self.checkpoint(&mut task);
                let closed = task.journal.close();
                let closed = closed.map_err(|error| JournalError::Full(Arc::new(error)).into());
                // The asker waits for it.
                let _ = done.send(checkpoint.and(closed));
                return;
            }
        }
    }

    fn note_files(&self, task: &Task) {
        let segments = task.manifest.segments.len() as u64;
        self.figures.segments.store(segments, Ordering::Relaxed);
        self.figures.merges.store(task.merges, Ordering::Relaxed);
    }

    fn checkpoint(&self, task: &mut Task) -> Result<(), CheckpointError> {
        let started = Instant::now();
        let outcome = task.checkpoint();
        let took = started.elapsed();
        self.figures.nanoseconds.fetch_add(
            u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
        self.note_files(task);
        match &outcome {
            Ok(()) => {
                // In this order: who has seen it counted may order another.
                self.figures.ordered.store(false, Ordering::Release);
                self.figures.checkpoints.fetch_add(1, Ordering::Release);
                tracing::debug!(?took, "checkpoint done");
            }
            Err(error) => {
                self.figures.failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%error, "checkpoint failed; the log keeps what it would have covered");
            }
        }
        outcome
    }
}
