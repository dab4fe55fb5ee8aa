//! The journal's thread, which implements group commit: it takes the queued records, writes them as one frame, syncs
//! once, and runs the completions in order.
//!
//! A single record does not wait. Under load, the clients acknowledged by one sync send their next record while the
//! next sync is running, so they would form two halves that never share a sync. Therefore, after a sync, the next group
//! waits until as many records are queued as there were active writers, but at most as long as the last sync took.
//! Measured, this halves the number of syncs for 64 writers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wal::{Log, LogError, Sequence};

use super::JournalHandle;
use super::error::JournalError;
use super::queue::{Committed, Completion, Gather, Queue, Work, complete};
use crate::catalog::{CatalogHandle, Frozen};

/// Maximum size of a frame in bytes, unless a single record is larger. Beyond this, a longer sync costs more than
/// grouping further records saves.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// Upper limit of the time that a group waits for more records; the last sync's duration is the other limit.
const GATHER_MAX: Duration = Duration::from_millis(10);

/// While requests are refused because of overload, a group waits for this many records, or this long: it is better to
/// spend a sync on more records.
const OVERLOAD_RECORDS: usize = 64;
const OVERLOAD_GATHER: Duration = Duration::from_millis(5);

/// Refusals of one kind are logged at most this often.
const REFUSAL_LOG_PERIOD: Duration = Duration::from_secs(1);

/// Limits of the journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalOptions {
    /// Maximum number of bytes queued for the log.
    pub queue_bytes_max: usize,
    /// Maximum size of the log in bytes: what a restart may have to replay.
    pub tail_bytes_max: u64,
}

/// Statistics: counters since the start, and current sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Size of the log files in bytes.
    pub tail_bytes: u64,
    /// Frames (groups) written.
    pub frames: u64,
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Syncs of groups.
    pub syncs: u64,
    /// Total duration of the syncs.
    pub sync_nanoseconds: u64,
    /// Records queued.
    pub waiting_records: u64,
    /// Bytes queued.
    pub waiting_bytes: u64,
    /// Limit of the bytes queued.
    pub waiting_bytes_max: u64,
}

/// Owner of the journal's thread, with the operations that only the owner may perform on the log.
pub struct JournalWriter {
    queue: Arc<Queue>,
    catalog: CatalogHandle,
    thread: Option<JoinHandle<Option<Log>>>,
}

impl JournalWriter {
    /// Starts the thread. `progress` is called with the size of the log files in bytes after each group.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(
        log: Log,
        catalog: CatalogHandle,
        options: JournalOptions,
        progress: impl Fn(u64) + Send + 'static,
    ) -> std::io::Result<(Self, JournalHandle)> {
        let queue = Arc::new(Queue::new(options, log.tail_bytes()));
        let for_thread = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let writer = Writer {
                    log,
                    queue: Arc::clone(&for_thread),
                    progress: Box::new(progress),
                    gather: Gather {
                        records: 1,
                        until: Instant::now(),
                    },
                    logged_at: None,
                };
                let log = catch_unwind(AssertUnwindSafe(|| writer.run()));
                for_thread.end();
                log.ok().flatten()
            })?;
        let handle = JournalHandle {
            queue: Arc::clone(&queue),
            catalog: catalog.clone(),
        };
        Ok((
            JournalWriter {
                queue,
                catalog,
                thread: Some(thread),
            },
            handle,
        ))
    }

    /// All records up to the returned sequence have been forwarded: a message sent to an actor from now on arrives
    /// after them. That includes every record that was acknowledged before this call.
    ///
    /// # Errors
    /// The journal has ended.
    pub fn dispatched(&self) -> Result<Sequence, JournalError> {
        // Runs between two groups: clients of a group are notified before the thread has finished it.
        self.ask(|log| log.durable_sequence())
    }

    /// The catalog together with the sequence that it covers: the last durable one. After a failed sync the log
    /// contains later records that were never applied, and whose sequences are reused if the records are lost.
    ///
    /// # Errors
    /// The journal has ended.
    pub fn freeze_catalog(&self) -> Result<(Frozen, Sequence), JournalError> {
        let catalog = self.catalog.clone();
        self.ask(move |log| (catalog.freeze(), log.durable_sequence()))
    }

    /// Makes the log durable under any sync policy. Required before a file claims to cover a part of the log.
    ///
    /// # Errors
    /// The log is poisoned, or the journal has ended.
    pub fn flush(&self) -> Result<(), JournalError> {
        Ok(self.ask(Log::sync)??)
    }

    /// Deletes log files that contain nothing after `covered`.
    ///
    /// # Errors
    /// I/O errors, or the journal has ended.
    pub fn trim(&self, covered: Sequence) -> Result<(), JournalError> {
        let queue = Arc::clone(&self.queue);
        let trimmed = self.ask(move |log| {
            let outcome = trim(log, covered);
            queue.tail_bytes.store(log.tail_bytes(), Ordering::Relaxed);
            outcome
        })?;
        Ok(trimmed?)
    }

    fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Log) -> R + Send + 'static,
    ) -> Result<R, JournalError> {
        let (done, answer) = std::sync::mpsc::sync_channel(1);
        self.queue.control(Box::new(move |log| {
            // The caller waits below.
            let _ = done.send(work(log));
        }))?;
        // Dropped without an answer only if the thread panicked.
        answer.recv().map_err(|_| JournalError::Panicked)
    }

    /// Whether the data directory is gone: nothing may be written to whatever has replaced it.
    pub fn directory_is_gone(&self) -> bool {
        self.queue.directory_is_gone()
    }

    /// Size of the log files in bytes.
    pub fn tail_bytes(&self) -> u64 {
        self.queue.tail_bytes.load(Ordering::Relaxed)
    }

    /// Refuses new records, completes the queued ones, and closes the log cleanly.
    ///
    /// # Errors
    /// The log's end marker could not be written; nothing acknowledged is lost.
    pub fn close(&mut self) -> Result<(), JournalError> {
        self.queue.close();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Some(log))) => Ok(log.close()?),
            _ => Ok(()),
        }
    }
}

