//! Decides when a shard's checkpoints are taken: when the log is long, memory is full, a bucket was deleted, or the shard
//! is closed. A task waits for that; the work is done on threads that shards share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use disk::StdDisk;
use engine::PointFilter;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout_at;
use wal::Sequence;

use super::deleting::{DeletionOrder, DeletionRecord, DeletionWritten};
use super::error::CheckpointError;
use super::open::{Recovered, RecoveryTimes};
use super::pools::Pools;
use super::publish::PublishFigures;
use super::rewriting::{Rewrite, Rewriter, Rewritten};
use super::schedule::Schedule;
use super::task::Task;
use crate::journal::{JournalError, JournalHandle};
use crate::pools::Workers;

/// Messages to the task.
enum Order {
    /// Check whether a checkpoint was requested.
    Wake,
    /// A bucket was deleted.
    Remove(u32),
    /// A merge of segments, or a deletion of points, has finished.
    Rewritten(Box<Rewritten>),
    /// Delete points.
    Delete(DeletionOrder),
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
    /// Creates a checkpointer that nobody serves yet. `covered`: the sequence that the last checkpoint reaches.
    pub(crate) fn new(recovered: &Recovered, covered: Sequence) -> (Self, Orders) {
        let (sender, orders) = unbounded_channel();
        let checkpointer = Checkpointer {
            orders: sender,
            shared: Arc::default(),
        };
        {
            let mut stats = checkpointer.shared.stats.lock();
            (stats.recovery, stats.covered) = (recovered.times, covered);
        }
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

    /// Deletes points of a bucket; returns their number. Points that were acknowledged before the call are deleted if the
    /// filter selects them. It is done to the end even if nobody waits for it. If some are deleted, the command that `record`
    /// makes is in the log.
    ///
    /// # Errors
    /// It failed. Then nothing was deleted, unless the failure is that it could not be published.
    pub async fn delete_points(
        &self,
        bucket: u32,
        filter: Arc<dyn PointFilter>,
        record: Option<DeletionRecord>,
    ) -> Result<u64, CheckpointError> {
        let (done, answer) = oneshot::channel();
        let order = DeletionOrder {
            bucket,
            filter,
            record,
            done,
        };
        self.orders
            .send(Order::Delete(order))
            .map_err(|_| CheckpointError::Ended)?;
        answer.await.unwrap_or(Err(CheckpointError::Ended))
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
    pub(super) fn serve(self, task: Task, journal: JournalHandle, log_bytes: u64, pools: &Pools) {
        let done = self.checkpointer.orders.clone();
        // Sending fails only when the checkpointer has ended; then the result is not needed.
        let rewriter = Rewriter::new(pools.merges.clone(), move |rewritten| {
            drop(done.send(Order::Rewritten(Box::new(rewritten))));
        });
        let period = task.publish.as_ref().map(|publish| publish.period());
        self.checkpointer.shared.stats.lock().published =
            task.publish.as_ref().map(|publish| publish.figures());
        let serving = Serving {
            orders: self.orders,
            journal,
            checkpointer: self.checkpointer,
            task: Some(Box::new(task)),
            workers: pools.checkpoints.clone(),
            rewriter,
            deletions: VecDeque::new(),
            has_deleted: false,
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
    journal: JournalHandle,
    checkpointer: Checkpointer,
    /// Not here while a step runs.
    task: Option<Box<Task>>,
    workers: Workers,
    rewriter: Rewriter,
    /// Deletions that wait for their turn.
    deletions: VecDeque<DeletionOrder>,
    /// Whether a deletion was the last work of the rewriter: a merge goes before the next one, if there is one.
    has_deleted: bool,
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
                Ok(Some(Order::Rewritten(rewritten))) => match self.rewriter.take(*rewritten) {
                    Some(Rewritten::Merge(merged)) => {
                        let finish = |task: &mut Task, checkpointer: &Checkpointer| {
                            task.finish_merge(merged);
                            checkpointer.update_stats(task);
                        };
                        self.step(finish).await?;
                    }
                    Some(Rewritten::Deletion(deletion)) => self.finish_deletion(deletion).await?,
                    None => {}
                },
                Ok(Some(Order::Delete(order))) => self.deletions.push_back(order),
                Ok(Some(Order::Remove(ordinal))) => self.remove(ordinal).await?,
                Ok(Some(Order::Close { takes_last, done })) => {
                    self.rewriter.stop();
                    closing = Some((takes_last, done));
                }
                Ok(Some(Order::Abandon)) => {
                    self.rewriter.stop();
                    // Queued records are refused. A log that has another owner is not touched.
                    self.step(|task, _| task.journal.close().unwrap_or_default())
                        .await?;
                    return Some(());
                }
                Ok(None) => return Some(()),
            }
            self.begin_deletion().await?;
            if !self.rewriter.is_busy()
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

    /// Begins the next deletion, if it is its turn: with a checkpoint, behind which all points are in segments.
    async fn begin_deletion(&mut self) -> Option<()> {
        while self.rewriter.is_free() && !self.deletions.is_empty() {
            self.has_deleted = false;
            let taken = self.checkpoint().await?;
            let Some(order) = self.deletions.pop_front() else {
                break;
            };
            self.has_deleted = true;
            if let Err(error) = taken {
                // The caller may be gone.
                let _ = order.done.send(Err(error));
                continue;
            }
            let begin = |task: &mut Task, _: &Checkpointer| task.begin_deletion(order);
            if let Some(job) = self.work(begin).await? {
                self.rewriter.start(Rewrite::Deletion(job));
            }
        }
        Some(())
    }

    async fn finish_deletion(&mut self, mut deletion: DeletionWritten) -> Option<()> {
        let recorded = self.record_deletion(&mut deletion).await;
        let finish = move |task: &mut Task, checkpointer: &Checkpointer| {
            let DeletionWritten {
                written,
                handle,
                order,
            } = deletion;
            let mut deleted = match recorded {
                Ok(()) => task.finish_deletion(order.bucket, &handle, written),
                Err(error) => Err(task.give_up_deletion(written, error.into())),
            };
            if deleted.is_ok() && task.publish.is_some() {
                // Whoever takes the shard over begins with what is published.
                deleted = checkpointer.run(task).and(deleted);
            }
            checkpointer.update_stats(task);
            // The caller may be gone.
            let _ = order.done.send(deleted);
        };
        self.step(finish).await
    }

    /// Puts the record of a deletion into the log, if it deletes points.
    fn record_deletion(
        &self,
        deletion: &mut DeletionWritten,
    ) -> impl Future<Output = Result<(), JournalError>> + use<> {
        let points = deletion.written.as_ref().map_or(0, |(_, deleted)| deleted.points);
        let record = deletion.order.record.take().filter(|_| points > 0);
        let recorded = record.map(|record| {
            let (done, recorded) = oneshot::channel();
            self.journal.submit_command(record(points), move |outcome| {
                // The receiver is gone only if the checkpointer has panicked.
                let _ = done.send(outcome);
            });
            recorded
        });
        async {
            match recorded {
                Some(recorded) => recorded.await.unwrap_or(Err(JournalError::Panicked)),
                None => Ok(()),
            }
        }
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
        let may_merge = self.rewriter.is_free() && (self.deletions.is_empty() || self.has_deleted);
        let and_begin_merge = move |task: &mut Task, checkpointer: &Checkpointer| {
            let done = step(task, checkpointer);
            (done, may_merge.then(|| task.begin_merge()).flatten())
        };
        let (done, merge) = self.work(and_begin_merge).await?;
        if let Some(job) = merge {
            self.rewriter.start(Rewrite::Merge(job));
        }
        Some(done)
    }

    /// Works on the task, on a thread for that. Returns `None` if the work panicked; then there is no task any more.
    async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Task, &Checkpointer) -> T + Send + 'static,
    ) -> Option<T> {
        let mut task = self.task.take()?;
        let checkpointer = self.checkpointer.clone();
        let work = move || -> (Box<Task>, T) {
            let done = work(&mut task, &checkpointer);
            (task, done)
        };
        let (task, done) = self.workers.call(work).await?;
        self.task = Some(task);
        Some(done)
    }
}
