//! Decides when a shard's checkpoints are taken: when the log is long, memory is full, a bucket was deleted, or the shard
//! is closed. A task waits for that; the work is done on threads that shards share.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use disk::StdDisk;
use engine::MergeError;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout_at;
use wal::Sequence;

use super::merging::{MergeJob, Merged, Merger};
use super::open::{Recovered, RecoveryTimes};
use super::pools::Pools;
use super::publish::PublishFigures;
use super::schedule::Schedule;
use super::task::Task;
use crate::checked_file::CheckedFileError;
use crate::journal::JournalError;
use crate::ledger::LedgerError;
use crate::pools::Workers;

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
    /// The checkpointer has ended.
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

/// Messages to the task.
enum Order {
    /// Check whether a checkpoint was requested.
    Wake,
    /// A bucket was deleted.
    Remove(u32),
    /// A merge of segments has finished.
    Merged(Box<Merged>),
    /// Take a checkpoint now; replies whether it succeeded.
    Take(oneshot::Sender<Result<(), CheckpointError>>),
    /// Close the log, after a last checkpoint or without; replies whether both succeeded.
    Close {
        takes_last: bool,
        done: oneshot::Sender<Result<(), CheckpointError>>,
    },
    /// End without a word to the log: the shard has another owner.
    Abandon,
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
    /// Last record that the last checkpoint covers.
    pub covered: Sequence,
    /// Syncs of files and directories by the whole process.
    pub disk_syncs: u64,
    /// File pages that the disk failed to read.
    pub unreadable_pages: u64,
    /// How long each part of the recovery took.
    pub recovery: RecoveryTimes,
    /// What was published; `None` if checkpoints are kept nowhere else.
    pub published: Option<Arc<PublishFigures>>,
}

/// What the task and the handles of it share.
#[derive(Default)]
struct Shared {
    stats: Mutex<CheckpointStats>,
    /// Whether a checkpoint is requested and not yet done; further requests are then redundant.
    ordered: AtomicBool,
}

/// Requests checkpoints from any thread. Cheap to clone.
#[derive(Clone)]
pub struct Checkpointer {
    orders: UnboundedSender<Order>,
    shared: Arc<Shared>,
}

/// The receiving end of the channel. Separate from the task because the journal and the buckets need a [`Checkpointer`]
/// before there is one.
pub(crate) struct Orders {
    orders: UnboundedReceiver<Order>,
    checkpointer: Checkpointer,
}

impl Checkpointer {
    /// Creates a checkpointer that nobody serves yet.
    pub(crate) fn new(recovered: &Recovered) -> (Self, Orders) {
        let (sender, orders) = unbounded_channel();
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
        self.ask(|done| Order::Close {
            takes_last: true,
            done,
        })
        .await
    }

    /// Closes the log without a checkpoint: another node replays what is behind the last one.
    ///
    /// # Errors
    /// Closing the log failed. Nothing acknowledged is lost.
    pub async fn hand_over(&self) -> Result<(), CheckpointError> {
        self.ask(|done| Order::Close {
            takes_last: false,
            done,
        })
        .await
    }