/// Files that can be deleted without free space go first: on a full disk that may be what frees space.
fn trim(log: &mut Log, covered: Sequence) -> Result<(), LogError> {
    log.trim(covered)?;
    if log.last_sequence() == covered {
        // A new active file is created, so that the content of the current one can be deleted too.
        match log.rotate() {
            Err(error) if error.is_passing() => {}
            rotated => {
                rotated?;
                log.trim(covered)?;
            }
        }
    }
    Ok(())
}

/// Completions of a group in log order. Those that have not run when this is dropped, because of a panic, are completed
/// with an error.
struct Waiters(std::vec::IntoIter<Completion>);

impl Drop for Waiters {
    fn drop(&mut self) {
        for completion in self.0.by_ref() {
            complete(completion, Err(JournalError::Panicked));
        }
    }
}

struct Writer {
    log: Log,
    queue: Arc<Queue>,
    progress: Box<dyn Fn(u64) + Send>,
    /// Condition for the next group.
    gather: Gather,
    /// When a refusal was last logged.
    logged_at: Option<Instant>,
}

impl Writer {
    /// Runs until the queue is closed and empty, or until something panics: then the state in memory may be behind the
    /// log, and neither a record nor a checkpoint may continue from it. Returns the log unless it is poisoned.
    fn run(mut self) -> Option<Log> {
        while let Some(work) = self.queue.next(GROUP_BYTES_MAX, self.gather) {
            let is_whole = match work {
                Work::Group(group) => self.commit(group),
                Work::Control(control) => catch_unwind(AssertUnwindSafe(|| control(&mut self.log))).is_ok(),
            };
            if !is_whole {
                return None;
            }
        }
        self.log.poisoned().is_none().then_some(self.log)
    }

    /// Records and logs why a group is refused. A full disk refuses every group, so repeated refusals are logged once a
    /// second.
    fn report_refusal(&mut self, failure: &JournalError) {
        let is_passing = matches!(failure, JournalError::Full(_) | JournalError::Descriptors(_));
        let changed = is_passing && self.queue.note(Some(failure));
        if changed
            || self
                .logged_at
                .is_none_or(|logged_at| logged_at.elapsed() >= REFUSAL_LOG_PERIOD)
        {
            tracing::error!(%failure, "records refused");
            self.logged_at = Some(Instant::now());
        }
    }

    /// Condition for the next group, after a group of `records` records whose sync took `took`.
    fn next_gather(&self, records: usize, took: Duration) -> Gather {
        let now = Instant::now();
        if self.queue.is_overloaded(now) {
            return Gather {
                records: OVERLOAD_RECORDS,
                until: now + OVERLOAD_GATHER,
            };
        }
        Gather {
            records: records + self.queue.waiting(),
            until: now + took.min(GATHER_MAX),
        }
    }

    /// Commits a group; returns whether no completion panicked.
    fn commit(&mut self, group: Vec<(Vec<u8>, Completion)>) -> bool {
        let (records, completions): (Vec<Vec<u8>>, Vec<Completion>) = group.into_iter().unzip();
        let mut waiters = Waiters(completions.into_iter());
        let waiters = waiters.0.by_ref();
        let (mut is_whole, mut took) = (true, Duration::ZERO);
        let written = self.log.append(&records).and_then(|first| {
            let started = Instant::now();
            self.log.sync_if_due(started)?;
            took = started.elapsed();
            self.gather = self.next_gather(records.len(), took);
            Ok(first)
        });
        match written {
            Ok(first) => {
                self.queue.note(None);
                for (sequence, (record, waiter)) in (first..).zip(records.into_iter().zip(waiters)) {
                    is_whole &= complete(waiter, Ok(Committed { sequence, record }));
                }
            }
            Err(error) => {
                let failure = JournalError::from(error);
                self.report_refusal(&failure);
                for waiter in waiters {
                    is_whole &= complete(waiter, Err(failure.clone()));
                }
                if matches!(failure, JournalError::Poisoned(_)) {
                    self.queue.fail(&failure);
                }
            }
        }
        self.queue.set_stats(&self.log, took);
        (self.progress)(self.log.tail_bytes());
        is_whole
    }
}