    /// Takes a checkpoint now, and waits for it.
    ///
    /// # Errors
    /// It failed. Nothing acknowledged is lost.
    pub async fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.ask(Order::Take).await
    }

    /// Ends without touching the log, of which somebody else is the owner now.
    pub fn abandon(&self) {
        // If the checkpointer has ended, so has everything.
        let _ = self.orders.send(Order::Abandon);
    }

    async fn ask(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<(), CheckpointError>>) -> Order,
    ) -> Result<(), CheckpointError> {
        let (done, answer) = oneshot::channel();
        self.orders
            .send(order(done))
            .map_err(|_| CheckpointError::Ended)?;
        answer.await.unwrap_or(Err(CheckpointError::Ended))
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

impl Checkpointer {
    fn update_stats(&self, task: &Task) {
        let mut stats = self.shared.stats.lock();
        stats.segments = task.manifest.segments.len() as u64;
        stats.covered = task.manifest.covered;
        stats.merges = task.merges;
    }

    fn run(&self, task: &mut Task) -> Result<(), CheckpointError> {
        let started = Instant::now();
        let outcome = task.checkpoint();
        let took = started.elapsed();
        self.update_stats(task);
        let mut stats = self.shared.stats.lock();
        stats.nanoseconds += u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match &outcome {
            Ok(()) => {
                // The order matters: a caller that sees the new count may request another checkpoint.
                self.shared.ordered.store(false, Ordering::Release);
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

impl Orders {
    /// Handles messages until the shard is closed. When the log is longer than `log_bytes`, a checkpoint is requested.
    pub(super) fn serve(self, task: Task, log_bytes: u64, pools: &Pools) {
        let done = self.checkpointer.orders.clone();
        // Sending fails only when the checkpointer has ended; then the result is not needed.
        let merger = Merger::new(pools.merges.clone(), move |merged| {
            drop(done.send(Order::Merged(Box::new(merged))));
        });
        let period = task.publish.as_ref().map(|publish| publish.period());
        self.checkpointer.shared.stats.lock().published =
            task.publish.as_ref().map(|publish| publish.figures());
        let serving = Serving {
            orders: self.orders,
            checkpointer: self.checkpointer,
            task: Some(Box::new(task)),
            workers: pools.checkpoints.clone(),
            merger,
            schedule: Schedule::new(Instant::now(), period),
            log_bytes,
        };
        pools.buckets.arbiters().next().spawn(async move {
            // Without the task, whoever waits for a checkpoint is told that the checkpointer has ended.
            let _ = serving.until_closed().await;
        });
    }
}

/// A shard's checkpointer while it is served.
struct Serving {
    orders: UnboundedReceiver<Order>,
    checkpointer: Checkpointer,
    /// Not here while a step runs.
    task: Option<Box<Task>>,
    workers: Workers,
    merger: Merger,
    schedule: Schedule,
    log_bytes: u64,
}

impl Serving {
    /// Ends early, with `None`, if a step panics.
    async fn until_closed(mut self) -> Option<()> {
        // Merge what earlier runs left: a server that restarts often takes no checkpoints except when it stops.
        self.step(|task, checkpointer| checkpointer.update_stats(task))
            .await?;
        let mut closing = None;
        loop {
            let order = timeout_at(self.schedule.due().into(), self.orders.recv()).await;
            match order {
                // The message may have been sent while a checkpoint ran that has since completed.
                Ok(Some(Order::Wake)) if !self.checkpointer.shared.ordered.load(Ordering::Acquire) => {}
                Ok(Some(Order::Wake)) => self.schedule.ordered(Instant::now()),
                Err(_) => drop(self.checkpoint().await?),
                Ok(Some(Order::Take(done))) => {
                    let taken = self.checkpoint().await?;
                    // The caller may be gone.
                    let _ = done.send(taken);
                }
                Ok(Some(Order::Merged(merged))) => {
                    if let Some(merged) = self.merger.take(*merged) {
                        let finish = |task: &mut Task, checkpointer: &Checkpointer| {
                            task.finish_merge(merged);
                            checkpointer.update_stats(task);
                        };
                        self.step(finish).await?;
                    }
                }
                Ok(Some(Order::Remove(ordinal))) => self.remove(ordinal).await?,
                Ok(Some(Order::Close { takes_last, done })) => {
                    self.merger.stop();
                    closing = Some((takes_last, done));
                }
                Ok(Some(Order::Abandon)) => {
                    self.merger.stop();
                    // Queued records are refused. A log that has another owner is not touched.
                    self.step(|task, _| task.journal.close().unwrap_or_default())
                        .await?;
                    return Some(());
                }
                Ok(None) => return Some(()),
            }
            if !self.merger.is_busy()
                && let Some((takes_last, done)) = closing.take()
            {
                let close = move |task: &mut Task, checkpointer: &Checkpointer| {
                    let checkpoint = match takes_last {
                        true => checkpointer.run(task),
                        false => Ok(()),
                    };
                    let closed = task.journal.close();
                    checkpoint.and(closed.map_err(CheckpointError::from))
                };
                let closed = self.step(close).await?;
                self.task = None;
                // The receiver waits for this message.
                let _ = done.send(closed);
                return Some(());
            }
        }
    }

    async fn checkpoint(&mut self) -> Option<Result<(), CheckpointError>> {
        let log_bytes = self.log_bytes;
        let checkpoint = move |task: &mut Task, checkpointer: &Checkpointer| {
            let outcome = checkpointer.run(task);
            // Writes during the checkpoint may have filled the log again, so far that no further write is accepted that
            // could request one.
            outcome.map(|()| task.journal.tail_bytes() > log_bytes)
        };
        let outcome = self.step(checkpoint).await?;
        match outcome {
            Ok(is_long) => {
                self.schedule.succeeded(Instant::now());
                if is_long {
                    self.schedule.ordered(Instant::now());
                }
            }
            Err(_) => self.schedule.failed(Instant::now()),
        }
        Some(outcome.map(drop))
    }

    async fn remove(&mut self, ordinal: u32) -> Option<()> {
        self.step(move |task, _| {
            if let Err(error) = task.remove_bucket(ordinal) {
                tracing::warn!(ordinal, %error, "a deleted bucket's files could not be removed; the next checkpoint retries");
            }
        })
        .await
    }

    /// Does a step, then starts the next merge if there is one. Returns `None` if the step panicked; then there is no task
    /// any more.
    async fn step<T: Send + 'static>(
        &mut self,
        step: impl FnOnce(&mut Task, &Checkpointer) -> T + Send + 'static,
    ) -> Option<T> {
        let mut task = self.task.take()?;
        let (checkpointer, may_merge) = (self.checkpointer.clone(), self.merger.is_free());
        let work = move || -> (Box<Task>, T, Option<MergeJob>) {
            let done = step(&mut task, &checkpointer);
            let merge = may_merge.then(|| task.begin_merge()).flatten();
            (task, done, merge)
        };
        let (task, done, merge) = self.workers.call(work).await?;
        self.task = Some(task);
        merge.into_iter().for_each(|job| self.merger.start(job));
        Some(done)
    }
}
